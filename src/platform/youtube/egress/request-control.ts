import type { ReadingContext, Requester } from '../../video-platform.js';
import type { FairLimiter } from './fair-limiter.js';
import type { SendingRate } from './sending-rate.js';
import type { FailedResponse } from './upstream-response.js';

/** How many channels or videos are started at a time after the start and after a pause. */
const WINDOW_FIRST = 4;
/** The first pause without a `Retry-After`; each refused probe doubles it. */
const PAUSE_FIRST_MS = 30_000;
const PAUSE_MAX_MS = 3_600_000;
/** This many of them refused in a row mean that the address is refused: the captions of single videos are withheld for good. */
const REFUSALS_MAX = { player: 2, captions: 5, list: 2 } as const;
/** This many refused attempts in a row mean that nearly all addresses of a gateway are refused. */
const GATEWAY_REFUSALS_MAX = 100;
/** The time that a request needs before the deadline of its call. */
const DEADLINE_MARGIN_MS = 1_000;

/** The kinds of requests, each with a budget of its own. A video needs its player and then its captions. */
export type ControlledKind = keyof typeof REFUSALS_MAX;

/**
 * What a response says about the address. `refused`: it is refused, whatever is asked. `doubtful`: it, the client or the
 * video is refused. `nothing`: a failure, which says nothing.
 */
export type AddressVerdict =
  { kind: 'served' | 'doubtful' | 'nothing' } | { kind: 'refused'; retryAfterSeconds: number | null };

/** An attempt at a channel or video through one egress, told apart by its identity from others at the same one. */
export interface ControlledAttempt {
  /** The channel or video. */
  readonly subject: string;
}

interface ControlledRequest {
  readonly kind: ControlledKind;
  readonly attempt: ControlledAttempt;
  readonly context: ReadingContext;
}

/** Why a request was not sent. */
type NotSent = Extract<FailedResponse, { kind: 'busy' | 'blocked' }>;

interface RequestControlOptions {
  /** Runs the requests of all egresses, `UPSTREAM_CONCURRENCY` at a time. */
  limiter: FairLimiter;
  /** Of each kind of request that an attempt sends. */
  rates: ReadonlyMap<ControlledKind, SendingRate>;
  /** A gateway, whose addresses change: a refusal concerns one of them. */
  rotating: boolean;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Called when a pause begins or is prolonged (with its milliseconds), and when it has ended (with null). */
  onPause: (pauseMs: number | null) => void;
}

/**
 * Decides when the requests for one use (videos or channels) are sent through one egress. The platform's budgets are unknown,
 * differ by address and change, so they are found out as TCP finds out the capacity of a network:
 *
 * - Slow start: 4 videos are started at a time after the start and after a pause, and one more for each request that is
 *   served, up to `UPSTREAM_CONCURRENCY`. So the first refusal meets few requests in flight.
 * - The rate of each kind of request is unlimited until the first refusal, then increases additively and decreases
 *   multiplicatively (`SendingRate`). A video starts when the rates allow its requests; the later ones then go at once,
 *   because without them the first was sent in vain.
 * - A refusal of the address (429, a captcha, …) pauses the egress: for `Retry-After`, else for 30 s, doubled up to an hour by
 *   each refused probe. The first channel or video after the pause is the probe; the others wait for its result.
 * - A refusal of a client (a bot check) may concern the client or the address. The video that received it asks further
 *   clients, and the others wait for its result. Served, they go on; refused as a second video was, the egress is paused.
 *
 * A request whose turn would come after the deadline of its call is `busy` at once. Replicas share nothing: like TCP
 * connections they divide the budget among themselves.
 */
export class RequestControl {
  private window: number;
  /** The running requests that are the first of their attempt. */
  private starting = 0;
  /** The requests that wait for their turn. */
  private readonly waiting = new Set<ControlledRequest>();
  /** The attempts of which a request was sent, with the kinds of which the rates have counted one in advance. */
  private readonly started = new Map<ControlledAttempt, Set<ControlledKind>>();
  readonly rates: ReadonlyMap<ControlledKind, SendingRate>;
  /** The channels or videos (of a gateway the attempts) that were refused since a request of the kind was served. */
  private readonly refusals = { player: new Set<unknown>(), captions: new Set<unknown>(), list: new Set<unknown>() };
  /** The kind that is or may be refused, until a request of it is served; null while none is. */
  private refusedKind: ControlledKind | null = null;
  /** The attempt that finds out whether the address is refused; null until one is at hand. */
  private asker: ControlledAttempt | null = null;
  private pausedUntilMs = 0;
  /** Of the pause that is in force or being probed; 0 while there is none. */
  private pauseMs = 0;

