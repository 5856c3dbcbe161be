import { LRUCache } from 'lru-cache';

/** The callers that were valid at their last look-up, within ten minutes. An entry never authenticates a call. */
export class RecentlyValid {
  private readonly entries = new LRUCache<string, true>({ max: 10_000, ttl: 10 * 60_000 });

  record(caller: string, isValid: boolean): void {
    if (isValid) this.entries.set(caller, true);
    else this.entries.delete(caller);
  }

  has(caller: string): boolean {
    return this.entries.has(caller);
  }
}
