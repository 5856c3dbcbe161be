import { Injectable } from '@nestjs/common';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt } from '../egress/attempt.js';
import type { Egress } from '../egress/egress.js';
import { RequestPipeline, type RequestScope } from '../egress/request-pipeline.js';
import { RetryBudget } from '../egress/retry.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { at, asString, isObject, UnreadableError } from '../response-parsing.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ClientRequests, type InnertubeCall } from './clients.js';
import { VisitorDataCache, type VisitorExchange } from './visitor-data-cache.js';

/** Longest wait for visitor data; past it requests send none. */
const VISITOR_TIMEOUT_MS = 5_000;
/** Issued visitor data has 40 to 600 characters. */
const VISITOR_LENGTH_MAX = 4_096;

/** A parsed response. `unparsable`: it is JSON, but not in the form that `parse` expects. */
export type ParsedResponse<T> =
  { kind: 'parsed'; value: T } | { kind: 'unparsable'; expected: string } | FailedResponse;

/** Composes InnerTube requests, sends them through the pipeline and parses their responses. */
@Injectable()
export class InnertubeClient {
  private readonly requests: ClientRequests;
  /** Clients whose mask was once suspected as the cause of a failed request, and whether it was: then they are sent none. */
  private readonly masksRefused = new Map<YoutubeClient, boolean>();
  private readonly visitorData = new VisitorDataCache((egress, client) => this.requestVisitorData(egress, client));
  private readonly visitorFairnessKey = {};

  constructor(
    private readonly pipeline: RequestPipeline,
    private readonly metrics: UpstreamMetrics,
    { YOUTUBE_CLIENT_OVERRIDES }: Environment,
  ) {
    this.requests = new ClientRequests(YOUTUBE_CLIENT_OVERRIDES);
  }

  /**
   * Sends a call and parses its JSON. Rejects only when the scope's signal is aborted.
   *
   * @param parse throws `UnreadableError` for an unexpected response; `visitor` is the visitor data of the exchange
   */
  async query<T>(
    call: InnertubeCall,
    parse: (response: unknown, visitor: VisitorExchange) => T,
    scope: RequestScope,
  ): Promise<ParsedResponse<T>> {
    const { client } = call;
    const fields = this.masksRefused.get(client) ? null : call.fields;
    const response = await this.send({ ...call, fields }, parse, scope);
    if (fields === null || this.masksRefused.has(client) || !mayBeOfMask(response)) return response;
    this.masksRefused.set(client, false);
    const complete = await this.send({ ...call, fields: null }, parse, scope);
    if (complete.kind === 'parsed') {
      this.masksRefused.set(client, true);
      report('warn', 'youtube_fields_not_honoured', { client });
    }
    return complete;
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

  private async send<T>(
    call: InnertubeCall,
    parse: (response: unknown, visitor: VisitorExchange) => T,
    scope: RequestScope,
  ): Promise<ParsedResponse<T>> {
    const { egress } = scope;
    const { kind, client, fields } = call;
    const visitorData = await this.visitorData.get(egress, client, scope.context.signal);
    const outgoing = this.requests.compose(call, visitorData);
    const response = await this.pipeline.send({ kind, client, scope, outgoing });
    if (fields !== null && response.kind === 'ok')
      this.metrics.notice('fields', client, isWhole(response.json) ? 'ignored' : 'honoured');
    const visitor = { sent: visitorData, offered: readVisitorData(response) };
    return response.kind === 'ok' ? parsed(() => parse(response.json, visitor)) : response;
  }

  private async requestVisitorData(egress: Egress, client: YoutubeClient): Promise<string | null> {
    const context: ReadingContext = {
      // All calls that need it share the request, so it does not end with the call that started it.
      signal: AbortSignal.timeout(VISITOR_TIMEOUT_MS),
      deadlineAtMs: performance.now() + VISITOR_TIMEOUT_MS,
      organizationId: '',
      fairnessKey: this.visitorFairnessKey,
    };
    // Without visitor data: the platform repeats what is sent, so that local data would come back.
    const call = { kind: 'visitor', client, path: 'visitor_id', payload: {}, fields: null };
    const outgoing = this.requests.compose(call, null);
    const attempt = new Attempt('visitor', 'control');
    const scope = { egress, attempt, context, budget: new RetryBudget(0), hasAlternative: false, attempts: 1 };
    const response = await this.pipeline.send({ kind: 'visitor', client, scope, outgoing });
    return readVisitorData(response);
  }
}

/** Whether a mask can be the cause: one that is not supported is rejected with 400, one that removes too much is unreadable. */
function mayBeOfMask(response: ParsedResponse<unknown>): boolean {
  return response.kind === 'unparsable' || (response.kind === 'http-error' && response.status === 400);
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
    if (error instanceof UnreadableError) return { kind: 'unparsable', expected: error.expected };
    throw error;
  }
}