  constructor(private readonly options: RequestControlOptions) {
    this.window = options.rotating ? options.limiter.slots : WINDOW_FIRST;
    this.rates = options.rates;
  }

  /** Whether nothing is known to be refused now. */
  get open(): boolean {
    return this.refusedKind === null;
  }

  /** Whether an attempt finds out if the address is refused: others would wait for it. */
  get asking(): boolean {
    return this.asker !== null;
  }

  /** Whether the address was refused, and no probe was served since. */
  get refused(): boolean {
    return this.pauseMs > 0;
  }

  /** Milliseconds until a probe may be sent; 0 while requests may be sent. */
  get pauseRemainingMs(): number {
    return Math.max(0, this.pausedUntilMs - this.options.now());
  }

  /** How many requests of a kind wait for their turn. */
  queued(kind: ControlledKind): number {
    return [...this.waiting].filter((request) => request.kind === kind).length;
  }

  /** Milliseconds until the rates let one more attempt start, after the waiting ones that go before it. */
  waitMs(requester: Requester): number {
    return this.ratesMs(requester, this.before(requester));
  }

  /**
   * Sends a request in its turn. Rejects with the reason of the caller's signal when it is aborted.
   *
   * @param verdictOf what the response says about the address
   */
  async run<R>(
    request: ControlledRequest,
    send: () => Promise<R>,
    verdictOf: (response: R) => AddressVerdict,
  ): Promise<R | NotSent> {
    const { attempt, context } = request;
    context.signal.throwIfAborted();
    const refusal = this.refusal(request, this.waitMs(context));
    if (refusal) return refusal;
    const inTurn = async (): Promise<R | NotSent> => {
      this.waiting.delete(request);
      const lateRefusal = this.refusal(request, this.ratesMs(context));
      if (lateRefusal) return lateRefusal;
      const starting = Number(!this.started.has(attempt));
      this.starting += starting;
      this.begin(request);
      try {
        const response = await send();
        this.learn(request, verdictOf(response));
        return response;
      } finally {
        this.starting -= starting;
      }
    };
    this.waiting.add(request);
    try {
      return await this.options.limiter.run(context, inTurn, () => this.turnMs(request));
    } finally {
      this.waiting.delete(request);
    }
  }

  /** An attempt has ended: what it was refused may decide about the address, or else the next one finds out. */
  leave(attempt: ControlledAttempt): void {
    const asked = this.asker === attempt;
    const counted = this.started.get(attempt) ?? new Set();
    this.started.delete(attempt);
    for (const [kind, rate] of this.rates) {
      if (counted.has(kind)) rate.spend(-1);
      const refusals = this.refusals[kind];
      const max = this.options.rotating ? GATEWAY_REFUSALS_MAX : REFUSALS_MAX[kind];
      if (refusals.has(this.refusable(attempt)) && (refusals.size >= max || (asked && this.refused)))
        this.pause(kind, null);
    }
    if (asked) this.asker = null;
    this.options.limiter.startNext();
  }

  /** Milliseconds until a request may be sent, or its refusal is known; Infinity until the state changes. */
  private turnMs(request: ControlledRequest): number {
    const waitMs = this.ratesMs(request.context);
    if (this.refusal(request, waitMs)) return 0;
    if (this.asker !== null && this.asker !== request.attempt && this.concerns(request)) return Infinity;
    if (this.isNext(request.attempt)) return 0;
    return this.starting < this.window ? waitMs : Infinity;
  }

