import type { ThrottlerStorage } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';

export type RateRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** Whoever was not seen for longest is forgotten first, so that many callers cannot fill the memory. */
const CALLERS_MAX = 20_000;

/** A granted call: its number is the same in this process and in the counts that all processes share. */
export interface CountedCall {
  id: number;
  atMs: number;
}

/**
 * Calls in a sliding window, counted by this process alone. The library's own storage would do, but for two things: it
 * holds every caller of the last minute, however many there are, and it does not tell when the oldest call leaves.
 */
export class LocalRateCounter implements ThrottlerStorage {
  private readonly calls = new LRUCache<string, CountedCall[]>({ max: CALLERS_MAX });
  private lastId = 0;

  /** Counts a call unless that would be more than `limit` within `ttlMs`; a refused call does not count. */
  increment(key: string, ttlMs: number, limit: number): Promise<RateRecord> {
    const refused = this.refusal(key, ttlMs, limit);
    if (refused) return Promise.resolve(refused);
    const call = this.next();
    this.add(key, ttlMs, call);
    const calls = this.recent(key, ttlMs);
    return Promise.resolve(rateRecord(true, calls.length, resetMs(calls, ttlMs, limit)));
  }

  /** The refusal of one more call, when there have been `limit` within `ttlMs`. */
  refusal(key: string, ttlMs: number, limit: number): RateRecord | undefined {
    const calls = this.recent(key, ttlMs);
    return calls.length < limit ? undefined : rateRecord(false, calls.length, resetMs(calls, ttlMs, limit));
  }

  /** A call that begins now and is not counted yet. */
  next(): CountedCall {
    this.lastId += 1;
    return { id: this.lastId, atMs: performance.now() };
  }

  /** Counts a call that was granted elsewhere. */
  add(key: string, ttlMs: number, call: CountedCall): void {
    const calls = this.pruned(key, ttlMs);
    // Calls that wait for Redis at the same time are not answered in the order in which they began.
    const later = calls.findLastIndex(({ atMs }) => atMs <= call.atMs) + 1;
    calls.splice(later, 0, call);
    this.calls.set(key, calls, { ttl: ttlMs });
  }

  /** The calls of the last `ttlMs`, the oldest first. */
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

/** When the call leaves the window whose leaving makes room for one more. */
function resetMs(calls: readonly CountedCall[], ttlMs: number, limit: number): number {
  const nowMs = performance.now();
  return (calls[Math.max(0, calls.length - limit)]?.atMs ?? nowMs) - nowMs + ttlMs;
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
