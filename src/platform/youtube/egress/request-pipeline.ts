import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, Optional } from '@nestjs/common';
import { Environment } from '../../../config/environment.js';
import type { ReadingContext } from '../../video-platform.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { Attempt, RetryBudget, type UseName } from './attempt.js';
import type { Egress } from './egress.js';
import {
  ExchangeListener,
  isTimeout,
  type OutgoingRequest,
  transfer,
  UnreadableBodyError,
  addressKind,
} from './http-transport.js';
import type { BudgetKind } from './line.js';
import { RequestQueue } from './request-queue.js';
import {
  classifyResponse,
  isHardRefusal,
  isUnreached,
  labelOf,
  withJson,
  type UpstreamResponse,
} from './upstream-response.js';

/** The n-th wait is anything from 0 to this times 2^n. */
const DELAY_BASE_MS = 250;
const DELAY_MAX_MS = 4_000;

/** One attempt at a channel or video through one egress, and what its requests share. */
export interface RequestScope {
  readonly egress: Egress;
  readonly attempt: Attempt;
  readonly context: ReadingContext;
  readonly budget: RetryBudget;
  readonly hasAlternative: boolean;
  /** The number of this attempt at the channel or video, from 1. */
  readonly attempts: number;
}

/** A scope of the service itself: no caller ends it, nothing holds its requests back, and none is retried. */
export function serviceScope(egress: Egress, subject: string, timeoutMs: number): RequestScope {
  const context = {
    signal: AbortSignal.timeout(timeoutMs),
    deadlineAtMs: performance.now() + timeoutMs,
    organizationId: '',
    fairnessKey: {},
  };
  const attempt = new Attempt(subject, 'control');
  return { egress, attempt, context, budget: new RetryBudget(0), hasAlternative: false, attempts: 1 };
}

export interface PendingRequest {
  /** Metric label: `player`, `uploads`, `captions`, … */
  readonly kind: string;
  /** Metric label: the InnerTube client that the request is sent as. */
  readonly client: string;
  readonly outgoing: OutgoingRequest;
  readonly scope: RequestScope;
}

/**
 * The only way to the platform. The steps of every request, in order: retries (`send`), its turn in the queue and what its
 * response says about the address (`inTurn`), the count of its result (`exchange`), the timeout and the classification
 * (`transferInTime`). A failure is a response, never an exception: sending rejects only when the caller's signal is aborted,
 * with its reason.
 */
@Injectable()
export class RequestPipeline {
  /** Receives every request instead of the platform; null for the platform itself. */
  private readonly baseUrl: URL | null;
  /** For one exchange, from leaving the queue to the last byte of the body. */
  private readonly timeoutMs: number;

  constructor(
    { YOUTUBE_BASE_URL, UPSTREAM_TIMEOUT_SECONDS }: Environment,
    private readonly queue: RequestQueue,
    private readonly metrics: UpstreamMetrics,
    @Optional() private readonly listener?: ExchangeListener,
  ) {
    this.baseUrl = YOUTUBE_BASE_URL === undefined ? null : new URL(YOUTUBE_BASE_URL);
    this.timeoutMs = UPSTREAM_TIMEOUT_SECONDS * 1000;
  }

  /** @returns the body, of a POST parsed as JSON, or why there is none */
  send(request: PendingRequest): Promise<UpstreamResponse> {
    const { budget, context, hasAlternative } = request.scope;
    return withRetries(() => this.inTurn(request), budget, context, hasAlternative);
  }

  /** Waits for the turn of a request, and learns from its response what is certain about the address. */
  private async inTurn(request: PendingRequest): Promise<UpstreamResponse> {
    const { client, scope } = request;
    const { egress, attempt, context } = scope;
    const { use, budget } = budgetOf(request.kind);
    const { line } = egress.uses[use];
    const sent = () => this.exchange(request);
    const response =
      (attempt.role === 'optional' ? egress.optional.refusal(request.kind) : null) ??
      (await this.queue.run(line, { kind: budget ?? request.kind, attempt, context }, sent));
    if (response.kind === 'busy' || (response.kind === 'blocked' && response.reason === 'exit-shut'))
      this.metrics.request({ kind: request.kind, client, egress: egress.name, outcome: labelOf(response), seconds: 0 });
    else if (attempt.role === 'optional') egress.optional.learn(request.kind, response);
    else if (budget && attempt.role === 'wanted') {
      if (response.kind === 'blocked' && isHardRefusal(response) && !egress.gateway)
        line.pause(budget, response.retryAfterSeconds);
      // What a response about a video says is in its content.
      if (budget === 'list' && response.kind === 'ok') {
        line.answered(budget);
        egress.uses[use].served(budget, client, attempt.sentAtMs);
      }
    }
    return response;
  }

