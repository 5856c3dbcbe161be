import { LRUCache } from 'lru-cache';
import { entryLimit } from '../domain/entry-limit.js';

/** Bounds the memory; the least recently used key is evicted. */
const KEYS_MAX = 20_000;

/** The result of counting a call. */
export interface RateRecord {
  /** False when the limit was reached; the call was not counted. */
  granted: boolean;
  /** Calls in the window, this one included if it was granted. */
  used: number;
  /** Seconds until there is room for one call more than now. */
  resetSeconds: number;
}

/** A granted call; its id is the same in this process and in Redis. */
export interface CountedCall {
  id: number;
  atMs: number;
}

/** Calls of this process in a sliding window. */
export class LocalRateCounter {
  private readonly calls = new LRUCache<string, CountedCall[]>(entryLimit(KEYS_MAX));
  private lastId = 0;

  /** Counts a call unless there are already `limit` calls within `ttlMs`. */
  increment(key: string, ttlMs: number, limit: number): RateRecord {
    const refused = this.refusal(key, ttlMs, limit);
    if (refused) return refused;
    this.add(key, ttlMs, this.next());
    const calls = this.recent(key, ttlMs);
    return rateRecord(true, calls.length, resetMs(calls, ttlMs, limit));
  }

  /** The result of refusing a call; undefined when there is room for it. */
  refusal(key: string, ttlMs: number, limit: number): RateRecord | undefined {
    const calls = this.recent(key, ttlMs);
    return calls.length < limit ? undefined : rateRecord(false, calls.length, resetMs(calls, ttlMs, limit));
  }

  /** Creates a call at the current time without counting it. */
  next(): CountedCall {
    this.lastId += 1;
    return { id: this.lastId, atMs: performance.now() };
  }

  /** Counts a call that Redis has granted. */
  add(key: string, ttlMs: number, call: CountedCall): void {
    const calls = this.pruned(key, ttlMs);
    // Concurrent calls can return from Redis in another order than they were created.
    const index = calls.findLastIndex(({ atMs }) => atMs <= call.atMs) + 1;
    calls.splice(index, 0, call);
    this.calls.set(key, calls, { ttl: ttlMs });
  }

  /** The calls of the last `ttlMs`, oldest first. */
  recent(key: string, ttlMs: number): readonly CountedCall[] {
    return this.pruned(key, ttlMs);
  }

  private pruned(key: string, ttlMs: number): CountedCall[] {
    const calls = this.calls.get(key) ?? [];
    const sinceMs = performance.now() - ttlMs;
    const first = calls.findIndex(({ atMs }) => atMs > sinceMs);
    calls.splice(0, first === -1 ? calls.length : first);
    return calls;
  }
}

/** Milliseconds until the call expires whose expiry makes room for one more. */
function resetMs(calls: readonly CountedCall[], ttlMs: number, limit: number): number {
  const nowMs = performance.now();
  return (calls[Math.max(0, calls.length - limit)]?.atMs ?? nowMs) - nowMs + ttlMs;
}

export function rateRecord(granted: boolean, used: number, resetMs: number): RateRecord {
  return { granted, used, resetSeconds: Math.max(1, Math.ceil(resetMs / 1000)) };
}
