import { Injectable, Optional } from '@nestjs/common';
import { Environment } from '../../../config/environment.js';
import type { ReadingContext } from '../../video-platform.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import type { Egress, EgressUse } from './egress.js';
import { FairLimiter } from './fair-limiter.js';
import { ExchangeListener, isTimeout, type OutgoingRequest, transfer, UnreadableBodyError } from './http-transport.js';
import { addressKind } from './platform-url.js';
import type { AddressVerdict, ControlledAttempt, ControlledKind } from './request-control.js';
import { withRetries, type RetryBudget } from './retry.js';
import { classifyResponse, outcomeOf, withJson, type UpstreamResponse } from './upstream-response.js';

/** One attempt at a channel or video through one egress, to which requests belong. */
export interface RequestScope {
  readonly egress: Egress;
  readonly attempt: ControlledAttempt;
  readonly context: ReadingContext;
  /** The retries that all requests share. */
  readonly budget: RetryBudget;
}

/** One request on its way to the platform. */
export interface PendingRequest {
  /** Metric label: `player`, `uploads`, `captions`, … */
  readonly kind: string;
  /** Metric label: the InnerTube client that the request is sent as. */
  readonly client: string;
  readonly outgoing: OutgoingRequest;
  readonly scope: RequestScope;
  /** Whether the JSON of a response refuses the client that was used, such as a bot check. Default: it never does. */
  readonly refusesClient?: ((response: unknown) => boolean) | undefined;
}

/**
 * The only way to the platform. The steps of every request, in order: retries (`send`), its turn at the egress and among all
 * requests (`inTurn`), the count of its outcome (`exchange`), the timeout and the classification (`transferInTime`). A failure
 * is a response, never an exception: sending rejects only when the caller's signal is aborted, with its reason.
 */
@Injectable()
export class RequestPipeline {
  /** Receives every request instead of the platform; null for the platform itself. */
  private readonly baseUrl: URL | null;
  /** For one exchange, from leaving the queue to the last byte of the body. */
  private readonly timeoutMs: number;

  constructor(
    { YOUTUBE_BASE_URL, UPSTREAM_TIMEOUT_SECONDS }: Environment,
    private readonly limiter: FairLimiter,
    private readonly metrics: UpstreamMetrics,
    @Optional() private readonly listener?: ExchangeListener,
  ) {
    this.baseUrl = YOUTUBE_BASE_URL === undefined ? null : new URL(YOUTUBE_BASE_URL);
    this.timeoutMs = UPSTREAM_TIMEOUT_SECONDS * 1000;
  }

  /** @returns the body, of a POST parsed as JSON, or why there is none */
  send(request: PendingRequest): Promise<UpstreamResponse> {
    const { budget, context } = request.scope;
    return withRetries(() => this.inTurn(request), budget, context);
  }

  /** Waits for the turn of a request at its egress, and for one of the `UPSTREAM_CONCURRENCY` slots. */
  private async inTurn(request: PendingRequest): Promise<UpstreamResponse> {
    const { kind, client, scope } = request;
    const exchange = () => this.exchange(request);
    const controlled = controlledAs(kind);
    if (!controlled) return this.limiter.run(scope.context, exchange);
    const control = scope.egress.controls[controlled.use];
    const verdict = (response: UpstreamResponse) => verdictOf(request, response);
    const result = await control.run({ kind: controlled.kind, ...scope }, exchange, verdict);
    if (result.kind === 'busy' || (result.kind === 'blocked' && result.reason === 'exit-shut'))
      this.metrics.request({ kind, client, egress: scope.egress.name, outcome: outcomeOf(result), seconds: 0 });
    return result;
  }

  /** Sends the request and counts it, without the time that it waited. */
  private async exchange(request: PendingRequest): Promise<UpstreamResponse> {
    const { kind, client, scope, outgoing } = request;
    const startedAtMs = performance.now();
    let outcome = 'aborted';
    try {
      const received = await this.transferInTime(request);
      const response = outgoing.body === undefined ? received : withJson(received);
      outcome = outcomeOf(response);
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

/** What controls when a request is sent; undefined for what serves many channels and videos. */
function controlledAs(kind: string): { use: EgressUse; kind: ControlledKind } | undefined {
  switch (kind) {
    case 'captions':
    case 'player':
      return { use: 'video', kind };
    case 'microformat':
      return { use: 'video', kind: 'player' };
    case 'visitor':
    case 'player-script':
      return undefined;
    default:
      return { use: 'channel', kind: 'list' };
  }
}

/** What a response says about the address of its egress. */
function verdictOf({ client, refusesClient }: PendingRequest, response: UpstreamResponse): AddressVerdict {
  // WEB is refused for its token, which says nothing about the address.
  const doubtful: AddressVerdict = { kind: client === 'WEB' ? 'nothing' : 'doubtful' };
  switch (response.kind) {
    case 'ok':
      return refusesClient?.(response.json) || response.media === 'empty' ? doubtful : { kind: 'served' };
    case 'blocked':
      // That a 403 concerns the address is a guess, and an empty response can concern the client: other videos decide.
      if (response.reason === 'forbidden' || response.reason === 'empty-body') return doubtful;
      return { kind: 'refused', retryAfterSeconds: response.retryAfterSeconds };
    case 'busy':
    case 'http-error':
    case 'timeout':
    case 'network':
    case 'unreadable':
      return { kind: 'nothing' };
  }
}
