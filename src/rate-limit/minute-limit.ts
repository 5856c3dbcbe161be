import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { SharedCounts } from '../cache/shared-counts.js';

const WINDOW_SECONDS = 60;

/** The result of counting a call. */
export interface RateRecord {
  /** False when the limit was exceeded. */
  granted: boolean;
  /** Calls in the window, this one included. */
  used: number;
  /** Seconds until the window ends, which the first call started. */
  resetSeconds: number;
}

/**
 * Counts calls in fixed windows of a minute: over all replicas while Redis is available, otherwise of this process. The
 * memory for a caller is released with its window.
 */
export class MinuteLimit {
  private readonly limiter: RateLimiterMemory | RateLimiterRedis;

  /** @param name the prefix of the keys in Redis */
  constructor(
    shared: SharedCounts,
    name: string,
    readonly limit: number,
  ) {
    const options = { keyPrefix: name, points: limit, duration: WINDOW_SECONDS };
    const memory = new RateLimiterMemory(options);
    this.limiter = shared.configured
      ? new RateLimiterRedis({
          ...options,
          storeClient: scriptClient(shared),
          useRedisPackage: true,
          insuranceLimiter: memory,
        })
      : memory;
  }

  /** Counts a call of a caller. */
  async count(caller: string): Promise<RateRecord> {
    try {
      return toRecord(true, await this.limiter.consume(caller));
    } catch (error) {
      if (error instanceof RateLimiterRes) return toRecord(false, error);
      throw error;
    }
  }
}

function toRecord(granted: boolean, { consumedPoints, msBeforeNext }: RateLimiterRes): RateRecord {
  return { granted, used: consumedPoints, resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)) };
}

/** The part of a Redis client that counting needs, with the timeout of the shared connection. */
function scriptClient(shared: SharedCounts) {
  return {
    eval: async (script: string, { keys: [key = ''], arguments: values }: { keys: string[]; arguments: string[] }) => {
      const reply = await shared.run(script, key, values);
      if (!reply) throw new Error('Redis is unavailable.');
      return reply;
    },
  };
}
