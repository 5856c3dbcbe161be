import type { ReadingContext } from '../../video-platform.js';
import type { CompletedRequest } from '../upstream-metrics.js';
import type { Admission } from './circuit-breaker.js';
import type { Egress } from './egress.js';
import type { EgressPool } from './egress-pool.js';
import { PACED_KINDS, type PacedKind } from './egress-state.js';
import type { ExchangeListener } from './exchange-listener.js';
import type { FairLimiter } from './fair-limiter.js';
import { isTimeout, transfer, UnreadableBodyError, type OutgoingRequest, type RawResponse } from './http-transport.js';
import { addressKind, redirectTarget } from './platform-url.js';
import { withRetries, type RetryBudget } from './retry.js';
import {
  outcomeOf,
  parseJson,
  type JsonResponse,
  type UpstreamResponse,
  classifyResponse,
} from './upstream-response.js';

const REDIRECTS_MAX = 3;
/** Through how many egresses one caption text is requested. */
const CAPTION_EGRESSES_MAX = 3;

/** The call that requests belong to, the egress that they use, and the retries that they share. */
export interface RequestScope {
  readonly egress: Egress;
  readonly admission: Admission;
  readonly context: ReadingContext;
  readonly budget: RetryBudget;
}

/** A server beside the platform's site. Its requests follow no redirect, which could pass a key on to another host. */
export interface OtherServer {
  readonly origin: string;
  classify(response: RawResponse): UpstreamResponse;
}

/** One request on its way to the platform. */
export interface PendingRequest {
  /** Metric label: `player`, `uploads`, `captions`, … */
  readonly kind: string;
  /** Metric label: the InnerTube client that the request is sent as. */
  readonly client: string;
  readonly expects: 'json' | 'text';
  readonly outgoing: OutgoingRequest;
  readonly scope: Pick<RequestScope, 'egress' | 'context' | 'budget'> & Partial<Pick<RequestScope, 'admission'>>;
  /** Default: the platform's site. */
  readonly server?: OtherServer;
  /** Whether the egress was blocked while the request was queued. */
  readonly isObsolete: () => boolean;
}

export interface PipelineOptions {
  /** Where caption requests find another egress; without it they use one only. */
  readonly egresses?: Pick<EgressPool, 'takeForCaptions'>;
  readonly limiter: FairLimiter;
  /** Receives every request instead of the platform; null for the platform itself. */
  readonly baseUrl: URL | null;
  /** For one exchange, from leaving the queue to the last byte of the body. */
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly metrics: { request(request: CompletedRequest): void };
  readonly listener?: ExchangeListener | undefined;
}

/** A request inside the pipeline. */
interface RequestInFlight extends PendingRequest {
  readonly options: PipelineOptions;
  /** Ends the exchange: aborted when the caller disconnects and at the timeout. */
  readonly signal: AbortSignal;
  /** `startedAtMs` is set when the request leaves the queue, in milliseconds of `performance.now()`. */
  readonly timing: { startedAtMs?: number };
}

type Result = RawResponse | UpstreamResponse | JsonResponse;
type Next = (attempt: RequestInFlight) => Promise<Result>;
type Step = (attempt: RequestInFlight, next: Next) => Promise<Result>;

/** The steps of every request, in order; its response passes them in reverse order. */
const STEPS: readonly Step[] = [
  retryTransientFailures,
  failOverCaptions,
  recordOutcome,
  waitForPace,
  parseExpectedJson,
  classify,
  followRedirects,
  waitInQueue,
  dropObsolete,
  limitDuration,
  send,
];

/**
 * The only way to the platform. A failure is a response, never an exception: sending rejects only when the caller's
 * signal is aborted, with its reason.
 */
export class RequestPipeline {
  constructor(private readonly options: PipelineOptions) {}

  /** @returns the parsed JSON, or why there is none */
  async json(request: Omit<PendingRequest, 'expects'>): Promise<JsonResponse> {
    const result = classified(await this.run({ ...request, expects: 'json' }));
    return result.kind === 'ok' ? { kind: 'unreadable', expected: 'JSON' } : result;
  }

  /** @returns the body as text, or why there is none */
  async text(request: Omit<PendingRequest, 'expects'>): Promise<UpstreamResponse> {
    const result = classified(await this.run({ ...request, expects: 'text' }));
    return result.kind === 'json' ? { kind: 'unreadable', expected: 'text' } : result;
  }

  private run(request: PendingRequest): Promise<Result> {
    const { options } = this;
    return runFrom(0, { ...request, options, signal: request.scope.context.signal, timing: {} });
  }
}

function runFrom(index: number, attempt: RequestInFlight): Promise<Result> {
  const step = STEPS[index];
  if (!step) throw new Error('The last step of the pipeline does not call the next one.');
  return step(attempt, (passedOn) => runFrom(index + 1, passedOn));
}

/** Steps outside `classify` see no raw response; anything else is an error in the order of the steps. */
function classified(result: Result): Exclude<Result, RawResponse> {
  if (result.kind === 'raw') throw new Error('A response left the pipeline unclassified.');
  return result;
}

function retryTransientFailures(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { budget, context } = attempt.scope;
  return withRetries(async () => classified(await next({ ...attempt, timing: {} })), budget, context);
}

/**
 * Sends a caption request that was refused, or that the pace delays too long, through another egress: asking for the player
 * again would cost a request more. The URL must not be signed for an address (all recorded ones have `ip=0.0.0.0`).
 */
