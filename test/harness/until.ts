const POLL_MS = 20;

/** Waits until a condition is true; rejects after `waitMs`, and with an error of the condition. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  waitMs = 100_000,
  pollMs = POLL_MS,
): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`Not within ${waitMs} ms: ${String(condition)}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
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
