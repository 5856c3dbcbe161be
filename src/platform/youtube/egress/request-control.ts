import { setMaxListeners } from 'node:events';
import type { ReadingContext, Requester } from '../../video-platform.js';
import { FairLimiter } from './fair-limiter.js';
import type { FailedResponse } from './upstream-response.js';

/** How many requests are sent at a time after the start and after a pause. */
const WINDOW_FIRST = 4;
/** The first pause without a `Retry-After`; each refused probe doubles it. */
const PAUSE_FIRST_MS = 30_000;
const PAUSE_MAX_MS = 3_600_000;
/** This many different clients, and different videos, refused in a row mean that the address is refused. */
const CLIENTS_REFUSED = 2;
const VIDEOS_REFUSED = 2;
/** The same for videos whose texts are withheld, which single videos are for good. */
const VIDEOS_WITHHELD = 5;
/** A gateway is refused when this share of its last requests was. */
const GATEWAY_REQUESTS = 200;
const GATEWAY_SHARE = 0.95;

/** A refusal multiplies the rate by this. */
const DECREASE = 0.6;
/** At full use, the rate is back at the one that was refused after this time, and grows on at the same speed. */
const REGROWTH_SECONDS = 3_600;
/** Before the first refusal, served requests are counted over about this long: reported budgets are per hour or shorter. */
const COUNTED_MS = 3_600_000;
/** The smallest reported budgets: an address that is refused earlier was blocked before this process used it. */
const SERVED_MIN = 10;
/** The lowest rate: an egress in light use shows its use, not its budget, and the smallest reported budgets are not lower. */
const PER_SECOND_MIN = 1 / 60;
/** The slowest growth, which lets a rate that was estimated far too low recover: two requests a minute more in an hour. */
const GROWTH_MIN = 2 / 60 / 3_600;
/** The bucket holds what the rate allows in this time, and at least the requests of a slow start. */
const BURST_SECONDS = 10;
const BURST_MIN = 4;
/** A ceiling allows a burst of this long, so that no minute exceeds it by much. */
const CEILING_BURST_SECONDS = 6;
/** The part of the burst that background requests leave to calls, whose first videos are read at once. */
const RESERVED_SHARE = 1 / 4;

/** The time that a request needs before the deadline of its call. */
export const DEADLINE_MARGIN_MS = 1_000;

/**
 * What a response says about the address. `refused`: it is refused, whatever is asked. `doubtful`: one client was refused,
 * for itself or for its address. `withheld`: the text was empty. `nothing`: a failure, which says nothing.
 */
export type AddressVerdict =
  | { kind: 'served' | 'nothing' | 'withheld' }
  | { kind: 'doubtful'; client: string }
  | { kind: 'refused'; retryAfterSeconds: number | null };

/** What is known of the attempt at a channel or video that a request belongs to; the same object for all its requests. */
interface ControlledAttempt {
  /** The channel or video. */
  readonly subject: string;
  readonly context: ReadingContext;
}

/** Why a request was not sent. */
type NotSent = Extract<FailedResponse, { kind: 'busy' | 'blocked' }>;

interface RequestControlOptions {
  /** `UPSTREAM_CONCURRENCY`. */
  concurrencyMax: number;
  /** The most requests a minute; undefined for no ceiling, 0 to send at any rate. */
  ceilingPerMinute: number | undefined;
  /** A gateway, whose addresses change: a refusal concerns one of them. */
  rotating: boolean;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Called when a pause begins or is prolonged (with its milliseconds), and when it has ended (with null). */
  onPause: (pauseMs: number | null) => void;
}

/** Ends the waiting of queued requests, which decide again what to do. */
class StateChanged extends Error {}

/** Ends the waiting of a request whose turn comes after the deadline of its call. */
class TooLate extends Error {}

