/** The lowest rate: what is refused below it was refused for another reason. */
const PER_MINUTE_MIN = 12;
/** Fewer requests before a refusal say nothing about a budget: the address was blocked before this process used it. */
const SENT_MIN = 10;
/** What was sent is counted over about this long: reported budgets are per hour or shorter. */
const COUNTED_MS = 3_600_000;
/** The rate doubles in this time, up to half of what was refused, as TCP's slow start does. */
const DOUBLING_SECONDS = 180;
/** After that it regains what was refused in this time, and grows on at the same speed. */
const REGROWTH_SECONDS = 3_600;
/** After a longer pause between two answers the rate grows no more: it was not used. */
const GROWTH_GAP_MS = 5_000;
/** What the rate allows in this time may be sent at once, and at least the requests of a slow start. */
const BURST_SECONDS = 10;
const BURST_MIN = 2;
/** A ceiling allows a burst of this long, so that no minute exceeds it by much. */
const CEILING_BURST_SECONDS = 6;
/** The part of the burst that background requests leave to calls. */
const RESERVED_SHARE = 1 / 3;
/** The part of what was refused that background requests with a rate of their own send at most: they never look for more. */
const BACKGROUND_SHARE = 2 / 3;
/** What they sent is counted over at least this time: at once they send what is due, as fast as it is answered. */
const BACKGROUND_COUNTED_MS_MIN = 60_000;
const COUNTED_MS_MIN = 1_000;
/** The first rate of background requests, and how many may be sent at once before a refusal. */
const BACKGROUND_PER_MINUTE_FIRST = 20;
const BACKGROUND_BURST_FIRST = 40;
/** Before a refusal it doubles in this time while it is alone: no call has sent a request for so long. */
const ALONE_DOUBLING_SECONDS = 10;
const ALONE_MS = 30_000;

interface RateLimits {
  /** The most requests a minute; 0: the rate is never limited; undefined: no ceiling. */
  ceilingPerMinute?: number | undefined;
  /** `apart`: background requests have a rate of their own, and what is refused to them limits no call. `only`: that rate. */
  background?: 'apart' | 'only';
}

/**
 * The rate of one kind of request through one egress, as a token bucket. It is unlimited until the platform refuses the
 * address. Then it starts at 12 a minute and grows as TCP does: it doubles up to half of what was sent a minute while there was
 * demand, then increases linearly. There is demand while something waits for a slot or for the rate: what is sent without
 * it shows the use and not the budget, so that a refusal limits nothing.
 *
 * Background requests with a rate of their own have one from the start. Before a refusal it limits what is claimed
 * (`admitsBackground`), and goes back to what it has learned beside calls with the first call after 30 seconds without any.
 */
export class SendingRate {
  /** Requests a second; infinite until a refusal. */
  private learned: number;
  private threshold = Infinity;
  private readonly ceiling: number;
  private readonly background: SendingRate | null;
  private tokens = Infinity;
  private atMs = 0;
  /** Requests since the last refusal while there was demand, and for how long there was. */
  private sent = 0;
  private demandMs = 0;
  private sentAtMs = -Infinity;
  private grownAtMs = 0;
  /** When a call has sent a request, for the rate of background requests, and what it has learned beside calls. */
  private calledAtMs = -Infinity;
  private besideCalls = BACKGROUND_PER_MINUTE_FIRST / 60;

  /** @param now milliseconds of a monotonic clock */
  constructor(
    private readonly limits: RateLimits,
    private readonly now: () => number,
  ) {
    const { ceilingPerMinute, background } = limits;
    this.ceiling = ceilingPerMinute ? ceilingPerMinute / 60 : Infinity;
    this.learned = background === 'only' ? BACKGROUND_PER_MINUTE_FIRST / 60 : Infinity;
    this.background = background === 'apart' ? new SendingRate({ background: 'only' }, now) : null;
  }

  /** Requests a minute that may be sent, of background work when calls are not limited; null for no limit. */
  get perMinute(): number | null {
    const isLimited = this.isRefused || this.ceiling < Infinity;
    return isLimited ? this.perSecond * 60 : (this.background?.perMinute ?? null);
  }

  /** Whether background work may begin something new that sends a request. */
  get admitsBackground(): boolean {
    return this.waitMs(true) === 0 && (this.background?.available ?? 1) >= 1;
  }

