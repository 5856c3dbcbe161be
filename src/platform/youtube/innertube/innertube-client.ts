import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
import { Attempt } from '../egress/attempt.js';
import type { Egress } from '../egress/egress.js';
import { YOUTUBE_ORIGIN } from '../egress/http-transport.js';
import { RequestPipeline, type RequestScope, serviceScope } from '../egress/request-pipeline.js';
import { type FailedResponse, isJsonError, type UpstreamResponse } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { at, asString, IncompletePageError, isObject, UnreadableError } from '../response-parsing.js';
import { unlessAborted } from '../../../domain/waiting.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ClientRequests, CONFIGURED, type InnertubeQuery, type VersionForm } from './clients.js';
import { CLIENTS_MAX, VisitorDataCache, type VisitorExchange } from './visitor-data-cache.js';
import { type VersionProbes, WebVersion } from './web-version.js';

/** Longest wait for visitor data; past it requests send none. */
const VISITOR_TIMEOUT_MS = 5_000;
/** Issued visitor data has 40 to 600 characters. */
const VISITOR_LENGTH_MAX = 4_096;

/** YouTube's own channel, which is unlikely to end, and how long it or the version of WEB may take. */
const CONTROL_CHANNEL = `${YOUTUBE_ORIGIN}/@youtube`;
const VERSION_TIMEOUT_MS = 20_000;
/** The calls of WEB that read lists, names and channels. */
const LIST_PATHS: ReadonlySet<string> = new Set(['browse', 'navigation/resolve_url']);

/** How long the result of a suspicion counts: another cause, such as an odd page, can look alike. */
const MASK_MS = 3_600_000;

/** JSON that is not in the form that a parser expects. `incomplete`: an `IncompletePageError`, so that asking again can help. */
export interface Unparsable {
  kind: 'unparsable';
  expected: string;
  incomplete?: boolean;
}

export type ParsedResponse<T> = { kind: 'parsed'; value: T } | Unparsable | FailedResponse;

/** Reads a response; throws `UnreadableError` for an unexpected one. `visitor` is the visitor data of the exchange. */
type Parse<T> = (response: unknown, visitor: VisitorExchange) => T;

/** Composes InnerTube requests, sends them through the pipeline and parses their responses. */
@Injectable()
export class InnertubeClient {
  private readonly requests: ClientRequests;
  /** Clients whose mask was suspected as the cause of a failed request, and whether it was: then they are sent none. */
  private readonly masksRefused = new LRUCache<YoutubeClient, boolean>({
    ...{ max: CLIENTS_MAX, ttl: MASK_MS, ttlResolution: 0 },
    perf: { now: () => performance.now() },
  });
  private readonly visitorData = new VisitorDataCache((egress, client) => this.requestVisitorData(egress, client));

  constructor(
    private readonly pipeline: RequestPipeline,
    private readonly metrics: UpstreamMetrics,
    private readonly webVersion: WebVersion,
    { YOUTUBE_CLIENT_OVERRIDES }: Environment,
  ) {
    this.requests = new ClientRequests(YOUTUBE_CLIENT_OVERRIDES);
  }

  /**
   * Sends a query and parses its JSON. A 400 of a list, name or channel concerns that and not the version of WEB. Rejects only
   * when the scope's signal is aborted.
   */
  async query<T>(query: InnertubeQuery, parse: Parse<T>, scope: RequestScope): Promise<ParsedResponse<T>> {
    const { form } = this.webVersion;
    const sentAtMs = performance.now();
    const response = await this.maskedQuery(query, parse, scope);
    if (!isOfList(query) || !isJsonError(response, 400)) return response;
    const examined = this.webVersion.examine(form, sentAtMs, this.versionProbes(scope.egress));
    const verdict = await unlessAborted(examined, scope.context.signal);
    if (verdict === 'served') return response;
    return verdict === 'replaced' ? this.maskedQuery(query, parse, scope) : verdict;
  }

  /** Without the mask where it is the cause of a failure, as a second request finds out. */
  private async maskedQuery<T>(
    query: InnertubeQuery,
    parse: Parse<T>,
    scope: RequestScope,
  ): Promise<ParsedResponse<T>> {
    const { client } = query;
    const fields = this.masksRefused.get(client) ? null : query.fields;
    const response = await this.send({ ...query, fields }, parse, scope);
    if (fields === null || this.masksRefused.has(client) || !mayBeOfMask(response)) return response;
    this.masksRefused.set(client, false);
    const complete = await this.send({ ...query, fields: null }, parse, scope);
    if (complete.kind === 'parsed') {
      this.masksRefused.set(client, true);
      report('warn', 'youtube_fields_not_honoured', { client });
    }
    return complete;
  }

  /**
   * The same, but an incomplete page is asked for again like a 5xx, within the retries of the scope, and without the mask, which
   * may remove what the page has.
   *
   * @param isWhole whether a page that was parsed is worth no retry; after the retries it is taken as it is
   */
  async queryWhole<T>(
    query: InnertubeQuery,
    parse: (response: unknown) => T,
    scope: RequestScope,
    isWhole: (value: T) => boolean = () => true,
  ): Promise<ParsedResponse<T>> {
    for (let { fields } = query; ; fields = null) {
      const response = await this.query({ ...query, fields }, parse, scope);
      const isDone = response.kind === 'parsed' ? isWhole(response.value) : !('incomplete' in response);
      if (isDone || !scope.budget.take()) return response;
    }
  }

