const POLL_MS = 20;

/** Waits until a condition is true; rejects after `waitMs`. */
export async function until(condition: () => boolean | Promise<boolean>, waitMs = 8_000): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`Not within ${waitMs} ms: ${String(condition)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
