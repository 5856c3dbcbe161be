const ITEMS_MAX = 20_000;

/**
 * Which of its two forms a playlist page came in (the newer one since June 2026), for the counters: a form that changes
 * is the first sign of answers that will not be readable.
 */
export function playlistShape(page: unknown): 'old' | 'new' | 'none' {
  const pending: unknown[] = [page];
  for (let seen = 0; pending.length > 0 && seen < ITEMS_MAX; seen += 1) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (Object.hasOwn(value, 'playlistVideoRenderer')) return 'old';
    if (Object.hasOwn(value, 'lockupViewModel')) return 'new';
    for (const inner of Object.values(value)) pending.push(inner);
  }
  return 'none';
}