  /** Why a request is not sent that would have to wait for so long. */
  private refusal(request: ControlledRequest, waitMs: number): NotSent | null {
    const pauseMs = this.concerns(request) ? this.pauseRemainingMs : 0;
    if (pauseMs > 0) return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: secondsOf(pauseMs) };
    const leftMs = request.context.deadlineAtMs - DEADLINE_MARGIN_MS - performance.now();
    if (waitMs === 0 || waitMs <= leftMs || this.isNext(request.attempt)) return null;
    return { kind: 'busy', retryAfterSeconds: secondsOf(waitMs) };
  }

  /** Whether a refusal concerns a request. Captions of which the player was served are sent although players are refused. */
  private concerns({ kind }: ControlledRequest): boolean {
    return kind !== 'captions' || this.refusedKind !== 'player';
  }

  private ratesMs(requester: Requester, ahead = 0): number {
    return Math.max(0, ...[...this.rates.values()].map((rate) => rate.waitMs(isBackground(requester), ahead)));
  }

  /** Whether window and rates do not hold back the requests of an attempt. */
  private isNext(attempt: ControlledAttempt): boolean {
    return !this.open || this.started.has(attempt);
  }

  private begin(request: ControlledRequest): void {
    const { kind, attempt } = request;
    if (!this.open && this.concerns(request)) this.asker = attempt;
    const counted = this.started.get(attempt) ?? new Set(this.rates.keys());
    if (!this.started.has(attempt)) for (const rate of this.rates.values()) rate.spend(1);
    this.started.set(attempt, counted);
    if (!counted.delete(kind)) this.rates.get(kind)?.spend(1);
  }

  private learn(request: ControlledRequest, verdict: AddressVerdict): void {
    if (verdict.kind === 'served') this.served(request);
    else if (verdict.kind === 'refused' && !this.options.rotating) this.pause(request.kind, verdict.retryAfterSeconds);
    else if (verdict.kind !== 'nothing') this.doubted(request);
  }

  private served({ kind, attempt }: ControlledRequest): void {
    // What was sent before a refusal proves nothing about it, nor does another kind of request.
    if (!this.open && (this.asker !== attempt || this.refusedKind !== kind)) return;
    this.refusals[kind].clear();
    this.window = Math.min(this.options.limiter.slots, this.window + 1);
    this.rates.get(kind)?.grow();
    this.refusedKind = null;
    this.asker = null;
    if (this.pauseMs === 0) return;
    this.pauseMs = 0;
    this.rates.get(kind)?.estimate();
    this.options.onPause(null);
  }

  private doubted({ kind, attempt }: ControlledRequest): void {
    this.refusals[kind].add(this.refusable(attempt));
    if (this.options.rotating || kind === 'captions' || !this.open) return;
    this.refusedKind = kind;
    // An attempt that has ended meanwhile would ask nothing more.
    this.asker = this.started.has(attempt) ? attempt : null;
  }

  private refusable(attempt: ControlledAttempt): unknown {
    return this.options.rotating ? attempt : attempt.subject;
  }

  private pause(kind: ControlledKind, retryAfterSeconds: number | null): void {
    const { now, onPause, rotating } = this.options;
    // Refusals of requests that were sent before the pause belong to the same block.
    if (now() < this.pausedUntilMs) return;
    if (this.pauseMs === 0) this.rates.get(kind)?.decrease();
    const nextMs = this.pauseMs === 0 ? PAUSE_FIRST_MS : this.pauseMs * 2;
    this.pauseMs = Math.min(PAUSE_MAX_MS, retryAfterSeconds === null ? nextMs : retryAfterSeconds * 1_000);
    this.pausedUntilMs = now() + this.pauseMs;
    this.refusedKind = kind;
    this.asker = null;
    if (!rotating) this.window = WINDOW_FIRST;
    for (const refusals of Object.values(this.refusals)) refusals.clear();
    onPause(this.pauseMs);
  }

  /** The waiting requests that are sent before a further one of a requester: calls take turns, and go before jobs. */
  private before(requester: Requester): number {
    const byKey = new Map<object, number>();
    let calls = 0;
    for (const { context } of this.waiting) {
      if (isBackground(context) === isBackground(requester))
        byKey.set(context.fairnessKey, (byKey.get(context.fairnessKey) ?? 0) + 1);
      else if (isBackground(requester)) calls += 1;
    }
    const own = byKey.get(requester.fairnessKey) ?? 0;
    return [...byKey.values()].reduce((before, count) => before + Math.min(count, own + 1), calls);
  }
}

function isBackground({ background }: Requester): boolean {
  return background === true;
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
