import type { ReadingContext } from '../../video-platform.js';
import { type UpstreamResponse, type JsonResponse, outcomeOf } from '../egress/upstream-response.js';
import type { Admission } from '../egress/circuit-breaker.js';
import type { Egress } from '../egress/egress-pool.js';
import type { HttpTransport } from '../egress/http-transport.js';
import { type InnertubeClientName, type InnertubeRequestTemplates, loadRequestTemplates } from './request-templates.js';
import { type RetryBudget, withRetries } from '../egress/retry.js';
import type { UpstreamEvents } from '../upstream-events.js';
import { VisitorDataCache } from './visitor-data-cache.js';
import { at, asString } from './json-fields.js';

/** Longest wait for visitor data; past it the local one is used. */
const VISITOR_TIMEOUT_MS = 5_000;
/** An issued one has 40 to 600 characters. */
const VISITOR_LENGTH_MAX = 4_096;

/** On whose behalf, through which exit, and with how many retries a piece of work is done. */
export interface RequestScope {
  readonly egress: Egress;
  readonly admission: Pick<Admission, 'probe' | 'isObsolete'>;
  readonly context: ReadingContext;
  readonly budget: RetryBudget;
}

export interface InnertubeCall {
  /** For the counters: `player`, `uploads`, … */
  kind: string;
  client: InnertubeClientName;
  /** Below `/youtubei/v1/`. */
  path: string;
  payload: Readonly<Record<string, unknown>>;
  /** A partial response mask, or null for the whole answer. */
  fields: string | null;
}

/** Speaks InnerTube: composes, sends, retries and counts; what an answer means is for others to say. */
export class InnertubeClient {
  private cachedVisitorData: VisitorDataCache | null = null;
  private readonly visitorFairnessKey = {};

  /** @param closing aborted when the process shuts down */
  constructor(
    private readonly http: HttpTransport,
    private readonly events: UpstreamEvents,
    private readonly closing: AbortSignal,
  ) {}

  /** Asks for JSON. Rejects only when `context.signal` is aborted. */
  async post(call: InnertubeCall, scope: RequestScope): Promise<JsonResponse> {
    const requests = await loadRequestTemplates();
    const visitorData = await this.visitorDataCache(requests).get(scope.egress, call.client, scope.context.signal);
    const request = requests.compose(call.client, call.path, call.payload, visitorData, call.fields);
    const attempt = async () => {
      const response = await this.counted(call, scope, async (onTurn) => {
        const isBlocked = (): boolean => onTurn(scope.admission.isObsolete());
        return asJson(await this.http.send(request, scope.egress.dispatcher, scope.context, isBlocked));
      });
      if (call.fields !== null && response.kind === 'json') {
        this.events.count('fields', call.client, response.whole ? 'ignored' : 'honoured');
      }
      return response;
    };
    return withRetries(attempt, scope.budget, scope.context);
  }

  /**
   * Fetches a text that an answer pointed to, with the face of the client that was answered. Rejects only when
   * `context.signal` is aborted.
   */
  async get(kind: string, client: InnertubeClientName, url: URL, scope: RequestScope): Promise<UpstreamResponse> {
    const requests = await loadRequestTemplates();
    const headers = { accept: '*/*', 'accept-language': 'en', 'user-agent': requests.userAgent(client) };
    const attempt = () =>
      this.counted({ kind, client }, scope, (onTurn) =>
        this.http.send({ url, headers }, scope.egress.dispatcher, scope.context, () => onTurn(false)),
      );
    // An empty text is no accident that passes: it is how a caption URL refuses, so it is not tried again here. Nor is
    // a text held back by what other videos met meanwhile: whoever was given its URL is not refused.
    return withRetries(attempt, scope.budget, scope.context);
  }

  /**
   * Tells of a request when it has ended, with the time since its turn came: waiting for it says nothing of the platform.
   *
   * @param send calls `onTurn` when the turn comes, with whether it is not sent after all, which is what `onTurn` returns
   */
  private async counted<T extends UpstreamResponse | JsonResponse>(
    { kind, client }: Pick<InnertubeCall, 'kind' | 'client'>,
    { egress }: Pick<RequestScope, 'egress'>,
    send: (onTurn: (isBlocked: boolean) => boolean) => Promise<T>,
  ): Promise<T> {
    let sentAtMs: number | undefined;
    const parse = (outcome: string): void => {
      const seconds = (performance.now() - (sentAtMs ?? performance.now())) / 1000;
      this.events.request({ kind, client, egress: egress.name, outcome, seconds });
    };
    try {
      const response = await send((isBlocked) => {
        sentAtMs ??= performance.now();
        return isBlocked;
      });
      parse(outcomeOf(response));
      return response;
    } catch (error) {
      // Nobody waits for it any more. What was never sent is not told of.
      if (sentAtMs !== undefined) parse('aborted');
      throw error;
    }
  }

  /** Gives a client of an exit a new identity, after it was taken for a machine. */
  renewVisitorData(egress: Egress, client: InnertubeClientName): void {
    this.cachedVisitorData?.invalidate(egress, client);
  }

  private visitorDataCache(requests: InnertubeRequestTemplates): VisitorDataCache {
    this.cachedVisitorData ??= new VisitorDataCache(
      (egress, client) => this.requestVisitorData(requests, egress, client),
      () => requests.localVisitorData(),
    );
    return this.cachedVisitorData;
  }

  private async requestVisitorData(
    requests: InnertubeRequestTemplates,
    egress: Egress,
    client: InnertubeClientName,
  ): Promise<string | null> {
    const context: ReadingContext = {
      // Shared by whoever needs it next, so it does not end with the call that asked first.
      signal: AbortSignal.any([this.closing, AbortSignal.timeout(VISITOR_TIMEOUT_MS)]),
      deadlineAtMs: performance.now() + VISITOR_TIMEOUT_MS,
      fairnessKey: this.visitorFairnessKey,
    };
    const request = requests.compose(client, 'visitor_id', {}, requests.localVisitorData(), null);
    const response = await this.counted({ kind: 'visitor', client }, { egress }, async (onTurn) =>
      asJson(await this.http.send(request, egress.dispatcher, context, () => onTurn(false))),
    );
    if (response.kind !== 'json') return null;
    const visitorData = asString(at(response.value, 'responseContext', 'visitorData'));
    return visitorData && visitorData.length <= VISITOR_LENGTH_MAX && /^[\x21-\x7e]+$/.test(visitorData)
      ? visitorData
      : null;
  }
}

function asJson(response: UpstreamResponse): JsonResponse {
  if (response.kind !== 'ok') return response;
  // A JSON answer is never empty; what comes instead is told like the empty text of a caption URL that refuses.
  if (response.media === 'empty') return { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null };
  if (response.media === 'html') return { kind: 'unreadable', expected: 'JSON, not a page' };
  try {
    const value: unknown = JSON.parse(response.body);
    return { kind: 'json', value, whole: at(value, 'responseContext') !== undefined };
  } catch {
    return { kind: 'unreadable', expected: 'whole JSON' };
  }
}