async function failOverCaptions(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { egresses } = attempt.options;
  let result = classified(await next(attempt));
  if (attempt.kind !== 'captions' || !egresses || !isAnyAddress(attempt.outgoing.url)) return result;
  const { egress, context, budget } = attempt.scope;
  const tried = [egress.name];
  while (isEgressUnable(result) && tried.length < CAPTION_EGRESSES_MAX) {
    const other = egresses.takeForCaptions(context, tried);
    if (!other) break;
    tried.push(other.egress.name);
    try {
      const scope = { egress: other.egress, context, budget };
      const second = classified(await next({ ...attempt, scope, timing: {}, isObsolete: () => false }));
      if (!isEgressUnable(second) || result.kind !== 'busy') result = second;
    } finally {
      other.release();
    }
  }
  return result;
}

function isAnyAddress(url: URL): boolean {
  const address = url.searchParams.get('ip');
  return address === null || address === '0.0.0.0';
}

function isEgressUnable(result: Exclude<Result, RawResponse>): boolean {
  return result.kind === 'busy' || (result.kind === 'blocked' && result.reason !== 'empty-body');
}

/** Sends player and caption requests at the pace of their egress, and learns it from their responses. */
async function waitForPace(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { scope, kind } = attempt;
  const { pacer } = scope.egress;
  const paced = pacedKindOf(kind);
  if (!pacer || !paced) return next(attempt);
  const { admission } = scope;
  // Exact dates are optional: they are no probe, and are followed by no captions.
  const attemptAtVideo = kind === 'microformat' ? undefined : admission;
  const turn = await pacer.waitForTurn(paced, scope.context, attemptAtVideo);
  if (!turn.send) return turn.response;
  const result = classified(await next(attempt));
  // Whether a probe succeeded is decided by what was read: a bot check is a complete response.
  pacer.learn(paced, result, admission);
  return result;
}

/** The budget that a kind of request uses; exact dates come from the player, too. */
function pacedKindOf(kind: string): PacedKind | null {
  return kind === 'microformat' ? 'player' : (PACED_KINDS.find((paced) => paced === kind) ?? null);
}

/** Counts the completed request. Its duration excludes the time in the queue, which is not caused by the platform. */
async function recordOutcome(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { kind, client, scope, timing, options } = attempt;
  const record = (outcome: string): void => {
    const nowMs = performance.now();
    const seconds = (nowMs - (timing.startedAtMs ?? nowMs)) / 1000;
    options.metrics.request({ kind, client, egress: scope.egress.name, outcome, seconds });
  };
  try {
    const result = await next(attempt);
    record(outcomeOf(classified(result)));
    return result;
  } catch (error) {
    // The caller disconnected. A request that was never sent is not counted.
    if (timing.startedAtMs !== undefined) record('aborted');
    throw error;
  }
}

async function parseExpectedJson(attempt: RequestInFlight, next: Next): Promise<Result> {
  const result = await next(attempt);
  return attempt.expects === 'json' && result.kind === 'ok' ? parseJson(result) : result;
}

async function classify(attempt: RequestInFlight, next: Next): Promise<Result> {
  const result = await next(attempt);
  if (result.kind !== 'raw') return result;
  const { server, kind } = attempt;
  return server?.classify(result) ?? classifyResponse(result.status, result.headers, result.body, kind);
}

/** Follows redirects within the platform's hosts; sends nothing to any other host. */
async function followRedirects(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { server, outgoing } = attempt;
  if (server && outgoing.url.origin !== server.origin)
    return { kind: 'unreadable', expected: `a URL of ${server.origin}` };
  if (server) return next(attempt);
  let current = attempt;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const { url } = current.outgoing;
    if (addressKind(url) !== 'allowed') return { kind: 'unreadable', expected: 'a URL of the platform' };
    const result = await next(current);
    const target = result.kind === 'raw' ? redirectTarget(result, url, attempt.options.baseUrl) : null;
    if (!target) return result;
    const kind = addressKind(target);
    if (kind === 'captcha' || kind === 'consent') return { kind: 'blocked', reason: kind, retryAfterSeconds: null };
    if (kind === 'foreign') return { kind: 'unreadable', expected: "a redirect within the platform's hosts" };
    current = { ...current, outgoing: { ...current.outgoing, url: target } };
  }
  return { kind: 'unreadable', expected: `at most ${REDIRECTS_MAX} redirects` };
}

function waitInQueue(attempt: RequestInFlight, next: Next): Promise<Result> {
  return attempt.options.limiter.run(attempt.scope.context, () => {
    attempt.timing.startedAtMs ??= performance.now();
    return next(attempt);
  });
}

/** More requests through a blocked egress make the block last longer. */
function dropObsolete(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { scope, kind } = attempt;
  const probing = scope.admission?.probe ?? false;
  const captionsPaused = kind === 'captions' && !probing && scope.egress.pacer?.isPaused('captions');
  if (!attempt.isObsolete() && !captionsPaused) return next(attempt);
  return Promise.resolve({ kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: null });
}

/** One timer over the whole exchange: a response that sends a byte a second would reset a timer between bytes. */
async function limitDuration(attempt: RequestInFlight, next: Next): Promise<Result> {
  const { signal } = attempt;
  signal.throwIfAborted();
  const exchange = new AbortController();
  const onAbort = () => exchange.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    exchange.abort();
  }, attempt.options.timeoutMs);
  try {
    return await next({ ...attempt, signal: exchange.signal });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (timedOut || isTimeout(error)) return { kind: 'timeout' };
    if (error instanceof UnreadableBodyError) return { kind: 'unreadable', expected: error.message };
    return { kind: 'network', cause: error };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

async function send({ kind, client, outgoing, scope, signal, options }: RequestInFlight): Promise<RawResponse> {
  scope.context.onRequest?.();
  const response = await transfer(outgoing, scope.egress.dispatcher, signal, options);
  options.listener?.exchanged({ kind, client, outgoing, response });
  return response;
}
