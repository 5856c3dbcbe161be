import type { ReadingContext, Requester } from '../../video-platform.js';
import type { FairLimiter } from './fair-limiter.js';
import { SendingRate } from './sending-rate.js';
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
/** This many refusals in a row mean that nearly all addresses of a gateway are refused. */
const GATEWAY_REFUSALS = 100;
/** The time that a request needs before the deadline of its call. */
const DEADLINE_MARGIN_MS = 1_000;

/**
 * What a response says about the address. `refused`: it is refused, whatever is asked. `doubtful`: one client was refused,
 * for itself or for its address. `withheld`: the text was empty. `nothing`: a failure, which says nothing.
 */
export type AddressVerdict =
  | { kind: 'served' | 'withheld' | 'nothing' }
  | { kind: 'doubtful'; client: string }
  | { kind: 'refused'; retryAfterSeconds: number | null };

/** What a request belongs to: one attempt at a channel or video. */
interface ControlledAttempt {
  /** The channel or video. */
  readonly subject: string;
  readonly context: ReadingContext;
}

/** Why a request was not sent. */
type NotSent = Extract<FailedResponse, { kind: 'busy' | 'blocked' }>;

interface RequestControlOptions {
  /** Runs the requests of all egresses, `UPSTREAM_CONCURRENCY` at a time. */
  limiter: FairLimiter;
  /** The most requests a minute; undefined for no ceiling, 0 to send at any rate. */
  ceilingPerMinute: number | undefined;
  /** A gateway, whose addresses change: a refusal concerns one of them. */
  rotating: boolean;
  /** Controls the requests that follow each of these, which without them would be sent in vain: captions follow players. */
  followedBy?: RequestControl | undefined;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Called when a pause begins or is prolonged (with its milliseconds), and when it has ended (with null). */
  onPause: (pauseMs: number | null) => void;
}

/**
 * Decides when the requests of one kind (players, captions or lists) are sent through one egress. The platform's budgets are
 * unknown, differ by address and change, so they are found out as TCP finds out the capacity of a network:
 *
 * - Slow start: 4 requests at a time after the start and after a pause, and one more for each that is served, which doubles
 *   them in each round trip, up to `UPSTREAM_CONCURRENCY`. So the first refusal meets few requests in flight.
 * - The rate is unlimited until the first refusal, then increases additively and decreases multiplicatively (`SendingRate`).
 * - A refusal of the address (429, a captcha, …) pauses the egress: for `Retry-After`, else for 30 s, doubled up to an hour by
 *   each refused probe. The first channel or video after the pause is the probe; the others wait for its result.
 * - A refusal of a client (a bot check) may concern the client or the address. The video that received it asks further
 *   clients, and the others wait for its result. Served, they go on; refused by a second client and as a second video, the
 *   egress is paused.
 *
 * A request whose turn would come after the deadline of its call is `busy` at once. Replicas share nothing: like TCP
 * connections they divide the budget among themselves.
 */
export class RequestControl {
  private window: number;
  private running = 0;
  /** The requests that wait for their turn. */
  private readonly waiting = new Set<{ readonly context: Requester }>();
  /** A client was refused, and it is not known yet whether the address is. */
  private doubt = false;
  /** The channel or video that finds out whether the address is refused; null until one is at hand. */
  private asker: string | null = null;
  private pausedUntilMs = 0;
  /** Of the pause that is in force or being probed; 0 while there is none. */
  private pauseMs = 0;
  /** Since the last request that was served. */
  private readonly refusedVideos = new Set<string>();
  private readonly refusedClients = new Set<string>();
  private readonly withheldVideos = new Set<string>();
  private gatewayRefusals = 0;
  /** Those of which a request was sent: without the next one, which goes at once, it was sent in vain. */
  private readonly started = new Set<string>();
  readonly rate: SendingRate;

