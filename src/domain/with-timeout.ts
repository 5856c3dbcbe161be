/**
 * Waits for work for a limited time; the work itself continues.
 *
 * @returns the result of the work, undefined when the time is over
 */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, timeoutMs));
  });
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}

/** Waits for a promise that never rejects, unless the signal is aborted first. */
export function unlessAborted<T>(value: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    void value.then((result) => {
      signal.removeEventListener('abort', abort);
      resolve(result);
    });
  });
}
