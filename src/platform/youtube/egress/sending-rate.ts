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
/** What the rate allows in this time may be sent at once, and at least the requests of a slow start. */
const BURST_SECONDS = 10;
const BURST_MIN = 4;
/** A ceiling allows a burst of this long, so that no minute exceeds it by much. */
const CEILING_BURST_SECONDS = 6;
/** The part of the burst that background requests leave to calls, whose first videos are read at once. */
const RESERVED_SHARE = 1 / 4;

/**
 * The rate of one kind of request through one egress, as a token bucket: unlimited until the platform refuses it, then with
 * additive increase and multiplicative decrease. The first estimate is what the platform served, over the time until its
 * pause had ended.
 */
export class SendingRate {
  /** Requests a second; infinite until a refusal. */
  private learned = Infinity;
  private readonly ceiling: number;
  /** By how much a second of full use raises the rate. */
  private growthPerSecond = 0;
  private tokens = Infinity;
  private atMs = 0;
  /** Until the first estimate. */
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
    if (this.learned !== Infinity) return;
    this.sinceMs ??= nowMs;
    if (nowMs - this.sinceMs <= COUNTED_MS) return;
    this.served /= 2;
    this.sinceMs = nowMs - (nowMs - this.sinceMs) / 2;
  }

  /** A request was served. */
  grow(): void {
    if (this.learned === Infinity) this.served += 1;
    // What is not requested proves nothing about the rate.
    else if (this.learned < this.ceiling && this.available < this.burst / 2)
      this.learned += this.growthPerSecond / this.learned;
  }

  /** The rate was refused. Before the first estimate, that needs the pause that follows. */
  decrease(): void {
    if (this.learned !== Infinity) this.limit(this.learned);
  }

  /** The pause after a refusal has ended. */
  estimate(): void {
    if (this.learned !== Infinity || this.ceilingPerMinute === 0) return;
    const seconds = Math.max(1, (this.now() - (this.sinceMs ?? this.now())) / 1_000);
    if (this.served >= SERVED_MIN) this.limit(this.served / seconds);
    this.served = 0;
    this.sinceMs = null;
  }

  private limit(refusedPerSecond: number): void {
    this.learned = Math.max(PER_SECOND_MIN, DECREASE * refusedPerSecond);
    this.growthPerSecond = Math.max(GROWTH_MIN, (refusedPerSecond - this.learned) / REGROWTH_SECONDS);
    this.tokens = Infinity;
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
