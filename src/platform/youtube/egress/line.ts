import type { ControlResult, EgressUseState, LastControl } from '../../egress-states.js';
import type { ReadingContext, Requester } from '../../video-platform.js';
import type { Attempt } from './attempt.js';
import type { SendingRate } from './sending-rate.js';
import { TurnQueue } from './turn-queue.js';
import type { NotSent } from './upstream-response.js';

/** How many channels or videos are started at a time after the start and after a pause. */
const WINDOW_FIRST = 4;
/** The first pause without a `Retry-After`; each refused control prolongs it by twice as much as the one before. */
const PAUSE_FIRST_MS = 30_000;
const PAUSE_MAX_MS = 3_600_000;
/** The length of the last block counts for half as much after this time. */
const BLOCK_HALF_LIFE_MS = 6 * 3_600_000;
/**
 * The weights of a longer and of a shorter attempt in the time that an attempt takes: it is rather too short, since what was
 * refused in vain is lost, and what waits in vain is refused at a later review.
 */
const LONGER_WEIGHT = 0.03;
const SHORTER_WEIGHT = 0.3;
/** So many attempts make the time count in full: the first ones of a process are slow. */
const ATTEMPTS_KNOWN = 32;

/** The kinds of requests of which the platform counts a budget each. A video needs its player and then its captions. */
export type BudgetKind = 'player' | 'captions' | 'list';

/**
 * The order in which waiting requests are sent. What has started comes first: what was sent before would be in vain. `begun`:
 * of a call that has begun to read its list.
 */
export const RANKS = ['started-call', 'started-job', 'begun', 'call', 'job'] as const;
export type Rank = (typeof RANKS)[number];
/** Those of what has not started. */
export const START_RANKS = ['begun', 'call', 'job'] as const satisfies readonly Rank[];

export interface QueuedRequest {
  readonly kind: string;
  readonly attempt: Attempt;
  readonly context: ReadingContext;
}

export interface Waiting {
  readonly request: QueuedRequest;
  readonly requester: Requester;
  rank: Rank;
  hasWaited: boolean;
  readonly start: () => void;
  readonly refuse: (reason: NotSent) => void;
}

/** The requests of an egress that run, for all of its uses. */
export interface EgressSlots {
  readonly max: number;
  running: number;
}

interface LineOptions {
  /** Whether attempts start slowly: not through a gateway, whose addresses are new ones. */
  startsSlowly: boolean;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Called when waiting requests may be sent, or are refused. */
  onChange: () => void;
  /** Called when a pause begins or is prolonged (with its milliseconds), and when it has ended (with null). */
  onPause: (kind: BudgetKind, pauseMs: number | null) => void;
}

interface Pause {
  readonly kind: BudgetKind;
  readonly sinceMs: number;
  /** By how much it is prolonged when the control is refused. */
  readonly nextMs: number;
  /** After that, a control finds out whether the pause ends. */
  readonly untilMs: number;
}

/**
 * The requests for one use (videos or channels) through one egress, and when they are sent. The platform's budgets are
 * unknown, differ by address and change, so they are found out as TCP finds out the capacity of a network:
 *
 * - Slow start: 4 videos are started at a time after the start and after a pause, and one more for each request that is
 *   served, up to the slots of the egress. So the first refusal meets few requests in flight.
 * - The rate of each kind of request (`SendingRate`). A video starts when the rates allow its requests.
 * - A pause while the platform refuses the address. It ends when a control is served (`Experiment`). A further block is
 *   expected to last as long as the last one: controls meanwhile would only prolong it.
 *
 * Replicas share nothing: like TCP connections they divide the budget among themselves.
 */
export class Line {
  readonly queues: Readonly<Record<Rank, TurnQueue<Waiting>>> = {
    'started-call': new TurnQueue(),
    'started-job': new TurnQueue(),
    begun: new TurnQueue(),
    call: new TurnQueue(),
    job: new TurnQueue(),
  };
  /** Requests that run. */
  running = 0;
  /** Since when something waits for a slot or for the pace, and since when something of a call does; null while nothing does. */
  private demandSinceMs: number | null = null;
  private callsDemandSinceMs: number | null = null;
  private isHeld = false;
  private window: number;
  private readonly starting = new Set<QueuedRequest>();
  /** The kinds of which the rates have counted a request of a started attempt in advance. */
  private readonly counted = new Map<Attempt, { kinds: Set<string>; isBackground: boolean }>();
  private pauseInForce: Pause | null = null;
  private lastControl: LastControl | null = null;
  private readonly lastBlocks = new Map<BudgetKind, { ms: number; endedAtMs: number }>();
  private attemptSeconds = 0;
  private attempts = 0;
  private listeners: (() => void)[] = [];