  constructor(private readonly options: RequestControlOptions) {
    const { limiter, rotating, ceilingPerMinute, now } = options;
    this.window = rotating ? limiter.slots : WINDOW_FIRST;
    this.rate = new SendingRate(ceilingPerMinute, now);
  }

  /** Whether nothing is known to be refused now. */
  get open(): boolean {
    return !this.doubt && this.pauseMs === 0;
  }

  /** Whether an attempt finds out if the address is refused: others would wait for it. */
  get asking(): boolean {
    return this.asker !== null || this.options.followedBy?.asking === true;
  }

  /** Whether the address was refused, and no probe was served since. */
  get refused(): boolean {
    return this.pauseMs > 0;
  }

  /** Milliseconds until a probe may be sent; 0 while requests may be sent. */
  get pauseRemainingMs(): number {
    return Math.max(0, this.pausedUntilMs - this.options.now(), this.options.followedBy?.pauseRemainingMs ?? 0);
  }

  get queued(): number {
    return this.waiting.size;
  }

  /** Whether this attempt finds out if a pause has ended: it sends as little as possible. */
  isProbe({ subject }: ControlledAttempt): boolean {
    return this.asker === subject && this.pauseMs > 0;
  }

  /** Milliseconds until the rate lets a further request be sent. @param ahead requests that will enter the queue before it */
  waitMs(requester: Requester, ahead = 0): number {
    const { followedBy } = this.options;
    const own =
      this.rate.perMinute === null ? 0 : this.rate.waitMs(isBackground(requester), ahead + this.before(requester));
    return Math.max(own, followedBy?.waitMs(requester, this.running + this.queued) ?? 0);
  }

  /**
   * Sends a request in its turn. Rejects with the reason of the caller's signal when it is aborted.
   *
   * @param verdictOf what the response says about the address
   */
  async run<R>(
    attempt: ControlledAttempt,
    send: () => Promise<R>,
    verdictOf: (response: R) => AddressVerdict,
  ): Promise<R | NotSent> {
    const { subject, context } = attempt;
    context.signal.throwIfAborted();
    const refusal = this.refusal(attempt, this.waitMs(context));
    if (refusal) return refusal;
    const waiting = { context };
    this.waiting.add(waiting);
    const inTurn = async (): Promise<R | NotSent> => {
      this.waiting.delete(waiting);
      const lateRefusal = this.refusal(attempt, this.rateMs(context));
      if (lateRefusal) return lateRefusal;
      this.begin(subject);
      try {
        const response = await send();
        this.learn(subject, verdictOf(response));
        return response;
      } finally {
        this.running -= 1;
      }
    };
    try {
      return await this.options.limiter.run(context, inTurn, () => this.turnMs(attempt));
    } finally {
      this.waiting.delete(waiting);
    }
  }

  /** An attempt has ended. If it was to find out whether the address is refused, what it has found decides, or the next one. */
  leave({ subject }: Pick<ControlledAttempt, 'subject'>): void {
    this.started.delete(subject);
    const asked = this.asker === subject;
    if (asked) this.asker = null;
    const refused = asked && this.refusedVideos.has(subject) && this.isAddressLikelyRefused;
    const withheld = this.withheldVideos.has(subject) && this.withheldVideos.size >= VIDEOS_WITHHELD;
    if (refused || withheld) this.pause(null);
    if (asked || withheld) this.options.limiter.startNext();
  }

  /** Milliseconds until a request may be sent, or its refusal is known; Infinity until the state changes. */
  private turnMs(attempt: ControlledAttempt): number {
    const { subject, context } = attempt;
    const waitMs = this.rateMs(context);
    if (this.refusal(attempt, waitMs)) return 0;
    if (!this.admits(subject)) return Infinity;
    if (this.isNext(subject)) return 0;
    return this.running < this.window ? waitMs : Infinity;
  }