/**
 * Decides when the requests of one kind (players or captions) are sent through one egress. The platform's budgets are unknown,
 * differ by address and change, so they are found out as TCP finds out the capacity of a network:
 *
 * - Slow start: 4 requests at a time after the start and after a pause, and one more for each that is served, which doubles
 *   them in each round trip, up to `UPSTREAM_CONCURRENCY`. So the first refusal meets few requests in flight.
 * - The rate is unlimited until the first refusal, then increases additively and decreases multiplicatively (`SendingRate`).
 * - A refusal of the address (429, a captcha, …) pauses the egress: for `Retry-After`, else for 30 s, doubled up to an hour by
 *   each refused probe. The first request after the pause is the probe; the others wait for its result.
 * - A refusal of a client (a bot check) may concern the client or the address. The video that received it asks further
 *   clients, and the others wait for its result. Served, they go on; refused by a second client and as a second video, the
 *   egress is paused.
 *
 * Calls go before jobs, and calls take turns. A request whose turn would come after the deadline of its call is `busy` at
 * once. Replicas share nothing: like TCP connections they divide the budget among themselves.
 */
export class RequestControl {
  private state: 'open' | 'doubt' | 'paused' = 'open';
  private window = WINDOW_FIRST;
  private pausedUntilMs = 0;
  /** Of the pause that is in force or being probed; 0 while there is none. */
  private pauseMs = 0;
  /** The attempt that finds out, in doubt, whether the address is refused; null until a video is at hand. */
  private asker: ControlledAttempt | null = null;
  /** Since the last request that was served. */
  private readonly refusedVideos = new Set<string>();
  private readonly refusedClients = new Set<string>();
  private readonly withheldVideos = new Set<string>();
  /** The running attempts whose texts were withheld, until another client of theirs is served. */
  private readonly withheld = new WeakSet<ControlledAttempt>();
  private gatewayRefusals: boolean[] = [];
  /** The attempts that have sent a request: without the next one, which goes at once, the first was sent in vain. */
  private readonly started = new WeakSet<ControlledAttempt>();
  /** Those that wait in doubt. */
  private readonly waiting = new Set<() => void>();
  private readonly rate: SendingRate;
  private readonly limiter: FairLimiter;

  constructor(private readonly options: RequestControlOptions) {
    const { rotating, concurrencyMax, ceilingPerMinute, now } = options;
    if (rotating) this.window = concurrencyMax;
    this.rate = new SendingRate(ceilingPerMinute, now);
    this.limiter = new FairLimiter({
      places: () => (this.state === 'open' ? Math.min(this.window, concurrencyMax) : 0),
      waitMs: (background) => this.rate.waitMs(background),
      spend: () => this.rate.spend(),
    });
  }

  /** Whether nothing is known to be refused now. */
  get open(): boolean {
    return this.state === 'open';
  }

  /** Whether an attempt finds out if the address is refused: others would wait for it. */
  get asking(): boolean {
    return this.asker !== null;
  }

  /** Whether the address was refused, and no probe was served since. */
  get refused(): boolean {
    return this.pauseMs > 0;
  }

  /** Whether nothing may be sent. */
  get paused(): boolean {
    return this.pauseRemainingMs > 0;
  }

  /** Milliseconds until a probe may be sent. */
  get pauseRemainingMs(): number {
    return this.state === 'paused' ? Math.max(0, this.pausedUntilMs - this.options.now()) : 0;
  }

  /** Requests a minute that may be sent; null for no limit. */
  get perMinute(): number | null {
    return this.rate.perMinute;
  }

  get queued(): number {
    return this.limiter.queued;
  }

  /** Requests that are sent or wait. */
  get pending(): number {
    return this.limiter.running + this.limiter.queued;
  }

  /** Milliseconds until the rate lets a further request be sent. @param ahead requests that will enter the queue before it */
  waitMs(requester: Requester, ahead = 0): number {
    if (this.rate.perMinute === null) return 0;
    return this.rate.waitMs(requester.background === true, this.limiter.queuedBefore(requester) + ahead);
  }

  /** Whether this attempt finds out if a pause has ended: it sends as little as possible. */
  isProbe(scope: ControlledAttempt): boolean {
    return this.asker === scope && this.pauseMs > 0;
  }

