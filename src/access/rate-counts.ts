import { randomUUID } from 'node:crypto';
import type { ThrottlerStorage } from '@nestjs/throttler';
import type { SharedCounts } from '../cache/shared-counts.js';
import { OwnRateCounts, rateRecord, type RateRecord } from './own-rate-counts.js';

/** The same as `OwnRateCounts`, by the server's clock: a set of calls, each at its time. */
const COUNT = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local ttl, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
  local calls = redis.call('ZCARD', KEYS[1])
  local granted = 0
  if calls < limit then
    redis.call('ZADD', KEYS[1], now, ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ttl)
    granted, calls = 1, calls + 1
  end
  local index = math.max(0, calls - limit)
  local first = redis.call('ZRANGE', KEYS[1], index, index, 'WITHSCORES')[2] or now
  return { granted, calls, first + ttl - now }`;

/** Calls in a sliding window: over all replicas while Redis counts, and otherwise over this process. */
export class RateCounts implements ThrottlerStorage {
  private readonly own = new OwnRateCounts();

  constructor(private readonly shared: SharedCounts) {}

  async increment(key: string, ttlMs: number, limit: number): Promise<RateRecord> {
    const [granted, calls, resetMs] = (await this.shared.run(COUNT, key, [ttlMs, limit, randomUUID()])) ?? [];
    if (granted === undefined || calls === undefined || resetMs === undefined) {
      return this.own.increment(key, ttlMs, limit);
    }
    // Kept up, so that the minute does not begin anew when Redis goes away.
    if (granted === 1) await this.own.increment(key, ttlMs, limit);
    return rateRecord(granted === 1, calls, resetMs);
  }
}
