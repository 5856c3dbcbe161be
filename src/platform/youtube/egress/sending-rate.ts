/** The lowest rate: what is refused below it was refused for another reason. */
const PER_MINUTE_MIN = 12;
/** Fewer requests before a refusal say nothing about a budget: the address was blocked before this process used it. */
const SENT_MIN = 10;
/** A longer pause between two requests is no demand: light use shows the use, not the budget. */
const DEMAND_GAP_MS = 5_000;
/** What was sent is counted over about this long: reported budgets are per hour or shorter. */
const COUNTED_MS = 3_600_000;
/** The rate doubles in this time, up to half of what was refused, as TCP's slow start does. */
const DOUBLING_SECONDS = 180;
/** After that it regains what was refused in this time, and grows on at the same speed. */
const REGROWTH_SECONDS = 3_600;
/** What the rate allows in this time may be sent at once, and at least the requests of a slow start. */
const BURST_SECONDS = 10;
const BURST_MIN = 2;
/** A ceiling allows a burst of this long, so that no minute exceeds it by much. */
const CEILING_BURST_SECONDS = 6;
/** The part of the burst that background requests leave to calls, whose first videos are read at once. */
const RESERVED_SHARE = 1 / 4;

/**
 * The rate of one kind of request through one egress, as a token bucket. It is unlimited until the platform refuses the
 * address. Then it starts at 12 a minute and grows as TCP does: it doubles up to half of what was sent a minute while there was
 * demand, then increases linearly.
 */
export class SendingRate {
  /** Requests a second; infinite until a refusal. */
  private learned = Infinity;
  /** Half of the rate that was refused. */
  private threshold = Infinity;
  private readonly ceiling: number;
  private tokens = Infinity;
  private atMs = 0;
  /** Requests since the last refusal, and for how long there was demand. */
  private sent = 0;
  private demandMs = 0;
  private sentAtMs = -Infinity;
  private grownAtMs = 0;

  /**
   * @param ceilingPerMinute the most requests a minute; 0: the rate is never limited; undefined: no ceiling
   * @param now milliseconds of a monotonic clock
   */
  constructor(
    private readonly ceilingPerMinute: number | undefined,
    private readonly now: () => number,
  ) {
    this.ceiling = ceilingPerMinute ? ceilingPerMinute / 60 : Infinity;
  }

  /** Requests a minute that may be sent; null for no limit. */
  get perMinute(): number | null {
    return this.perSecond === Infinity ? null : this.perSecond * 60;
  }

  /** Milliseconds until a request may be sent after `ahead` others. */
  waitMs(background: boolean, ahead = 0): number {
    if (this.perSecond === Infinity) return 0;
    // At most half of burst − 1, because a background request needs one more than the reserve.
    const reserve = background ? Math.min(RESERVED_SHARE * this.burst, (this.burst - 1) / 2) : 0;
    return Math.max(0, ((1 + ahead + reserve - this.available) / this.perSecond) * 1_000);
  }

  /** Counts a request that is sent; -1 for one that was counted in advance and is not. */
  spend(count: 1 | -1): void {
    const nowMs = this.now();
    this.tokens = this.available - count;
    this.atMs = nowMs;
    this.sent += count;
    if (count < 0) return;
    this.demandMs += Math.min(DEMAND_GAP_MS, nowMs - this.sentAtMs);
    this.sentAtMs = nowMs;
    if (this.demandMs <= COUNTED_MS) return;
    this.sent /= 2;
    this.demandMs /= 2;
  }

  /** A request was served. */
  grow(): void {
    const nowMs = this.now();
    const seconds = Math.min(DEMAND_GAP_MS, nowMs - this.grownAtMs) / 1_000;
    this.grownAtMs = nowMs;
    if (this.learned === Infinity || this.learned >= this.ceiling) return;
    const doubled = this.learned * 2 ** (seconds / DOUBLING_SECONDS);
    if (doubled <= this.threshold) this.learned = doubled;
    else this.learned += (this.threshold / REGROWTH_SECONDS) * seconds;
  }

  /** The platform refused the address. */
  decrease(): void {
    if (this.ceilingPerMinute === 0) return;
    if (this.sent >= SENT_MIN) {
      const refusedPerSecond = this.sent / (Math.max(1_000, this.demandMs) / 1_000);
      this.learned = PER_MINUTE_MIN / 60;
      this.threshold = Math.max(this.learned, refusedPerSecond / 2);
      this.tokens = Infinity;
    }
    this.sent = 0;
    this.demandMs = 0;
    this.sentAtMs = -Infinity;
  }

  private get perSecond(): number {
    return Math.min(this.learned, this.ceiling);
  }

  private get burst(): number {
    const learned = Math.max(BURST_MIN, BURST_SECONDS * this.learned);
    return Math.min(learned, Math.max(1, CEILING_BURST_SECONDS * this.ceiling));
  }

  private get available(): number {
    if (this.perSecond === Infinity) return Infinity;
    return Math.min(this.burst, this.tokens + ((this.now() - this.atMs) / 1_000) * this.perSecond);
  }
}
