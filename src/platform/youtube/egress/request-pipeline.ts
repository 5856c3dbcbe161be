import type { ReadingContext } from '../../video-platform.js';
import type { CompletedRequest } from '../upstream-metrics.js';
import type { Egress } from './egress.js';
import type { EgressPool } from './egress-pool.js';
import type { FairLimiter } from './fair-limiter.js';
import {
  isTimeout,
  transfer,
  UnreadableBodyError,
  type ExchangeListener,
  type OutgoingRequest,
  type RawResponse,
} from './http-transport.js';
import { addressKind, redirectTarget } from './platform-url.js';
import { busy, DEADLINE_MARGIN_MS, timeLeftMs, type AddressVerdict, type RequestControl } from './request-control.js';
import { withRetries, type RetryBudget } from './retry.js';
import {
  classifyResponse,
  outcomeOf,
  parseJson,
  type FailedResponse,
  type JsonResponse,
  type UpstreamResponse,
} from './upstream-response.js';

const REDIRECTS_MAX = 3;
/** Through how many egresses one caption text is requested. */
const CAPTION_EGRESSES_MAX = 3;

/** One attempt at a channel or video through one egress, to which requests belong. */
export interface RequestScope {
  readonly egress: Egress;
  /** The channel or video. */
  readonly subject: string;
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

type Parse<R> = (response: UpstreamResponse) => R | FailedResponse;

/**
 * The only way to the platform. The steps of every request, in order: retries (`send`), another egress for captions
 * (`throughEgresses`), its turn at the egress (`inTurn`), its turn among all requests (`exchange`), redirects (`follow`), the
 * timeout (`transferInTime`). A failure is a response, never an exception: sending rejects only when the caller's signal is
 * aborted, with its reason.
 */
export class RequestPipeline {
  constructor(private readonly options: PipelineOptions) {}

  /** @returns the parsed JSON, or why there is none */
  json(request: PendingRequest): Promise<JsonResponse> {
    return this.send<JsonResponse>(request, (response) => (response.kind === 'ok' ? parseJson(response) : response));
  }

  /** @returns the body as text, or why there is none */
  text(request: PendingRequest): Promise<UpstreamResponse> {
    return this.send<UpstreamResponse>(request, (response) => response);
  }

  private send<R extends UpstreamResponse | JsonResponse>(
    request: PendingRequest,
    parse: Parse<R>,
  ): Promise<R | FailedResponse> {
    const { budget, context } = request.scope;
    return withRetries(() => this.throughEgresses(request, parse), budget, context);
  }

  /**
   * Sends a caption request that was refused, or that would wait too long, through another egress: asking for the player
   * again would cost a request more. The URL must not be signed for an address (all recorded ones have `ip=0.0.0.0`).
   */
  private async throughEgresses<R extends UpstreamResponse | JsonResponse>(
    request: PendingRequest,
    parse: Parse<R>,
  ): Promise<R | FailedResponse> {
    const { egresses } = this.options;
    let result = await this.inTurn(request, parse);
    if (request.kind !== 'captions' || !egresses || !isForAnyAddress(request.outgoing.url)) return result;
    const tried = [request.scope.egress.name];
    while (isEgressUnable(result) && tried.length < CAPTION_EGRESSES_MAX) {
      const other = egresses.takeForCaptions(request.scope.context, tried);
      if (!other) break;
      const { egress } = other;
      tried.push(egress.name);
      const scope = { ...request.scope, egress };
      try {
        const second = await this.inTurn({ ...request, scope }, parse);
        if (!isEgressUnable(second) || result.kind !== 'busy') result = second;
      } finally {
        egress.controls.captions.leave(scope);
        other.release();
      }
    }
    return result;
  }

  /** Waits for the turn of a player or caption request at its egress. */
  private async inTurn<R extends UpstreamResponse | JsonResponse>(
    request: PendingRequest,
    parse: Parse<R>,
  ): Promise<R | FailedResponse> {
    const { kind, client, scope } = request;
    const { egress } = scope;
    const control = controlOf(request);
    if (!control) return this.exchange(request, parse);
    const result =
      (kind === 'player' ? await withoutCaptions(scope) : null) ??
      (await control.run(
        scope,
        () => this.exchange(request, parse, control),
        (response) => verdictOf(request, response),
      ));
    if (isNotSent(result)) {
      this.options.metrics.request({ kind, client, egress: egress.name, outcome: outcomeOf(result), seconds: 0 });
    }
    return result;
  }