  /**
   * @param rates of each kind of request that an attempt sends
   * @param videos of lists: where the videos that they name wait
   */
  constructor(
    readonly slots: EgressSlots,
    readonly rates: ReadonlyMap<BudgetKind, SendingRate>,
    private readonly options: LineOptions,
    readonly videos?: Line,
  ) {
    this.window = options.startsSlowly ? WINDOW_FIRST : slots.max;
  }

  get waiting(): number {
    return RANKS.reduce((total, rank) => total + this.queues[rank].size, 0);
  }

  /** The running requests that are the first of their attempt. */
  get starts(): number {
    return this.starting.size;
  }

  /** Whether an experiment holds back what has not started. */
  get held(): boolean {
    return this.isHeld;
  }

  set held(held: boolean) {
    const isReleased = this.isHeld && !held;
    this.isHeld = held;
    if (isReleased) this.options.onChange();
  }

  /** Whether the platform refuses the address, and no control was served since. */
  get paused(): boolean {
    return this.pauseInForce !== null;
  }

  get refusedKind(): BudgetKind | null {
    return this.pauseInForce?.kind ?? null;
  }

  /** Milliseconds until a control may be sent; 0 while there is no pause. */
  get pauseRemainingMs(): number {
    return this.pauseInForce ? Math.max(0, this.pauseInForce.untilMs - this.options.now()) : 0;
  }

  /** Whether a pause is over and only a control is missing. */
  get isDue(): boolean {
    return this.paused && this.pauseRemainingMs === 0;
  }

  get state(): Omit<EgressUseState, 'use'> {
    return {
      refusedKind: this.refusedKind,
      pauseSeconds: this.paused ? Math.ceil(this.pauseRemainingMs / 1_000) : null,
      waiting: this.waiting,
      running: this.running,
      pace: [...this.rates].map(([kind, { perMinute }]) => ({ kind, perMinute })),
      lastControl: this.lastControl,
    };
  }

  /** Milliseconds until an attempt may start; 0 for now, Infinity until something changes. */
  startWaitMs(background: boolean): number {
    if (this.paused || this.held || this.starting.size >= this.window) return Infinity;
    return this.paceMs(background, 0);
  }

  /** Milliseconds until the rates let an attempt start after some others. */
  paceMs(background: boolean, ahead: number): number {
    return Math.max(0, ...[...this.rates.values()].map((rate) => rate.waitMs(background, ahead)));
  }

  /** Milliseconds until the slots and the rates let an attempt start after some others. */
  waitMs(background: boolean, ahead: number): number {
    return Math.max(this.paceMs(background, ahead), (ahead / this.slots.max) * this.slotSeconds * 1_000);
  }

  /** Milliseconds until all that an organization waits for has ended. */
  organizationWaitMs(organizationId: string): number {
    const { call } = this.queues;
    const ahead = call.aheadOf(organizationId, call.sizeOf(organizationId));
    return ahead === 0 ? 0 : this.waitMs(false, ahead) + this.slotSeconds * 1_000;
  }

  /** Seconds of a slot that an attempt takes; less while few have ended. */
  get slotSeconds(): number {
    return this.attemptSeconds * Math.min(1, this.attempts / ATTEMPTS_KNOWN);
  }

