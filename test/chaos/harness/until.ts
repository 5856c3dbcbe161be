import { until as isTrueWithin, type Measurements } from '../../until.js';

/**
 * Waits until a condition is true; an error counts as false.
 *
 * @throws when it is not true in time, with what was waited for
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
  pauseMs = 20,
): Promise<void> {
  let cause: unknown;
  const isTrue = async (): Promise<boolean> => {
    try {
      return await condition();
    } catch (error) {
      cause = error;
      return false;
    }
  };
  try {
    await isTrueWithin(isTrue, timeoutMs, pauseMs);
  } catch {
    throw new Error(`${what}: not within ${timeoutMs} ms.`, { cause });
  }
}

/**
 * Says how many measurements were repeated, and the worst values of those that were discarded: a report shows and
 * checks the last measurement of each fault only.
 *
 * @param values the measured milliseconds by what they are; undefined for what was not measured
 */
export function describeRepeats<T>(
  measured: readonly Measurements<T>[],
  values: Readonly<Record<string, (end: T) => number | undefined>>,
): string {
  const discarded = measured.flatMap(({ all }) => all.slice(0, -1));
  if (discarded.length === 0) return 'No measurement was late and repeated.';
  const worst = Object.entries(values).flatMap(([name, of]) => {
    const ms = Math.max(...discarded.map((end) => of(end) ?? 0));
    return ms > 0 ? [`${name} ${(ms / 1000).toFixed(1)} s`] : [];
  });
  const count = discarded.length === 1 ? '1 measurement was' : `${discarded.length} measurements were`;
  return `Times are those of the last measurement of each fault; ${count} late and repeated, at worst ${worst.join(', ')}.`;
}

/** Runs tasks with limited concurrency. */
export async function atOnce<T>(items: Iterable<T>, count: number, work: (item: T) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let step = next.next(); !step.done; step = next.next()) await work(step.value);
  };
  await Promise.all(Array.from({ length: count }, worker));
}
