/** Before the first refusal, answered requests are counted over about this long: reported budgets are per hour or shorter. */
const COUNTED_MS = 3_600_000;
/** The part of the observed burst that is used. The rest absorbs what the estimate gets wrong. */
const BURST_SHARE = 0.8;
/** The part of an estimated rate that is used, so that the platform's budget fills again. */
const RATE_SHARE = 0.97;
/** The smallest reported budgets: an address that is refused earlier was blocked before this process used it. */
const FIRST_ANSWERED_MIN = 10;
/** The first estimate is not below the smallest reported budgets: on an egress in light use it is the use, not the budget. */
const FIRST_RATE_MIN = 1 / 60;
const FIRST_BURST_MIN = 10;
/** Each refusal divides the speed of growth by this: the estimates become exact, and each further refusal costs a pause. */
const GROWTH_SLOWDOWN = 3;
/** Budgets change, so growth never stops: at full use the rate grows by a factor of e in at most this time. */
const GROWTH_SECONDS_MAX = 24 * 3_600;
/** Far above any reported budget (1,000 an hour): a rate that has grown to this is no limit any more. */
const UNLIMITED_PER_SECOND = 20;

/**
 * What is known of the platform's budget for one kind of request through one egress: a token bucket that imitates the
 * platform's. Times are milliseconds of the epoch. Plain data, because replicas share it as JSON.
 */
export interface PaceState {
  /** The rate that the platform sustains; null before its first refusal, when nothing is limited. */
  ratePerSecond: number | null;
  /** How many requests may be sent at once after a pause. */
  burst: number;
  /** Requests that may be sent now; negative after replicas sent more than there was. */
  available: number;
  atMs: number;
  /**
   * Requests that were served since `sinceMs`: since the last refusal; before the first, over about an hour. Refused ones say
   * nothing about the budget: dozens are in flight when the first refusal arrives.
   */
  answered: number;
  sinceMs: number;
  /** When `available` was last equal to `burst`, and the requests that were served since. */
  fullAtMs: number;
  answeredSinceFull: number;
  /** At full use the rate grows by a factor of e in this time. */
  growthSeconds: number;
}

export const UNLIMITED_PACE: PaceState = {
  ratePerSecond: null,
  burst: 0,
  available: 0,
  atMs: 0,
  answered: 0,
  sinceMs: 0,
  fullAtMs: 0,
  answeredSinceFull: 0,
  growthSeconds: 0,
};

/** Counts requests as sent. */
export function paceAfterSending(state: PaceState, count: number, nowMs: number): PaceState {
  const next = refilled(state, nowMs);
  if (next.ratePerSecond !== null) {
    // The platform's own bucket, of whose burst this is a share, cannot be emptier: what several replicas sent during an
    // outage of Redis is counted at once.
    next.available = Math.max(next.available - count, (1 - 1 / BURST_SHARE) * next.burst);
    return next;
  }
  if (next.sinceMs === 0) next.sinceMs = nowMs;
  if (nowMs - next.sinceMs > COUNTED_MS) {
    next.answered /= 2;
    next.sinceMs = nowMs - (nowMs - next.sinceMs) / 2;
  }
  return next;
}

/**
 * Counts requests as served, and raises the rate by them. Only while the budget is in use: what is not requested proves
 * nothing about the rate.
 */
export function paceAfterAnswers(state: PaceState, count: number): PaceState {
  const { ratePerSecond, available, burst, growthSeconds } = state;
  const next = {
    ...state,
    answered: state.answered + count,
    answeredSinceFull: state.answeredSinceFull + count,
  };
  if (ratePerSecond === null || available > burst / 2) return next;
  const grown = ratePerSecond * (1 + count / (ratePerSecond * growthSeconds));
  return { ...next, ratePerSecond: grown > UNLIMITED_PER_SECOND ? null : grown };
}

/**
 * Lowers the rate after a refusal. The average since the last refusal is a lower bound of what the platform sustains,
 * because each refusal leaves its bucket empty; and so is the current rate, less what growing may have added since it
 * passed the sustained rate.
 */
