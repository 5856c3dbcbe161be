import type { ReadingContext, Requester } from '../../video-platform.js';
import type { Admission, CircuitBreaker } from './circuit-breaker.js';
import { PACED_KINDS, type PacedKind } from './egress-state.js';
import { DEADLINE_MARGIN_MS, PaceQueue, type Turn } from './pace-queue.js';
import { paceWaitMs } from './request-pace.js';
import type { StoredEgressState } from './stored-egress-state.js';
import type { FailedResponse, JsonResponse, UpstreamResponse } from './upstream-response.js';

/** A ceiling allows a burst of this long, so that no minute exceeds it by much. */
const CEILING_BURST_SECONDS = 6;
/** How long after its player request a video is expected to request its captions. */
const CAPTIONS_EXPECTED_MS = 5_000;
/** Bot checks after fewer answers are about the address or the client: the reported budgets of players are far larger. */
const ANSWERED_MANY = 50;

/** The part of a burst that background requests leave to calls, whose first videos are read at once. */
const RESERVED_SHARE = 1 / 4;

/** The requests a minute that each kind may have: unset, the pace is learned without a ceiling; 0 turns pacing off. */
export type PaceCeilings = Readonly<Record<PacedKind, number | undefined>>;

/** Whether a request is sent now, or the response it has instead. */
export type PacedTurn =
  { send: true } | { send: false; response: Extract<FailedResponse, { kind: 'busy' | 'blocked' }> };

/** What the pacer uses of the admission of an attempt at a video. */
export type PacedAdmission = Pick<Admission, 'probe' | 'claimProbe' | 'succeeded' | 'blocked'>;

/** Sends the player and caption requests of one egress at the pace that the platform sustains. */
export class RequestPacer {
  private readonly queues: Readonly<Record<PacedKind, PaceQueue>>;
  private readonly ceilings: Readonly<Record<PacedKind, Ceiling | null>>;
  /** The attempts whose player was requested, and until when their captions are expected. */
  private readonly expectedCaptions = new Map<object, { untilMs: number; requester: Requester }>();

  /** Attempts that have sent one player request. */
  private readonly started = new WeakSet<object>();

  /**
   * @param rotating its addresses change: a refusal concerns one of them, and only the breaker judges the egress
   * @param now milliseconds of the clock of `stored`
   */
  constructor(
    private readonly stored: StoredEgressState,
    private readonly breaker: CircuitBreaker,
    private readonly limits: PaceCeilings,
    private readonly rotating: boolean,
    private readonly now: () => number,
  ) {
    const ceiling = (kind: PacedKind) => {
      const limit = limits[kind];
      return limit ? new Ceiling(limit, now) : null;
    };
    this.ceilings = { player: ceiling('player'), captions: ceiling('captions') };
    this.queues = { player: this.queue('player'), captions: this.queue('captions') };
  }

  /** Requests a minute to which a kind is limited now; null for no limit. */
  perMinute(kind: PacedKind): number | null {
    const limit = this.limits[kind];
    const { ratePerSecond } = this.stored.current.paces[kind];
    if (limit === 0 || ratePerSecond === null) return limit || null;
    return Math.min(ratePerSecond * 60, limit ?? Infinity);
  }

  /** Whether the platform refused the rate of player requests before. */
  get learned(): boolean {
    return this.limited('player');
  }

  /** Whether so much was served since the last refusal that a bot check may be about the rate. */
  answeredMany(kind: PacedKind): boolean {
    return this.stored.current.paces[kind].answered >= ANSWERED_MANY;
  }

  /** Requests that wait for the pace. */
  queued(kind: PacedKind): number {
    return this.queues[kind].length;
  }

  /** Milliseconds until a video of a call can be read: its player and then its captions. */
  videoWaitMs(requester: Requester): number {
    return Math.max(this.queues.player.estimateMs(requester), this.captionsWaitMs(requester));
  }

  /** The captions of background requests delay no call. */
  captionsWaitMs(requester: Requester): number {
    const nowMs = this.now();
    let expected = 0;
    for (const [attempt, { untilMs, requester: other }] of this.expectedCaptions) {
      if (untilMs <= nowMs) this.expectedCaptions.delete(attempt);
      else if (requester.background === true || other.background !== true) expected += 1;
    }
    return this.queues.captions.estimateMs(requester, expected + this.queues.player.lengthFor(requester));
  }

  /**
   * Waits until a request may be sent. Rejects with the signal's reason when it is aborted first.
   *
   * @param attempt the admission of the attempt at a video, which becomes a probe when the pause has ended: its second player
   *   request is sent at once and delays others, because without it the first one was sent in vain (two clients must agree
   *   that a video is unavailable). Undefined for a request that belongs to no attempt at a video through this egress.
   */
  async waitForTurn(kind: PacedKind, context: ReadingContext, attempt?: PacedAdmission): Promise<PacedTurn> {
    // A request that was retried after the platform's `Retry-After` finds out whether the pause has ended. Probes are not
    // counted: the first estimate needs what was sent before the refusal.
    if (attempt?.probe) return { send: true };
    if (this.isPaused(kind)) {
      const leftMs = context.deadlineAtMs - performance.now();
      return (await attempt?.claimProbe(leftMs)) ? { send: true } : this.blocked();
    }
    if (attempt && kind === 'player' && this.started.delete(attempt)) {
      this.spend(kind);
      return { send: true };
    }
    if (attempt && kind === 'player') {
      this.expectedCaptions.delete(attempt);
      const waitMs = this.captionsWaitMs(context);
      // Without its captions the player response would be requested in vain.
      const leftMs = context.deadlineAtMs - 2 * DEADLINE_MARGIN_MS - performance.now();
      if (waitMs > 0 && waitMs > leftMs) return busy(waitMs);
      this.expectedCaptions.set(attempt, { untilMs: this.now() + CAPTIONS_EXPECTED_MS, requester: context });
    } else if (attempt) this.expectedCaptions.delete(attempt);
    const turn: Turn = await this.queues[kind].wait(context);
    if (turn.kind !== 'go' && attempt) this.expectedCaptions.delete(attempt);
    if (turn.kind === 'busy') return busy(turn.waitMs);
    if (turn.kind === 'paused') return this.blocked();
    if (attempt && kind === 'player') this.started.add(attempt);
    return { send: true };
  }

