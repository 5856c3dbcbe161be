import type { ControlResult, EgressUseState, LastControl } from '../../egress-states.js';
import type { EgressSlots, Gate, Line, QueuedRequest, RequestQueue } from './request-queue.js';
import type { SendingRate } from './sending-rate.js';
import type { NotSent } from './upstream-response.js';

/** How many channels or videos are started at a time after the start and after a pause. */
const WINDOW_FIRST = 4;
/** The first pause without a `Retry-After`; each refused control prolongs it by twice as much as the one before. */
const PAUSE_FIRST_MS = 30_000;
const PAUSE_MAX_MS = 3_600_000;
/** The length of the last block counts for half as much after this time. */
const BLOCK_HALF_LIFE_MS = 6 * 3_600_000;

/** The kinds of requests of which the platform counts a budget each. A video needs its player and then its captions. */
export type BudgetKind = 'player' | 'captions' | 'list';

interface Pause {
  /** The kind of request that is refused. */
  readonly kind: BudgetKind;
  readonly sinceMs: number;
  /** By how much it is prolonged when the control is refused. */
  readonly nextMs: number;
  /** After that, a control finds out whether the pause ends. */
  readonly untilMs: number;
}

interface EgressGateOptions {
  queue: RequestQueue;
  slots: EgressSlots;
  /** Of lists: where the videos that they name wait. */
  videos?: Line | undefined;
  /** Of each kind of request that an attempt sends. */
  rates: ReadonlyMap<BudgetKind, SendingRate>;
  /** Whether attempts start slowly: not through a gateway, whose addresses are new ones. */
  startsSlowly: boolean;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Called when a pause begins or is prolonged (with its milliseconds), and when it has ended (with null). */
  onPause: (kind: BudgetKind, pauseMs: number | null) => void;
}

/**
 * When requests for one use (videos or channels) are sent through one egress. The platform's budgets are unknown, differ by
 * address and change, so they are found out as TCP finds out the capacity of a network:
 *
 * - Slow start: 4 videos are started at a time after the start and after a pause, and one more for each request that is
 *   served, up to the slots of the egress. So the first refusal meets few requests in flight.
 * - The rate of each kind of request (`SendingRate`). A video starts when the rates allow its requests.
 * - A pause while the platform refuses the address. It ends when a control is served (`Examination`). A further block is
 *   expected to last as long as the last one: controls meanwhile would only prolong it.
 *
 * Replicas share nothing: like TCP connections they divide the budget among themselves.
 */
export class EgressGate implements Gate {
  readonly line: Line;
  readonly rates: ReadonlyMap<BudgetKind, SendingRate>;
  /** Whether an examination holds back what has not started. */
  held = false;
  requestEnded: () => void = () => undefined;
  private window: number;
  /** The running requests that are the first of their attempt. */
  private starting = new Set<QueuedRequest>();
  /** The kinds of which the rates have counted a request of a started attempt in advance. */
  private readonly counted = new Map<QueuedRequest['attempt'], Set<string>>();
  private pauseInForce: Pause | null = null;
  private lastControl: LastControl | null = null;
  private readonly lastBlocks = new Map<BudgetKind, { ms: number; endedAtMs: number }>();

  constructor(private readonly options: EgressGateOptions) {
    const { queue, slots, videos, rates, startsSlowly } = options;
    this.rates = rates;
    this.window = startsSlowly ? WINDOW_FIRST : slots.max;
    this.line = queue.open(this, slots, videos);
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
    const { waiting, running } = this.line;
    return {
      refusedKind: this.refusedKind,
      pauseSeconds: this.paused ? Math.ceil(this.pauseRemainingMs / 1_000) : null,
      waiting,
      running,
      pace: [...this.rates].map(([kind, { perMinute }]) => ({ kind, perMinute })),
      lastControl: this.lastControl,
    };
  }

  /** The platform refuses the address for a kind of request: nothing that waits is sent. */
  pause(kind: BudgetKind, retryAfterSeconds: number | null): void {
    const { now, onPause, queue, startsSlowly } = this.options;
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
    queue.refuseWaiting(this.line);
  }

  /** A control was served. */
  resume(): void {
    if (!this.pauseInForce) return;
    const { kind, sinceMs } = this.pauseInForce;
    const endedAtMs = this.options.now();
    this.lastBlocks.set(kind, { ms: endedAtMs - sinceMs, endedAtMs });
    this.pauseInForce = null;
    this.options.onPause(kind, null);
    this.options.queue.startNext();
  }

  /** Notes what a control said, for the operator. */
  noteControl(kind: BudgetKind, result: ControlResult): void {
    this.lastControl = { at: new Date(), kind, result };
  }

  /** The platform answered a request of a kind, whatever the answer says about the video or channel. */
  answered(kind: BudgetKind): void {
    this.window = Math.min(this.line.slots.max, this.window + 1);
    this.rates.get(kind)?.grow();
  }

  /** An attempt has ended: what was counted in advance and not sent is free again. */
  leave(attempt: QueuedRequest['attempt']): void {
    for (const kind of this.counted.get(attempt) ?? []) this.rates.get(kind as BudgetKind)?.spend(-1);
    this.counted.delete(attempt);
    if (attempt.role === 'wanted' && attempt.slotSeconds > 0) this.line.learn(attempt.slotSeconds);
    this.options.queue.startNext();
  }

  startWaitMs(background: boolean): number {
    if (this.paused || this.held || this.starting.size >= this.window) return Infinity;
    return this.paceMs(background, 0);
  }

  paceMs(background: boolean, ahead: number): number {
    return Math.max(0, ...[...this.rates.values()].map((rate) => rate.waitMs(background, ahead)));
  }

  /** Captions of which the player was served are sent although players are refused. */
  refusal({ kind, attempt }: QueuedRequest): NotSent | null {
    const remainingMs = this.pauseRemainingMs;
    if (remainingMs === 0 || attempt.role === 'control') return null;
    if (attempt.started && kind === 'captions' && this.refusedKind === 'player') return null;
    return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: Math.max(1, Math.ceil(remainingMs / 1_000)) };
  }

  private expectedBlockMs(kind: BudgetKind): number {
    const last = this.lastBlocks.get(kind);
    return last ? last.ms * 2 ** ((last.endedAtMs - this.options.now()) / BLOCK_HALF_LIFE_MS) : 0;
  }

  begin(request: QueuedRequest): void {
    const { kind, attempt } = request;
    if (!attempt.started) {
      this.starting.add(request);
      this.counted.set(attempt, new Set(this.rates.keys()));
      for (const rate of this.rates.values()) rate.spend(1);
    }
    // What was not counted in advance: a second request of a kind.
    if (!this.counted.get(attempt)?.delete(kind)) this.rates.get(kind as BudgetKind)?.spend(1);
  }

  end(request: QueuedRequest): void {
    this.starting.delete(request);
    this.requestEnded();
  }
}
