import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until a condition is true; an error counts as false.
 *
 * @throws when it is violated in time, with what was waited for
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
  pauseMs = 20,
): Promise<void> {
  const endsAtMs = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      if (await condition()) return;
    } catch (error) {
      last = error;
    }
    if (performance.now() > endsAtMs) {
      throw new Error(`${what}: not within ${timeoutMs} ms.`, { cause: last });
    }
    await sleep(pauseMs);
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

/** Runs tasks with limited concurrency. */
export async function atOnce<T>(items: Iterable<T>, count: number, work: (item: T) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let step = next.next(); !step.done; step = next.next()) await work(step.value);
  };
  await Promise.all(Array.from({ length: count }, worker));
}
