import { LRUCache } from 'lru-cache';

/** A result is reused for this long. That an entry has expired, or is used, is noticed at most this much later. */
const REUSED_WITHIN_MS = 1_000;
const RESULTS_MAX = 100;

/**
 * The last lookups in the cache of this process that found everything. The same lookup has the same result within a
 * second, unless the cache has changed.
 */
export class CompleteLookups<Found> {
  private readonly results = new LRUCache<string, readonly Found[]>({ max: RESULTS_MAX, ttl: REUSED_WITHIN_MS });
  private changes = 0;

  /** Must be called after each change of the cache. Also releases the texts of evicted entries. */
  invalidate(): void {
    this.changes++;
    if (this.results.size > 0) this.results.clear();
  }

  /**
   * Looks something up, or returns the result of the last complete lookup with this key, if it is still valid.
   *
   * @param key identifies what is looked up
   * @throws what `lookUp` throws
   */
  async find(
    key: string,
    lookUp: () => Promise<readonly (Found | undefined)[]>,
  ): Promise<readonly (Found | undefined)[]> {
    const known = this.results.get(key);
    if (known) return known;
    const changes = this.changes;
    const result = await lookUp();
    if (changes === this.changes && isComplete(result)) this.results.set(key, result);
    return result;
  }
}

function isComplete<Found>(result: readonly (Found | undefined)[]): result is readonly Found[] {
  return result.every((found) => found !== undefined);
}