export function paceAfterRefusal(state: PaceState, nowMs: number): PaceState {
  const next = refilled(state, nowMs);
  const empty = { ...next, available: 0, fullAtMs: 0, answeredSinceFull: 0 };
  // The pause that follows is needed for the first estimate, so `answered` and `sinceMs` stay until it ends.
  if (next.ratePerSecond === null) return empty;
  const seconds = Math.max(1, (nowMs - next.sinceMs) / 1000);
  const refillSeconds = next.burst / next.ratePerSecond;
  const counted = { ...empty, answered: 0, sinceMs: nowMs };
  counted.growthSeconds = Math.min(GROWTH_SECONDS_MAX, next.growthSeconds * GROWTH_SLOWDOWN);
  const inBurst = next.fullAtMs > next.sinceMs && nowMs - next.fullAtMs < (refillSeconds * 1000) / 2;
  if (inBurst) {
    const burst = Math.max(1, 0.9 * Math.min(next.answeredSinceFull, next.burst), next.burst / 2);
    return { ...counted, burst, ratePerSecond: 0.9 * next.ratePerSecond };
  }
  const growthInRefill = refillSeconds / next.growthSeconds;
  const overshoot = 1 + Math.sqrt(2 * growthInRefill) + growthInRefill / 3;
  const sustained = RATE_SHARE * Math.max(next.answered / seconds, next.ratePerSecond / overshoot);
  return { ...counted, ratePerSecond: Math.min(sustained, 0.95 * next.ratePerSecond) };
}

/**
 * Starts again when the platform has answered a probe. The first time, estimates rate and burst, unless too little was served
 * to say anything about a budget.
 *
 * @param times of the refusal, of the end of the pause, and now
 */
export function paceAfterRecovery(
  state: PaceState,
  { refusedAtMs, endedAtMs, nowMs }: { refusedAtMs: number; endedAtMs: number; nowMs: number },
): PaceState {
  const pausedSeconds = Math.max(1, (endedAtMs - refusedAtMs) / 1000);
  if (state.ratePerSecond !== null) {
    const growthSeconds = Math.min(GROWTH_SECONDS_MAX, Math.max(state.growthSeconds, pausedSeconds));
    return refilled({ ...state, growthSeconds }, nowMs);
  }
  if (state.answered < FIRST_ANSWERED_MIN) return { ...state, answered: 0, sinceMs: 0 };
  const sendingSeconds = Math.max(0, (refusedAtMs - state.sinceMs) / 1000);
  const cycleSeconds = sendingSeconds + pausedSeconds;
  const learned = {
    ...state,
    ratePerSecond: Math.max(FIRST_RATE_MIN, (RATE_SHARE * state.answered) / cycleSeconds),
    burst: Math.max(FIRST_BURST_MIN, (BURST_SHARE * state.answered * pausedSeconds) / cycleSeconds),
    ...{ available: 0, atMs: refusedAtMs, fullAtMs: 0, answeredSinceFull: 0, answered: 0, sinceMs: refusedAtMs },
    growthSeconds: pausedSeconds,
  };
  return refilled(learned, nowMs);
}

/** Milliseconds until `count` requests may be sent; 0 when they may be sent now. */
export function paceWaitMs(state: PaceState, count: number, nowMs: number): number {
  if (state.ratePerSecond === null) return 0;
  const missing = count - refilled(state, nowMs).available;
  return missing <= 0 ? 0 : (missing / state.ratePerSecond) * 1000;
}

function refilled(state: PaceState, nowMs: number): PaceState {
  const { ratePerSecond, burst, available, atMs } = state;
  const next = { ...state, atMs: Math.max(atMs, nowMs) };
  if (ratePerSecond === null) return next;
  next.available = Math.min(burst, available + (Math.max(0, nowMs - atMs) * ratePerSecond) / 1000);
  if (next.available < burst) return next;
  return { ...next, fullAtMs: next.atMs, answeredSinceFull: 0 };
}
