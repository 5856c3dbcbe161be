import type { ThrottlerStorage } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';

export type RateRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** Whoever was not seen for longest is forgotten first, so that many callers cannot fill the memory. */
const CALLERS_MAX = 20_000;

/**
 * Calls in a sliding window, counted by this process alone. The library's own storage would do, but for two things: it
 * holds every caller of the last minute, however many there are, and it does not tell when the oldest call leaves.
 */
export class OwnRateCounts implements ThrottlerStorage {
  private readonly calls = new LRUCache<string, number[]>({ max: CALLERS_MAX });

  /** Counts a call unless that would be more than `limit` within `ttlMs`; a refused call does not count. */
  increment(key: string, ttlMs: number, limit: number): Promise<RateRecord> {
    const nowMs = performance.now();
    const calls = (this.calls.get(key) ?? []).filter((atMs) => atMs > nowMs - ttlMs);
    const granted = calls.length < limit;
    if (granted) calls.push(nowMs);
    this.calls.set(key, calls, { ttl: ttlMs });
    // The call whose leaving makes room for one more.
    const leavesFirst = calls[Math.max(0, calls.length - limit)] ?? nowMs;
    return Promise.resolve(rateRecord(granted, calls.length, leavesFirst - nowMs + ttlMs));
  }
}

/** @param resetMs when there is room for one call more than now */
export function rateRecord(granted: boolean, calls: number, resetMs: number): RateRecord {
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000));
  return {
    totalHits: calls,
    timeToExpire: resetSeconds,
    isBlocked: !granted,
    timeToBlockExpire: granted ? 0 : resetSeconds,
  };
}
