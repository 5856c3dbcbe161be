import { randomBytes } from 'node:crypto';
import type { ThrottlerStorage } from '@nestjs/throttler';
import type { SharedCounts } from '../cache/shared-counts.js';
import { LocalRateCounter, rateRecord, type CountedCall, type RateRecord } from './local-rate-counter.js';

/**
 * Counts a call in a set of calls, each at its time by the server's clock. ARGV: window, limit, the call, the last call
 * that the asking process made in the window, and, when it knows that they are missing, all of those, each with its age.
 */
const COUNT = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local ttl, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
  for index = 5, #ARGV, 2 do redis.call('ZADD', KEYS[1], 'NX', now - ARGV[index + 1], ARGV[index]) end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
  if ARGV[4] ~= '' and #ARGV == 4 and not redis.call('ZSCORE', KEYS[1], ARGV[4]) then return { -1, 0, 0 } end
  local calls = redis.call('ZCARD', KEYS[1])
  local granted = 0
  if calls < limit then
    redis.call('ZADD', KEYS[1], now, ARGV[3])
    granted, calls = 1, calls + 1
  end
  if calls > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
  local index = math.max(0, calls - limit)
  local first = redis.call('ZRANGE', KEYS[1], index, index, 'WITHSCORES')[2] or now
  return { granted, calls, first + ttl - now }`;

/** The script's reply when the set lacks a call that the asking process made. */
const UNAVAILABLE = -1;

/**
 * Calls in a sliding window: over all replicas while Redis counts, and otherwise over this process. What this process
 * has granted always counts. When Redis has lost it (evicted under memory pressure, restarted, failed over) it is added
 * again by each process that made calls, so that the window does not begin anew.
 */
export class RateCounter implements ThrottlerStorage {
  private readonly own = new LocalRateCounter();
  private readonly processId = randomBytes(6).toString('base64url');

  constructor(private readonly shared: SharedCounts) {}

  async increment(key: string, ttlMs: number, limit: number): Promise<RateRecord> {
    const refused = this.own.refusal(key, ttlMs, limit);
    if (refused) return refused;
    // Its time is taken before Redis takes its own, so that a call never leaves this window later than the shared one.
    const call = this.own.next();
    const own = this.own.recent(key, ttlMs);
    const last = own.at(-1);
    const args = [ttlMs, limit, this.nameOf(call), last ? this.nameOf(last) : ''];
    let counted = await this.shared.run(COUNT, key, args);
    if (counted?.[0] === UNAVAILABLE) {
      const made = own.flatMap((one) => [this.nameOf(one), Math.round(performance.now() - one.atMs)]);
      counted = await this.shared.run(COUNT, key, [...args, ...made]);
    }
    const [granted, calls, resetMs] = counted ?? [];
    if (granted === undefined || calls === undefined || resetMs === undefined) {
      return this.own.increment(key, ttlMs, limit);
    }
    if (granted === 1) this.own.add(key, ttlMs, call);
    return rateRecord(granted === 1, calls, resetMs);
  }

  private nameOf({ id }: CountedCall): string {
    return `${this.processId}:${id}`;
  }
}