  /**
   * Sends a request in its turn. Rejects with the reason of the caller's signal when it is aborted.
   *
   * @param verdictOf what the response says about the address
   */
  async run<R>(
    scope: ControlledAttempt,
    send: () => Promise<R>,
    verdictOf: (response: R) => AddressVerdict,
  ): Promise<R | NotSent> {
    const sendAndLearn = async (): Promise<R> => {
      this.started.add(scope);
      const response = await send();
      this.learn(scope, verdictOf(response));
      return response;
    };
    for (;;) {
      const refused = await this.admit(scope);
      if (refused) return refused;
      try {
        if (this.asker === scope || this.started.has(scope)) {
          this.rate.spend();
          return await sendAndLearn();
        }
        const waitMs = this.waitMs(scope.context);
        if (waitMs > 0 && waitMs > timeLeftMs(scope)) return busy(waitMs);
        return await this.inTurn(scope, sendAndLearn);
      } catch (error) {
        if (error instanceof TooLate) return busy(Math.max(1_000, this.waitMs(scope.context)));
        if (!(error instanceof StateChanged)) throw error;
      }
    }
  }

  /**
   * To be called directly before a request is sent that waited since its turn: has it wait again when a refusal was received
   * meanwhile.
   */
  recheck(scope: ControlledAttempt): void {
    if (this.state !== 'open' && this.asker !== scope) throw new StateChanged();
  }

  /** Waits until it is known whether the address is refused. @returns null when the attempt may send requests */
  async admit(scope: ControlledAttempt): Promise<NotSent | null> {
    for (;;) {
      scope.context.signal.throwIfAborted();
      if (this.state === 'open') return null;
      if (this.paused) return this.blocked();
      this.state = 'doubt';
      this.asker ??= scope;
      if (this.asker === scope) return null;
      await this.changed(scope.context.signal);
    }
  }

  /** An attempt has ended. If it was to find out whether the address is refused, what it has found decides, or the next video. */
  leave(scope: ControlledAttempt): void {
    if (this.withheld.has(scope) && this.withheldVideos.add(scope.subject).size >= VIDEOS_WITHHELD) this.pause(null);
    if (this.asker !== scope) return;
    if (this.refusedVideos.has(scope.subject) && this.isAddressLikelyRefused()) this.pause(null);
    else {
      this.asker = null;
      this.wake();
    }
  }

  /** Learns from the response to a request of an admitted attempt. */
  learn(scope: ControlledAttempt, verdict: AddressVerdict): void {
    if (this.options.rotating) return this.learnOfGateway(verdict);
    switch (verdict.kind) {
      case 'served':
        return this.served(scope);
      case 'refused':
        return this.pause(verdict.retryAfterSeconds);
      case 'doubtful':
        this.refusedVideos.add(scope.subject);
        this.refusedClients.add(verdict.client);
        return this.doubt(scope);
      case 'withheld':
        this.withheld.add(scope);
        return;
      case 'nothing':
        return;
    }
  }

  private served(scope: ControlledAttempt): void {
    this.withheld.delete(scope);
    // What was sent before a refusal proves nothing about it.
    if (this.state === 'paused' || (this.state === 'doubt' && this.asker !== scope)) return;
    this.refusedVideos.clear();
    this.refusedClients.clear();
    this.withheldVideos.clear();
    this.window = Math.min(this.options.concurrencyMax, this.window + 1);
    this.rate.grow();
    if (this.state === 'doubt') this.reopen();
  }

  private doubt(scope: ControlledAttempt): void {
    if (this.state === 'paused') return;
    if (this.state === 'open') {
      this.state = 'doubt';
      this.asker = scope;
      this.limiter.rejectWaiting(new StateChanged());
    } else if (this.asker === scope && this.refusedClients.size >= CLIENTS_REFUSED && this.isAddressLikelyRefused())
      this.pause(null);
  }

  /** One video alone may be refused for what it is, unless it is the probe. */
  private isAddressLikelyRefused(): boolean {
    return this.pauseMs > 0 || this.refusedVideos.size >= VIDEOS_REFUSED;
  }