  /** Why a request is not sent that would have to wait for so long. */
  private refusal({ subject, context }: ControlledAttempt, waitMs: number): NotSent | null {
    const pauseMs = this.pauseRemainingMs;
    if (pauseMs > 0) return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: secondsOf(pauseMs) };
    const leftMs = context.deadlineAtMs - DEADLINE_MARGIN_MS - performance.now();
    if (waitMs === 0 || waitMs <= leftMs || this.isNext(subject)) return null;
    return { kind: 'busy', retryAfterSeconds: secondsOf(waitMs) };
  }

  private rateMs(requester: Requester): number {
    return this.rate.waitMs(isBackground(requester));
  }

  /** Whether the requests of a channel or video do not wait for what another one finds out. */
  private admits(subject: string): boolean {
    if (!this.open && this.asker !== null && this.asker !== subject) return false;
    return this.options.followedBy?.admits(subject) ?? true;
  }

  /** Whether window and rate do not hold back the requests of a channel or video. */
  private isNext(subject: string): boolean {
    return !this.open || this.started.has(subject);
  }

  private begin(subject: string): void {
    this.running += 1;
    this.started.add(subject);
    this.rate.spend();
    this.ask(subject);
  }

  private ask(subject: string): void {
    if (!this.open) this.asker = subject;
    this.options.followedBy?.ask(subject);
  }

  private learn(subject: string, verdict: AddressVerdict): void {
    switch (verdict.kind) {
      case 'nothing':
        return;
      case 'served':
        return this.served(subject);
      case 'withheld':
        if (!this.options.rotating) this.withheldVideos.add(subject);
        return;
      case 'refused':
      case 'doubtful':
        if (this.options.rotating) {
          this.gatewayRefusals += 1;
          if (!this.open || this.gatewayRefusals >= GATEWAY_REFUSALS) this.pause(null);
        } else if (verdict.kind === 'refused') this.pause(verdict.retryAfterSeconds);
        else this.refusedClient(subject, verdict.client);
    }
  }

  private served(subject: string): void {
    // What was sent before a refusal proves nothing about it.
    if (!this.open && this.asker !== subject) return;
    this.forgetRefusals();
    this.window = Math.min(this.options.limiter.slots, this.window + 1);
    this.rate.grow();
    this.doubt = false;
    this.asker = null;
    if (this.pauseMs === 0) return;
    this.pauseMs = 0;
    this.rate.estimate();
    this.options.onPause(null);
  }

  private refusedClient(subject: string, client: string): void {
    this.refusedVideos.add(subject);
    this.refusedClients.add(client);
    if (this.open) {
      this.doubt = true;
      // An attempt that has ended meanwhile would ask nothing more.
      this.asker = this.started.has(subject) ? subject : null;
    } else if (this.asker === subject && this.refusedClients.size >= CLIENTS_REFUSED && this.isAddressLikelyRefused)
      this.pause(null);
  }

  /** One video alone may be refused for what it is, unless it is the probe. */
  private get isAddressLikelyRefused(): boolean {
    return this.pauseMs > 0 || this.refusedVideos.size >= VIDEOS_REFUSED;
  }

  private pause(retryAfterSeconds: number | null): void {
    const { now, onPause, rotating } = this.options;
    // Refusals of requests that were sent before the pause belong to the same block.
    if (now() < this.pausedUntilMs) return;
    if (this.pauseMs === 0) this.rate.decrease();
    const nextMs = this.pauseMs === 0 ? PAUSE_FIRST_MS : this.pauseMs * 2;
    this.pauseMs = Math.min(PAUSE_MAX_MS, retryAfterSeconds === null ? nextMs : retryAfterSeconds * 1_000);
    this.pausedUntilMs = now() + this.pauseMs;
    this.doubt = false;
    this.asker = null;
    if (!rotating) this.window = WINDOW_FIRST;
    this.forgetRefusals();
    onPause(this.pauseMs);
  }

  private forgetRefusals(): void {
    this.refusedVideos.clear();
    this.refusedClients.clear();
    this.withheldVideos.clear();
    this.gatewayRefusals = 0;
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