  /**
   * Whether requests of a kind are paused. Captions are still requested while players are refused: their URLs were issued
   * before, and the platform counts them separately.
   */
  isPaused(kind: PacedKind): boolean {
    return this.breaker.open && (kind === 'player' || this.stored.pause.by === 'captions');
  }

  /** Learns from a response. @param attempt as in `waitForTurn`; of a probe, a refusal is reported */
  learn(kind: PacedKind, response: UpstreamResponse | JsonResponse, attempt?: PacedAdmission): void {
    if (refusesAddress(response)) {
      const refusal = { address: true, retryAfterSeconds: response.retryAfterSeconds, by: kind };
      // That 403 concerns the address is a guess: the attempts at several videos decide.
      const certain = response.reason !== 'forbidden';
      // A probe that is refused captions was served its player: the block of players has ended, and one of captions begins.
      if (attempt?.probe && kind === 'captions' && this.stored.pause.by !== kind && certain) attempt.succeeded();
      if (attempt?.probe) attempt.blocked('', refusal);
      else if (!this.rotating && certain) this.refuse(refusal);
    } else if (kind === 'captions' && response.kind === 'ok' && response.media !== 'empty') this.answered(kind);
  }

  /** A player request was served. Only the content of its response shows that, because a bot check is a complete response. */
  recordServed(): void {
    this.answered('player');
  }

  /** Ends the waiting of all requests that a pause concerns. */
  releasePaused(): void {
    for (const kind of PACED_KINDS) if (this.isPaused(kind)) this.queues[kind].releaseAll();
  }

  private answered(kind: PacedKind): void {
    this.stored.record({ kind: 'answered', paced: kind, count: 1, atMs: this.now() });
  }

  private refuse(refusal: Parameters<CircuitBreaker['refuse']>[0]): void {
    this.breaker.refuse(refusal);
    this.releasePaused();
  }

  private blocked(): PacedTurn {
    const retryAfterSeconds = Math.max(1, Math.ceil(this.breaker.pauseRemainingMs / 1000));
    return { send: false, response: { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds } };
  }

  private limited(kind: PacedKind): boolean {
    return this.stored.current.paces[kind].ratePerSecond !== null;
  }

  private spend(kind: PacedKind): void {
    this.ceilings[kind]?.spend();
    this.stored.record({ kind: 'sent', paced: kind, count: 1, atMs: this.now() });
  }

  private queue(kind: PacedKind): PaceQueue {
    return new PaceQueue({
      waitMs: (count) => this.waitMs(kind, count),
      reserve: () => this.reserve(kind),
      spend: () => this.spend(kind),
    });
  }

  /**
   * A part of the smaller burst. Capped at half of burst − 1, because a background request needs reserve + 1 available and
   * no more than the burst ever is.
   */
  private reserve(kind: PacedKind): number {
    const { ratePerSecond, burst } = this.stored.current.paces[kind];
    const ceiling = this.ceilings[kind];
    const smallest = Math.min(ratePerSecond === null ? Infinity : burst, ceiling?.burst ?? Infinity);
    return smallest === Infinity ? 0 : Math.min(RESERVED_SHARE * smallest, (smallest - 1) / 2);
  }

  private waitMs(kind: PacedKind, count: number): number {
    if (this.limits[kind] === 0) return 0;
    const learnedMs = paceWaitMs(this.stored.current.paces[kind], count, this.now());
    return Math.max(learnedMs, this.ceilings[kind]?.waitMs(count) ?? 0);
  }
}

/** Whether the platform refuses the address, whatever is requested. */
function refusesAddress(
  response: UpstreamResponse | JsonResponse,
): response is Extract<FailedResponse, { kind: 'blocked' }> {
  return response.kind === 'blocked' && response.reason !== 'empty-body' && response.reason !== 'exit-shut';
}

function busy(waitMs: number): PacedTurn {
  return { send: false, response: { kind: 'busy', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) } };
}

/** A token bucket of a fixed rate. */
class Ceiling {
  private readonly ratePerSecond: number;
  readonly burst: number;
  private available: number;
  private atMs: number;

  constructor(
    perMinute: number,
    private readonly now: () => number,
  ) {
    this.ratePerSecond = perMinute / 60;
    this.burst = Math.max(1, this.ratePerSecond * CEILING_BURST_SECONDS);
    this.available = this.burst;
    this.atMs = now();
  }

  spend(): void {
    this.refill();
    this.available -= 1;
  }

  waitMs(count: number): number {
    this.refill();
    return Math.max(0, ((count - this.available) / this.ratePerSecond) * 1000);
  }

  private refill(): void {
    const nowMs = this.now();
    this.available = Math.min(this.burst, this.available + ((nowMs - this.atMs) * this.ratePerSecond) / 1000);
    this.atMs = nowMs;
  }
}
