import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { SharedCounts } from '../cache/shared-counts.js';
import { LocalRateCounter, rateRecord, type CountedCall, type RateRecord } from './local-rate-counter.js';

/**
 * Counts a call in a sorted set of calls, scored by the server's clock. ARGV: window, limit, the call's id, the id of the
 * last call that this process made in the window, and, to restore a set that was evicted, the ids and ages of all of them.
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

/** The script's reply when the set lacks the last call that this process made. */
const EVICTED = -1;

/**
 * Calls in a sliding window: over all replicas while Redis is available, otherwise of this process. Each process also
 * counts its own calls and restores them in Redis after an eviction, a restart or a failover, so that the window does not
 * start again at zero.
 */
@Injectable()
export class RateCounter {
  private readonly own = new LocalRateCounter();
  private readonly processId = randomBytes(6).toString('base64url');

  constructor(private readonly shared: SharedCounts) {}

  /** Counts a call unless there are already `limit` calls within `ttlMs`. */
  async increment(key: string, ttlMs: number, limit: number): Promise<RateRecord> {
    const refused = this.own.refusal(key, ttlMs, limit);
    if (refused) return refused;
    // Created before Redis takes its own time, so that the call never expires here later than in Redis.
    const call = this.own.next();
    const own = this.own.recent(key, ttlMs);
    const last = own.at(-1);
    const args = [ttlMs, limit, this.nameOf(call), last ? this.nameOf(last) : ''];
    let counted = await this.shared.run(COUNT, key, args);
    if (counted?.[0] === EVICTED) {
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