  /**
   * Fetches a text from a URL in a response, as the client that received the response. Rejects only when the scope's signal
   * is aborted.
   *
   * @param bodyBytesMax the largest text that is read, in bytes
   */
  async fetchText(
    kind: string,
    client: YoutubeClient,
    url: URL,
    scope: RequestScope,
    bodyBytesMax?: number,
  ): Promise<UpstreamResponse> {
    const headers = { accept: '*/*', 'accept-language': 'en', 'user-agent': this.requests.userAgent(client) };
    const outgoing = { url, headers, ...(bodyBytesMax !== undefined && { bodyBytesMax }) };
    return this.pipeline.send({ kind, client, scope, outgoing });
  }

  /**
   * Replaces the visitor data of a client of an egress after the platform refused it.
   *
   * @returns whether other data is available than was sent, so that another attempt may be served
   */
  replaceVisitorData(egress: Egress, client: YoutubeClient, visitor: VisitorExchange): boolean {
    const replaced = this.visitorData.replace(egress, client, visitor);
    this.metrics.notice('visitor', client, replaced ? 'replaced' : 'rejected');
    return replaced;
  }

  private async send<T>(query: InnertubeQuery, parse: Parse<T>, scope: RequestScope): Promise<ParsedResponse<T>> {
    const { client, fields } = query;
    const form = this.formOf(client);
    const { response, visitor } = await this.exchange(query, scope, form);
    if (response.kind !== 'ok') return response;
    if (isOfList(query)) this.webVersion.served(form);
    if (fields !== null) this.metrics.notice('fields', client, isWhole(response.json) ? 'ignored' : 'honoured');
    return parsed(() => parse(response.json, visitor));
  }

  /** Sends a query as its client, with the visitor data that the client has at the egress. */
  private async exchange(
    query: InnertubeQuery,
    scope: RequestScope,
    form: VersionForm,
  ): Promise<{ response: UpstreamResponse; visitor: VisitorExchange }> {
    const { kind, client } = query;
    // The platform repeats what is sent, so that data that was not issued would come back.
    const sent = kind === 'visitor' ? null : await this.visitorData.get(scope.egress, client, scope.context.signal);
    const outgoing = this.requests.compose(query, sent, form);
    const response = await this.pipeline.send({ kind, client, scope, outgoing });
    return { response, visitor: { sent, offered: readVisitorData(response) } };
  }

  private formOf(client: YoutubeClient): VersionForm {
    return client === 'WEB' ? this.webVersion.form : CONFIGURED;
  }

  /** Through one egress, as requests of the service itself. */
  private versionProbes(egress: Egress): VersionProbes {
    const query = { kind: 'resolve', client: 'WEB', path: 'navigation/resolve_url', fields: null } as const;
    return {
      control: async (form) => {
        const scope = serviceScope(egress, CONTROL_CHANNEL, VERSION_TIMEOUT_MS);
        const exchange = this.exchange({ ...query, payload: { url: CONTROL_CHANNEL } }, scope, form);
        return (await exchange.catch(() => null))?.response ?? { kind: 'timeout' };
      },
      published: async () => {
        // Its refusal says nothing about lists.
        const attempt = new Attempt('client-version', 'optional');
        const scope = { ...serviceScope(egress, 'client-version', VERSION_TIMEOUT_MS), attempt };
        const url = new URL('/sw.js_data', YOUTUBE_ORIGIN);
        const response = await this.fetchText('client-version', 'WEB', url, scope).catch(() => null);
        return response?.kind === 'ok' ? response.body : null;
      },
    };
  }

  private async requestVisitorData(egress: Egress, client: YoutubeClient): Promise<string | null> {
    // All calls that need it share the request, so it does not end with the call that started it.
    const scope = serviceScope(egress, 'visitor', VISITOR_TIMEOUT_MS);
    const query = { kind: 'visitor', client, path: 'visitor_id', payload: {}, fields: null };
    return (await this.exchange(query, scope, this.formOf(client))).visitor.offered;
  }
}

/** Whether a query reads a list, a name or a channel. */
function isOfList({ client, path }: InnertubeQuery): boolean {
  return client === 'WEB' && LIST_PATHS.has(path);
}

/** Whether a mask can be the cause: one that is not supported is rejected with 400, one that removes too much is unreadable. */
function mayBeOfMask(response: ParsedResponse<unknown>): boolean {
  if (response.kind === 'unparsable') return response.incomplete !== true;
  return response.kind === 'http-error' && response.status === 400;
}

/** Whether the context of a response has fields that no mask selects: the mask of the request was ignored. */
function isWhole(response: unknown): boolean {
  const context = at(response, 'responseContext');
  return isObject(context) && Object.keys(context).some((key) => key !== 'visitorData');
}

/** The visitor data that a response issues; null for none, or for a text that cannot be a header. */
function readVisitorData(response: UpstreamResponse): string | null {
  if (response.kind !== 'ok') return null;
  const { json } = response;
  const issued =
    asString(at(json, 'responseContext', 'visitorData')) ??
    asString(at(json, 'playerResponse', 'responseContext', 'visitorData'));
  return issued !== null && issued.length <= VISITOR_LENGTH_MAX && /^[\x21-\x7e]+$/.test(issued) ? issued : null;
}

/** The result of a parser that throws `UnreadableError` for an unexpected response. */
export function parsed<T>(parse: () => T): ParsedResponse<T> {
  try {
    return { kind: 'parsed', value: parse() };
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    const incomplete = error instanceof IncompletePageError;
    return { kind: 'unparsable', expected: error.expected, ...(incomplete && { incomplete }) };
  }
}
