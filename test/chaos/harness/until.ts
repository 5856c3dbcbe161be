import { until as isTrueWithin } from '../../harness/until.js';

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
  await isTrueWithin(isTrue, timeoutMs, pauseMs).catch(() => {
    throw new Error(`${what}: not within ${timeoutMs} ms.`, { cause });
  });
}
