/** A refusal multiplies the rate by this. */
const DECREASE = 0.7;
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
export class SendingRate {
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