  /** Sends the request and counts it, without the time that it waited. */
  private async exchange(request: PendingRequest): Promise<UpstreamResponse> {
    const { kind, client, scope, outgoing } = request;
    const startedAtMs = performance.now();
    let outcome = 'aborted';
    try {
      const received = await this.transferInTime(request);
      const response = outgoing.body === undefined ? received : withJson(received);
      outcome = labelOf(response);
      return response;
    } finally {
      const seconds = (performance.now() - startedAtMs) / 1000;
      this.metrics.request({ kind, client, egress: scope.egress.name, outcome, seconds });
    }
  }

  /**
   * Sends nothing to a host that is not the platform's. One timer runs over the whole exchange: a response that sends a byte
   * a second would reset a timer between bytes.
   */
  private async transferInTime({ kind, client, outgoing, scope }: PendingRequest): Promise<UpstreamResponse> {
    const { signal, onRequest } = scope.context;
    if (addressKind(outgoing.url) !== 'allowed') return { kind: 'unreadable', expected: 'a URL of the platform' };
    signal.throwIfAborted();
    const exchange = new AbortController();
    const onAbort = () => exchange.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      exchange.abort();
    }, this.timeoutMs);
    try {
      onRequest?.();
      const response = await transfer(outgoing, scope.egress.dispatcher, exchange.signal, this.baseUrl);
      this.listener?.exchanged({ kind, client, outgoing, response });
      return classifyResponse(response.status, response.headers, response.body, kind);
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
}

/** What a request is sent for, and the budget that it counts in; null for none. */
function budgetOf(kind: string): { use: UseName; budget: BudgetKind | null } {
  switch (kind) {
    case 'captions':
    case 'player':
      return { use: 'video', budget: kind };
    case 'microformat':
      return { use: 'video', budget: 'player' };
    case 'visitor':
    case 'player-script':
      return { use: 'video', budget: null };
    default:
      return { use: 'channel', budget: kind === 'feed' ? null : 'list' };
  }
}

/** Randomness and time, which tests replace. Waiting rejects with the signal's reason when it is aborted. */
export const REAL_RETRY_ENVIRONMENT = {
  random: (): number => Math.random(),
  now: (): number => performance.now(),
  sleep: (ms: number, signal: AbortSignal): Promise<void> =>
    wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted()),
};

/**
 * Repeats a request after a transient failure: a 5xx, a broken connection, a timeout, a truncated or empty response. Any other
 * response is returned immediately, a refusal too because another egress may serve, and so is a failure whose retry would
 * start after the deadline.
 *
 * @param hasAlternative whether another egress can be tried: then it is, where no response of the platform arrived
 */
export async function withRetries(
  send: () => Promise<UpstreamResponse>,
  budget: RetryBudget,
  context: ReadingContext,
  hasAlternative: boolean,
  environment: typeof REAL_RETRY_ENVIRONMENT = REAL_RETRY_ENVIRONMENT,
): Promise<UpstreamResponse> {
  for (let retries = 0; ; retries += 1) {
    const response = await send();
    const waitMs = environment.random() * Math.min(DELAY_MAX_MS, DELAY_BASE_MS * 2 ** retries);
    const isLate = environment.now() + waitMs >= context.deadlineAtMs;
    if (!isTransient(response) || (hasAlternative && isUnreached(response)) || isLate || !budget.take())
      return response;
    await environment.sleep(waitMs, context.signal);
  }
}

function isTransient(response: UpstreamResponse): boolean {
  if (response.kind === 'blocked') return response.reason === 'empty-body';
  if (response.kind === 'http-error') return response.status >= 500 || response.status === 408;
  return response.kind !== 'ok' && response.kind !== 'busy';
}
