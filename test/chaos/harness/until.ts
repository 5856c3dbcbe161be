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

/** Runs tasks with limited concurrency. */
export async function atOnce<T>(items: Iterable<T>, count: number, work: (item: T) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let step = next.next(); !step.done; step = next.next()) await work(step.value);
  };
  await Promise.all(Array.from({ length: count }, worker));
}