  private pause(retryAfterSeconds: number | null): void {
    // Refusals of requests that were sent before the pause belong to the same block.
    if (this.state === 'paused') return;
    const { now, onPause, rotating } = this.options;
    if (this.pauseMs === 0) this.rate.decrease();
    const nextMs = this.pauseMs === 0 ? PAUSE_FIRST_MS : this.pauseMs * 2;
    this.pauseMs = Math.min(PAUSE_MAX_MS, retryAfterSeconds === null ? nextMs : retryAfterSeconds * 1000);
    this.pausedUntilMs = now() + this.pauseMs;
    this.state = 'paused';
    this.asker = null;
    if (!rotating) this.window = WINDOW_FIRST;
    this.refusedVideos.clear();
    this.refusedClients.clear();
    this.withheldVideos.clear();
    this.gatewayRefusals = [];
    onPause(this.pauseMs);
    this.limiter.rejectWaiting(new StateChanged());
    this.wake();
  }

  private reopen(): void {
    this.state = 'open';
    this.asker = null;
    if (this.pauseMs > 0) {
      this.pauseMs = 0;
      this.rate.estimate();
      this.options.onPause(null);
    }
    this.wake();
    this.limiter.startNext();
  }

  private learnOfGateway(verdict: AddressVerdict): void {
    if (verdict.kind === 'nothing' || verdict.kind === 'withheld' || this.state === 'paused') return;
    const refused = verdict.kind !== 'served';
    if (this.state === 'doubt') return refused ? this.pause(null) : this.reopen();
    this.gatewayRefusals = [...this.gatewayRefusals.slice(1 - GATEWAY_REQUESTS), refused];
    const refusals = this.gatewayRefusals.filter(Boolean).length;
    if (refused && refusals >= GATEWAY_SHARE * GATEWAY_REQUESTS) this.pause(null);
  }

  /** Runs a request when window and rate allow it, unless that is too late. */
  private async inTurn<T>(scope: ControlledAttempt, task: () => Promise<T>): Promise<T> {
    const { context } = scope;
    const ending = new AbortController();
    const abort = () => ending.abort(context.signal.reason);
    context.signal.addEventListener('abort', abort, { once: true });
    let timer: NodeJS.Timeout | undefined;
    // The deadline can change while it waits, and other calls can delay its turn.
    const checkDeadline = () => {
      const leftMs = timeLeftMs(scope);
      if (leftMs <= 0) ending.abort(new TooLate());
      else timer = setTimeout(checkDeadline, Math.min(leftMs, 2 ** 31 - 1));
    };
    const stopWaiting = () => {
      clearTimeout(timer);
      context.signal.removeEventListener('abort', abort);
    };
    if (this.rate.perMinute !== null) checkDeadline();
    const waiting = {
      fairnessKey: context.fairnessKey,
      onForeground: context.onForeground,
      signal: ending.signal,
      get background() {
        return context.background === true;
      },
    };
    try {
      return await this.limiter.run(waiting, () => {
        stopWaiting();
        return task();
      });
    } finally {
      stopWaiting();
    }
  }

  private changed(signal: AbortSignal): Promise<void> {
    // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
    setMaxListeners(0, signal);
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake);
        this.waiting.delete(wake);
        resolve();
      };
      signal.addEventListener('abort', wake, { once: true });
      this.waiting.add(wake);
    });
  }

  private wake(): void {
    for (const wake of [...this.waiting]) wake();
  }

  private blocked(): NotSent {
    const retryAfterSeconds = Math.max(1, Math.ceil(this.pauseRemainingMs / 1000));
    return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds };
  }
}

export function timeLeftMs({ context }: ControlledAttempt): number {
  return context.deadlineAtMs - DEADLINE_MARGIN_MS - performance.now();
}