  /** Waits for one of the `UPSTREAM_CONCURRENCY` slots, sends the request and counts it, without the time that it waited. */
  private exchange<R extends UpstreamResponse | JsonResponse>(
    request: PendingRequest,
    parse: Parse<R>,
    control?: RequestControl,
  ): Promise<R | FailedResponse> {
    const { kind, client, scope } = request;
    return this.options.limiter.run(scope.context, async () => {
      control?.recheck(scope);
      const startedAtMs = performance.now();
      let outcome = 'aborted';
      try {
        const response = parse(await this.follow(request));
        outcome = outcomeOf(response);
        return response;
      } finally {
        const seconds = (performance.now() - startedAtMs) / 1000;
        this.options.metrics.request({ kind, client, egress: scope.egress.name, outcome, seconds });
      }
    });
  }

  /** Follows redirects within the platform's hosts; sends nothing to any other host. */
  private async follow(request: PendingRequest): Promise<UpstreamResponse> {
    const { kind, outgoing } = request;
    let { url } = outgoing;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      if (addressKind(url) !== 'allowed') return { kind: 'unreadable', expected: 'a URL of the platform' };
      const response = await this.transferInTime(request, { ...outgoing, url });
      if (response.kind !== 'raw') return response;
      const target = redirectTarget(response, url, this.options.baseUrl);
      if (!target) return classifyResponse(response.status, response.headers, response.body, kind);
      const targetKind = addressKind(target);
      if (targetKind === 'captcha' || targetKind === 'consent')
        return { kind: 'blocked', reason: targetKind, retryAfterSeconds: null };
      if (targetKind === 'foreign') return { kind: 'unreadable', expected: "a redirect within the platform's hosts" };
      url = target;
    }
    return { kind: 'unreadable', expected: `at most ${REDIRECTS_MAX} redirects` };
  }

  /** One timer over the whole exchange: a response that sends a byte a second would reset a timer between bytes. */
  private async transferInTime(
    { kind, client, scope }: PendingRequest,
    outgoing: OutgoingRequest,
  ): Promise<RawResponse | FailedResponse> {
    const { options } = this;
    const { signal, onRequest } = scope.context;
    signal.throwIfAborted();
    const exchange = new AbortController();
    const onAbort = () => exchange.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      exchange.abort();
    }, options.timeoutMs);
    try {
      onRequest?.();
      const response = await transfer(outgoing, scope.egress.dispatcher, exchange.signal, options);
      options.listener?.exchanged({ kind, client, outgoing, response });
      return response;
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

/** What decides when a request is sent; undefined for lists and other rare requests. Exact dates come from the player, too. */
function controlOf({ kind, scope }: PendingRequest): RequestControl | undefined {
  const { player, captions } = scope.egress.controls;
  if (kind === 'captions') return captions;
  return kind === 'player' || kind === 'microformat' ? player : undefined;
}

/** Without its captions a player response would be requested in vain. @returns null when they can be requested in time */
async function withoutCaptions(scope: RequestScope): Promise<FailedResponse | null> {
  const { player, captions } = scope.egress.controls;
  const refused = await captions.admit(scope);
  if (refused) return refused;
  const waitMs = captions.waitMs(scope.context, player.pending);
  return waitMs > 0 && waitMs > timeLeftMs(scope) - DEADLINE_MARGIN_MS ? busy(waitMs) : null;
}

/** What a response says about the address of its egress. */
function verdictOf(
  { client, refusesClient }: PendingRequest,
  response: UpstreamResponse | JsonResponse,
): AddressVerdict {
  const verdict = verdictOfResponse(client, response, refusesClient);
  // WEB is refused for its token, which says nothing about the address.
  const aboutToken = client === 'WEB' && (verdict.kind === 'doubtful' || verdict.kind === 'withheld');
  return aboutToken ? { kind: 'nothing' } : verdict;
}

function verdictOfResponse(
  client: string,
  response: UpstreamResponse | JsonResponse,
  refusesClient: PendingRequest['refusesClient'],
): AddressVerdict {
  switch (response.kind) {
    case 'json':
      return refusesClient?.(response.value) ? { kind: 'doubtful', client } : { kind: 'served' };
    case 'ok':
      return { kind: response.media === 'empty' ? 'withheld' : 'served' };
    case 'blocked':
      // That a 403 concerns the address is a guess, and an empty response can concern the client: other videos decide.
      if (response.reason === 'forbidden' || response.reason === 'empty-body') return { kind: 'doubtful', client };
      return { kind: 'refused', retryAfterSeconds: response.retryAfterSeconds };
    case 'busy':
    case 'http-error':
    case 'timeout':
    case 'network':
    case 'unreadable':
      return { kind: 'nothing' };
  }
}

function isNotSent(result: UpstreamResponse | JsonResponse): boolean {
  return result.kind === 'busy' || (result.kind === 'blocked' && result.reason === 'exit-shut');
}

function isForAnyAddress(url: URL): boolean {
  const address = url.searchParams.get('ip');
  return address === null || address === '0.0.0.0';
}

function isEgressUnable(result: UpstreamResponse | JsonResponse): boolean {
  return result.kind === 'busy' || (result.kind === 'blocked' && result.reason !== 'empty-body');
}
