import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { ReadingContext } from '../../video-platform.js';
import type { Egress } from '../egress/egress.js';
import { RequestPipeline, type RequestScope } from '../egress/request-pipeline.js';
import { RetryBudget } from '../egress/retry.js';
import type { FailedResponse, JsonResponse, UpstreamResponse } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { at, asString, UnreadableError } from '../response-parsing.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { FieldMaskSupport, type MaskVerdict } from './field-masks.js';
import { type InnertubeClientName, type InnertubeRequestTemplates, loadRequestTemplates } from './request-templates.js';
import { VisitorDataCache } from './visitor-data-cache.js';

/** Longest wait for visitor data; past it locally generated data is used. */
const VISITOR_TIMEOUT_MS = 5_000;
/** Issued visitor data has 40 to 600 characters. */
const VISITOR_LENGTH_MAX = 4_096;

export interface InnertubeCall {
  /** Metric label: `player`, `uploads`, … */
  kind: string;
  client: InnertubeClientName;
  /** Below `/youtubei/v1/`. */
  path: string;
  payload: Readonly<Record<string, unknown>>;
  /** The `$fields` mask that selects what `parse` reads, or null for the complete response. */
  fields: string | null;
}

/** A parsed response. `unparsable`: it is JSON, but not in the form that `parse` expects. */
export type ParsedResponse<T> =
  { kind: 'parsed'; value: T } | { kind: 'unparsable'; expected: string } | FailedResponse;

/** Composes InnerTube requests, sends them through the pipeline, and requests partial responses where they are supported. */
@Injectable()
export class InnertubeClient implements OnApplicationShutdown {
  private readonly fieldMasks = new FieldMaskSupport((key) => report('warn', 'youtube_fields_not_honoured', { key }));
  private readonly shutdown = new AbortController();
  private visitorData: VisitorDataCache | null = null;
  private readonly visitorFairnessKey = {};

  constructor(
    private readonly pipeline: RequestPipeline,
    private readonly metrics: UpstreamMetrics,
  ) {}

  onApplicationShutdown(): void {
    this.shutdown.abort(new Error('The service is shutting down.'));
  }

  /**
   * Sends a call and parses its JSON, with the call's mask where the client supports it. Rejects only when the scope's signal
   * is aborted.
   *
   * @param parse throws `UnreadableError` for an unexpected response
   * @param verdictOf whether a parsed masked response proves the mask or is doubtful
   */
  async query<T>(
    call: InnertubeCall,
    parse: (response: unknown) => T,
    scope: RequestScope,
    verdictOf: (value: T, maskProved: boolean) => MaskVerdict = () => 'fine',
  ): Promise<ParsedResponse<T>> {
    if (call.fields === null) return parseWith(parse, await this.post(call, scope));
    const key = `${call.kind} ${call.client}`;
    const query = async (masked: boolean): Promise<{ parsed: ParsedResponse<T>; complete: boolean }> => {
      const response = await this.post(masked ? call : { ...call, fields: null }, scope);
      return { parsed: parseWith(parse, response), complete: response.kind === 'json' && response.whole };
    };
    const { parsed } = await this.fieldMasks.query(key, query, ({ parsed, complete }, masked) => {
      if (masked && complete) return 'ignored';
      if (parsed.kind === 'parsed') return verdictOf(parsed.value, this.fieldMasks.isProved(key));
      // An unsupported mask is rejected with 400; one that removes too much makes the response unparsable.
      const mayBeTheMask = parsed.kind === 'unparsable' || (parsed.kind === 'http-error' && parsed.status === 400);
      return mayBeTheMask ? 'doubtful' : 'failed';
    });
    return parsed;
  }

  /**
   * Fetches a text from a URL in a response, as the client that received the response. Rejects only when the scope's signal
   * is aborted.
   *
   * @param bodyBytesMax the largest text that is read, in bytes
   */
  async fetchText(
    kind: string,
    client: InnertubeClientName,
    url: URL,
    scope: RequestScope,
    bodyBytesMax?: number,
  ): Promise<UpstreamResponse> {
    const templates = await loadRequestTemplates();
    const headers = { accept: '*/*', 'accept-language': 'en', 'user-agent': templates.userAgent(client) };
    // Never obsolete: the platform issued this URL to the egress, so it does not refuse it.
    const outgoing = { url, headers, ...(bodyBytesMax !== undefined && { bodyBytesMax }) };
    return this.pipeline.text({ kind, client, scope, outgoing, isObsolete: () => false });
  }

  /** Requests new visitor data for a client of an egress before its next call, after it was taken for a bot. */
  renewVisitorData(egress: Egress, client: InnertubeClientName): void {
    this.visitorData?.invalidate(egress, client);
  }

  private async post(call: InnertubeCall, scope: RequestScope): Promise<JsonResponse> {
    const { kind, client, path, payload, fields } = call;
    const templates = await loadRequestTemplates();
    const visitorData = await this.visitorDataCache(templates).get(scope.egress, client, scope.context.signal);
    const outgoing = templates.compose(client, path, payload, visitorData, fields);
    const isObsolete = () => scope.admission.isObsolete();
    const response = await this.pipeline.json({ kind, client, scope, outgoing, isObsolete });
    if (fields !== null && response.kind === 'json')
      this.metrics.notice('fields', client, response.whole ? 'ignored' : 'honoured');
    return response;
  }

  private visitorDataCache(templates: InnertubeRequestTemplates): VisitorDataCache {
    this.visitorData ??= new VisitorDataCache(
      (egress, client) => this.requestVisitorData(templates, egress, client),
      () => templates.localVisitorData(),
    );
    return this.visitorData;
  }

  private async requestVisitorData(
    templates: InnertubeRequestTemplates,
    egress: Egress,
    client: InnertubeClientName,
  ): Promise<string | null> {
    const context: ReadingContext = {
      // All calls that need it share the request, so it does not end with the call that started it.
      signal: AbortSignal.any([this.shutdown.signal, AbortSignal.timeout(VISITOR_TIMEOUT_MS)]),
      deadlineAtMs: performance.now() + VISITOR_TIMEOUT_MS,
      fairnessKey: this.visitorFairnessKey,
    };
    const outgoing = templates.compose(client, 'visitor_id', {}, templates.localVisitorData(), null);
    const scope = { egress, context, budget: new RetryBudget(0) };
    const response = await this.pipeline.json({ kind: 'visitor', client, scope, outgoing, isObsolete: () => false });
    if (response.kind !== 'json') return null;
    const visitorData = asString(at(response.value, 'responseContext', 'visitorData'));
    return visitorData && visitorData.length <= VISITOR_LENGTH_MAX && /^[\x21-\x7e]+$/.test(visitorData)
      ? visitorData
      : null;
  }
}

function parseWith<T>(parse: (response: unknown) => T, response: JsonResponse): ParsedResponse<T> {
  return response.kind === 'json' ? parsed(() => parse(response.value)) : response;
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
