import { Inject, Injectable } from '@nestjs/common';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { RedisConnection } from '../cache/redis-connection.js';
import { Environment } from '../config/environment.js';

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
 * The limit of calls per key, in fixed windows of a minute: over all replicas while Redis is available, otherwise of this
 * process. The memory for a caller is released with its window.
 */
@Injectable()
export class KeyRateLimit {
  readonly limit: number;
  private readonly limiter: RateLimiterMemory | RateLimiterRedis;

  /** @param redis null without REDIS_URL */
  constructor({ RATE_LIMIT_PER_MINUTE }: Environment, @Inject(RedisConnection) redis: RedisConnection | null) {
    this.limit = RATE_LIMIT_PER_MINUTE;
    const options = { keyPrefix: 'ct:rate', points: this.limit, duration: WINDOW_SECONDS };
    const memory = new RateLimiterMemory(options);
    this.limiter = redis
      ? new RateLimiterRedis({
          ...options,
          // Its only command, with the timeout of the connection.
          storeClient: {
            eval: (script: string, keysAndValues: { keys: string[]; arguments: string[] }) =>
              redis.run((client) => client.eval(script, keysAndValues)),
          },
          useRedisPackage: true,
          insuranceLimiter: memory,
        })
      : memory;
  }

  /** Counts a call of a caller, or as many as it is worth. */
  async count(caller: string, calls = 1): Promise<RateRecord> {
    // Beyond the limit the limiter rejects with the count.
    const counted: unknown = await this.limiter.consume(caller, calls).catch((rejected: unknown) => rejected);
    if (!(counted instanceof RateLimiterRes)) throw counted;
    const { consumedPoints: used, msBeforeNext } = counted;
    // In memory the rest of a window is computed by the wall clock, which may be set back; the window ends by a timer.
    const resetSeconds = Math.min(WINDOW_SECONDS, Math.max(1, Math.ceil(msBeforeNext / 1000)));
    return { granted: used <= this.limit, used, resetSeconds };
  }
}
