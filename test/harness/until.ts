const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 250;
/** The pause grows with the wait: each look at a condition costs calls and statements, and many tests wait at once. */
const PAUSE_OF_WAIT = 0.1;

/** Waits until a condition is true; rejects after `waitMs`, and with an error of the condition. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  waitMs = 100_000,
  pauseMaxMs = PAUSE_MAX_MS,
): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > waitMs) throw new Error(`Not within ${waitMs} ms: ${String(condition)}`);
    const pauseMs = Math.min(Math.max(waitedMs * PAUSE_OF_WAIT, PAUSE_MIN_MS), pauseMaxMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** A busy machine delays a measurement now and then; a fault of the service delays every one. */
const MEASUREMENTS_MAX = 4;

/** The measurements of one fault: `last` is in time, or none is. */
export interface Measurements<T> {
  all: readonly T[];
  last: T;
}

/**
 * Repeats a measurement that is not in time.
 *
 * @param first a measurement that was made before
 */
export async function measureInTime<T>(
  measure: () => Promise<T>,
  isInTime: (end: T) => boolean,
  first?: T,
): Promise<Measurements<T>> {
  let last = first ?? (await measure());
  const all = [last];
  while (!isInTime(last) && all.length < MEASUREMENTS_MAX) {
    last = await measure();
    all.push(last);
  }
  return { all, last };
}
