import { ChannelTranscriptsError } from './errors.js';

/** The consecutive failure that is thrown. The pauses between eight add up to about three minutes. */
const FAILURES_MAX = 8;
const PAUSE_SECONDS_MAX = 60;

/** Waits for some seconds; rejects with the reason of the signal when that aborts first. */
export type Pause = (seconds: number, signal: AbortSignal | undefined) => Promise<void>;

export const pause: Pause = async (seconds, signal) => {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      if (signal?.aborted) reject(signal.reason as Error);
      else resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    signal?.addEventListener('abort', end, { once: true });
  });
};

/**
 * Repeats a read until it succeeds, because a client that follows a job for hours meets restarts and rate limits. Throws
 * errors that a retry cannot remedy at once, and the others after eight failures in a row.
 */
export async function patiently<T>(
  read: () => Promise<T>,
  signal: AbortSignal | undefined,
  wait: Pause = pause,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await read();
    } catch (error) {
      if (signal?.aborted || failures >= FAILURES_MAX || !canPass(error)) throw error;
      const given = error instanceof ChannelTranscriptsError ? error.retryAfterSeconds : undefined;
      // The service states at least how long to wait: a restart can take longer than its `Retry-After` of a few seconds.
      await wait(Math.max(given ?? 0, Math.min(PAUSE_SECONDS_MAX, 2 ** failures)), signal);
    }
  }
}

/** `fetch` rejects with a TypeError when there is no response. */
function canPass(error: unknown): boolean {
  return error instanceof ChannelTranscriptsError ? error.retryable : error instanceof TypeError;
}