  /** Milliseconds until a request may be sent after `ahead` others. */
  waitMs(background: boolean, ahead = 0): number {
    const ownMs = background && this.background?.isRefused === true ? this.background.waitMs(false, ahead) : 0;
    if (this.perSecond === Infinity) return ownMs;
    // At most half of burst − 1, because a background request needs one more than the reserve.
    const reserve = background ? Math.min(RESERVED_SHARE * this.burst, (this.burst - 1) / 2) : 0;
    return Math.max(ownMs, ((1 + ahead + reserve - this.available) / this.perSecond) * 1_000);
  }

  /** Counts a request that is sent. @param demandSinceMs since when something waits; null when nothing does */
  spend(demandSinceMs: number | null, background = false): void {
    const nowMs = this.now();
    this.addTokens(-1);
    if (background && this.background) return this.background.spend(null);
    this.background?.called();
    const unsentMs = nowMs - this.sentAtMs;
    this.sentAtMs = nowMs;
    const isBackground = this.limits.background === 'only';
    if (demandSinceMs === null && !isBackground) return;
    this.sent += 1;
    // Background work sends what is due, as fast as it is answered, and so without waiting.
    this.demandMs += Math.min(unsentMs, isBackground ? BACKGROUND_COUNTED_MS_MIN : nowMs - (demandSinceMs ?? nowMs));
    if (this.demandMs <= COUNTED_MS) return;
    this.sent /= 2;
    this.demandMs /= 2;
  }

  /** A request that was counted in advance is not sent. */
  refund(background = false): void {
    this.addTokens(1);
    if (background && this.background) return this.background.refund();
    this.sent = Math.max(0, this.sent - 1);
  }

  /** A request was served. */
  grow(): void {
    this.background?.grow();
    const nowMs = this.now();
    const seconds = Math.min(GROWTH_GAP_MS, nowMs - this.grownAtMs) / 1_000;
    this.grownAtMs = nowMs;
    const most = this.limits.background === 'only' ? 2 * BACKGROUND_SHARE * this.threshold : this.ceiling;
    if (this.learned === Infinity || this.learned >= most) return;
    // What calls are served says nothing about a rate that nothing uses.
    const isUnused = this.limits.background === 'only' && !this.isRefused && this.available >= this.burst;
    if (isUnused) return;
    const isAlone = !this.isRefused && nowMs - this.calledAtMs > ALONE_MS;
    const doubled = this.learned * 2 ** (seconds / (isAlone ? ALONE_DOUBLING_SECONDS : DOUBLING_SECONDS));
    if (doubled <= this.threshold) this.learned = doubled;
    else this.learned += (this.threshold / REGROWTH_SECONDS) * seconds;
    if (!isAlone) this.besideCalls = this.learned;
  }

  /** The platform refused the address. */
  decrease(): void {
    this.background?.decrease();
    if (this.limits.ceilingPerMinute === 0) return;
    if (this.sent >= SENT_MIN) {
      const countedMsMin = this.limits.background === 'only' ? BACKGROUND_COUNTED_MS_MIN : COUNTED_MS_MIN;
      const refusedPerSecond = this.sent / (Math.max(countedMsMin, this.demandMs) / 1_000);
      this.learned = PER_MINUTE_MIN / 60;
      this.threshold = Math.max(this.learned, refusedPerSecond / 2);
      this.tokens = Infinity;
    }
    this.sent = 0;
    this.demandMs = 0;
    this.sentAtMs = -Infinity;
  }

  /** A call has sent a request: what was learned without any calls says nothing about what is left beside them. */
  private called(): void {
    const nowMs = this.now();
    if (!this.isRefused && nowMs - this.calledAtMs > ALONE_MS) this.learned = this.besideCalls;
    this.calledAtMs = nowMs;
  }

  /** Whether a refusal limits it. */
  private get isRefused(): boolean {
    return this.threshold < Infinity;
  }

  private get perSecond(): number {
    return Math.min(this.learned, this.ceiling);
  }

  private get burst(): number {
    const learned = Math.max(this.isRefused ? BURST_MIN : BACKGROUND_BURST_FIRST, BURST_SECONDS * this.learned);
    return Math.min(learned, Math.max(1, CEILING_BURST_SECONDS * this.ceiling));
  }

  private get available(): number {
    if (this.perSecond === Infinity) return Infinity;
    return Math.min(this.burst, this.tokens + ((this.now() - this.atMs) / 1_000) * this.perSecond);
  }

  private addTokens(count: number): void {
    this.tokens = this.available + count;
    this.atMs = this.now();
  }
}
