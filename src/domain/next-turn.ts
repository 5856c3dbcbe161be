let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Waits for a turn of the event loop of its own. Work of milliseconds that is ready together, such as texts that arrived at the
 * same time, is done one after another, and other requests are served in between.
 */
export function nextTurn(): Promise<unknown> {
  return (lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve))));
}