export function busy(waitMs: number): NotSent {
  return { kind: 'busy', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
}

/** A token bucket: requests are sent at a rate, a few of them at once. Times are milliseconds. */
class TokenBucket {
  private available: number;

  constructor(
    public perSecond: number,
    readonly burst: number,
    private atMs: number,
  ) {
    this.available = burst;
  }

  /** Whether more than half of the burst was used: what is not requested proves nothing about the rate. */
  inUse(nowMs: number): boolean {
    return this.refilled(nowMs) < this.burst / 2;
  }

  /** Milliseconds until this many requests may be sent. */
  waitMs(count: number, nowMs: number): number {
    return Math.max(0, ((count - this.refilled(nowMs)) / this.perSecond) * 1000);
  }

  spend(nowMs: number): void {
    this.available = this.refilled(nowMs) - 1;
    this.atMs = nowMs;
  }

  private refilled(nowMs: number): number {
    return Math.min(this.burst, this.available + ((nowMs - this.atMs) / 1000) * this.perSecond);
  }
}

/**
 * The rate of one kind of request through one egress: unlimited until the platform refuses it, then with additive increase
 * and multiplicative decrease. The first estimate is what the platform served, over the time until its pause had ended.
 */
class SendingRate {
  private bucket: TokenBucket | null = null;
  private readonly ceiling: TokenBucket | null;
  /** By how much a second of full use raises the rate. */
  private growthPerSecond = 0;
  private served = 0;
  private sinceMs: number | null = null;

  /**
   * @param ceilingPerMinute the most requests a minute; 0: the rate is never limited; undefined: no ceiling
   * @param now milliseconds of a monotonic clock
   */
  constructor(
    private readonly ceilingPerMinute: number | undefined,
    private readonly now: () => number,
  ) {
    const perSecond = (ceilingPerMinute ?? 0) / 60;
    this.ceiling =
      perSecond > 0 ? new TokenBucket(perSecond, Math.max(1, perSecond * CEILING_BURST_SECONDS), now()) : null;
  }

  /** Requests a minute that may be sent; null for no limit. */
  get perMinute(): number | null {
    const rates = this.buckets().map(({ perSecond }) => perSecond * 60);
    return rates.length === 0 ? null : Math.min(...rates);
  }

  /** Milliseconds until a request may be sent after `ahead` others. */
  waitMs(background: boolean, ahead = 0): number {
    const nowMs = this.now();
    const waits = this.buckets().map((bucket) =>
      bucket.waitMs(1 + ahead + (background ? reserveOf(bucket.burst) : 0), nowMs),
    );
    return Math.max(0, ...waits);
  }

  /** A request is sent. */
  spend(): void {
    const nowMs = this.now();
    for (const bucket of this.buckets()) bucket.spend(nowMs);
    if (this.bucket) return;
    this.sinceMs ??= nowMs;
    if (nowMs - this.sinceMs <= COUNTED_MS) return;
    this.served /= 2;
    this.sinceMs = nowMs - (nowMs - this.sinceMs) / 2;
  }

  /** A request was served. */
  grow(): void {
    if (!this.bucket) this.served += 1;
    else if (this.bucket.inUse(this.now())) this.bucket.perSecond += this.growthPerSecond / this.bucket.perSecond;
  }

  /** The rate was refused. Before the first estimate, that needs the pause that follows. */
  decrease(): void {
    if (this.bucket) this.limit(this.bucket.perSecond);
  }

  /** The pause after a refusal has ended. */
  estimate(): void {
    if (this.bucket || this.ceilingPerMinute === 0) return;
    const seconds = Math.max(1, (this.now() - (this.sinceMs ?? this.now())) / 1000);
    if (this.served >= SERVED_MIN) this.limit(this.served / seconds);
    this.served = 0;
    this.sinceMs = null;
  }

  private limit(refusedPerSecond: number): void {
    const perSecond = Math.max(PER_SECOND_MIN, DECREASE * refusedPerSecond);
    this.growthPerSecond = Math.max(GROWTH_MIN, (refusedPerSecond - perSecond) / REGROWTH_SECONDS);
    this.bucket = new TokenBucket(perSecond, Math.max(BURST_MIN, BURST_SECONDS * perSecond), this.now());
  }

  private buckets(): TokenBucket[] {
    return [this.bucket, this.ceiling].filter((bucket) => bucket !== null);
  }
}

/** At most half of burst − 1, because a background request needs one more than the reserve. */
function reserveOf(burst: number): number {
  return Math.min(RESERVED_SHARE * burst, (burst - 1) / 2);
}