  /** Why nothing is sent for an attempt now. Captions of which the player was served are sent although players are refused. */
  refusal({ kind, attempt }: QueuedRequest): NotSent | null {
    const remainingMs = this.pauseRemainingMs;
    if (remainingMs === 0 || attempt.role === 'control') return null;
    if (attempt.started && kind === 'captions' && this.refusedKind === 'player') return null;
    return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: Math.max(1, Math.ceil(remainingMs / 1_000)) };
  }

  begin(request: QueuedRequest): void {
    const { kind, attempt, context } = request;
    const isBackground = context.background === true;
    const demandSinceMs = isBackground ? this.demandSinceMs : this.callsDemandSinceMs;
    const spend = (rate?: SendingRate) => rate?.spend(demandSinceMs, isBackground);
    if (!attempt.started) {
      this.starting.add(request);
      this.counted.set(attempt, { kinds: new Set(this.rates.keys()), isBackground });
      this.rates.forEach(spend);
    }
    // What was not counted in advance: a second request of a kind.
    if (!this.counted.get(attempt)?.kinds.delete(kind)) spend(this.rates.get(kind as BudgetKind));
  }

  /** To be called when what may start has started: what still waits is demand, unless something else holds it back. */
  noteDemand(): void {
    const { job, 'started-job': startedJob } = this.queues;
    const waiting = this.paused || this.held ? 0 : this.waiting;
    const nowMs = this.options.now();
    this.demandSinceMs = waiting > 0 ? (this.demandSinceMs ?? nowMs) : null;
    this.callsDemandSinceMs = waiting > job.size + startedJob.size ? (this.callsDemandSinceMs ?? nowMs) : null;
  }

  end(request: QueuedRequest): void {
    this.starting.delete(request);
    this.notify();
  }

  /** An attempt has ended: what was counted in advance and not sent is free again. */
  leave(attempt: Attempt): void {
    const { kinds = [], isBackground } = this.counted.get(attempt) ?? {};
    for (const kind of kinds) this.rates.get(kind as BudgetKind)?.refund(isBackground);
    this.counted.delete(attempt);
    if (attempt.role === 'wanted' && attempt.slotSeconds > 0) this.learn(attempt.slotSeconds);
    this.options.onChange();
  }

  /** Learns from an attempt how long one takes. */
  learn(seconds: number): void {
    const weight = seconds > this.attemptSeconds ? LONGER_WEIGHT : SHORTER_WEIGHT;
    this.attemptSeconds += (seconds - this.attemptSeconds) * (this.attempts === 0 ? 1 : weight);
    this.attempts += 1;
  }

  /** The platform answered a request of a kind, whatever the answer says about the video or channel. */
  answered(kind: BudgetKind): void {
    this.window = Math.min(this.slots.max, this.window + 1);
    this.rates.get(kind)?.grow();
  }

  /** The platform refuses the address for a kind of request: nothing that waits is sent. */
  pause(kind: BudgetKind, retryAfterSeconds: number | null): void {
    const { now, onPause, startsSlowly } = this.options;
    // Refusals of requests that were sent before the pause belong to the same block.
    if (this.pauseRemainingMs > 0) return;
    const before = this.pauseInForce;
    if (!before) this.rates.get(kind)?.decrease();
    const expectedMs = before ? before.nextMs : Math.max(PAUSE_FIRST_MS, this.expectedBlockMs(kind));
    const ms = Math.min(PAUSE_MAX_MS, retryAfterSeconds === null ? expectedMs : retryAfterSeconds * 1_000);
    const nextMs = before || expectedMs === PAUSE_FIRST_MS ? 2 * expectedMs : PAUSE_FIRST_MS;
    this.pauseInForce = { kind, sinceMs: before?.sinceMs ?? now(), nextMs, untilMs: now() + ms };
    if (startsSlowly) this.window = WINDOW_FIRST;
    onPause(kind, ms);
    this.refuseWaiting();
  }

  /** A control was served. */
  resume(): void {
    if (!this.pauseInForce) return;
    const { kind, sinceMs } = this.pauseInForce;
    const endedAtMs = this.options.now();
    this.lastBlocks.set(kind, { ms: endedAtMs - sinceMs, endedAtMs });
    this.pauseInForce = null;
    this.options.onPause(kind, null);
    this.options.onChange();
  }

  /** Notes what a control said, for the operator. */
  noteControl(kind: BudgetKind, result: ControlResult): void {
    this.lastControl = { at: new Date(), kind, result };
  }

  /** Resolves when a request has ended, or something else has changed that an experiment waits for (`notify`). */
  changed(): Promise<void> {
    return new Promise((resolve) => this.listeners.push(resolve));
  }

  notify(): void {
    for (const resolve of this.listeners.splice(0)) resolve();
  }

  /** Refuses at once what waits and is not sent while the address is refused. */
  refuseWaiting(): void {
    for (const queue of Object.values(this.queues))
      for (const waiting of queue.inTurn()) {
        const refusal = this.refusal(waiting.request);
        if (!refusal) continue;
        queue.remove(waiting, waiting.requester);
        waiting.refuse(refusal);
      }
    this.options.onChange();
  }

  private expectedBlockMs(kind: BudgetKind): number {
    const last = this.lastBlocks.get(kind);
    return last ? last.ms * 2 ** ((last.endedAtMs - this.options.now()) / BLOCK_HALF_LIFE_MS) : 0;
  }
}
