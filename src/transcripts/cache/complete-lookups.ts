import { LRUCache } from 'lru-cache';

/** How much longer than its time to live an entry can be found, and how long its use can go unnoticed by the eviction. */
const REUSED_WITHIN_MS = 1_000;
const RESULTS_MAX = 100;

/**
 * The last lookups in the cache of this process that found everything. The same lookup has the same result within a
 * second, unless the cache has changed.
 */
export class CompleteLookups<Found> {
  private readonly results = new LRUCache<string, readonly Found[]>({ max: RESULTS_MAX, ttl: REUSED_WITHIN_MS });
  private changes = 0;

  /** Must be called when the cache has changed. Nothing that was evicted is retained. */
  forget(): void {
    this.changes++;
    if (this.results.size > 0) this.results.clear();
  }

  /**
   * Looks something up, or returns the result of the last lookup.
   *
   * @param name identifies what is looked up
   * @throws what `lookUp` throws
   */
  async find(
    name: string,
    lookUp: () => Promise<readonly (Found | undefined)[]>,
  ): Promise<readonly (Found | undefined)[]> {
    const known = this.results.get(name);
    if (known) return known;
    const changes = this.changes;
    const result = await lookUp();
    if (changes === this.changes && isComplete(result)) this.results.set(name, result);
    return result;
  }
}

function isComplete<Found>(result: readonly (Found | undefined)[]): result is readonly Found[] {
  return result.every((found) => found !== undefined);
}
