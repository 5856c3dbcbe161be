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
