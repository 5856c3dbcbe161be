import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { RedisConnection } from '../cache/redis-connection.js';
import { Environment } from '../config/environment.js';
import { RequestRateExceededError } from '../domain/errors.js';
import { ApiErrors } from '../http/error-docs.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { requestContextOf } from '../http/request-context.js';
import { RejectionMetrics } from './rejection-metrics.js';

const WINDOW_SECONDS = 60;

/** The result of counting a call. */
interface RateRecord {
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

  /** Counts a call of a caller. */
  async count(caller: string): Promise<RateRecord> {
    // Beyond the limit the limiter rejects with the count.
    const counted: unknown = await this.limiter.consume(caller).catch((rejected: unknown) => rejected);
    if (!(counted instanceof RateLimiterRes)) throw counted;
    const { consumedPoints: used, msBeforeNext } = counted;
    // In memory the rest of a window is computed by the wall clock, which may be set back; the window ends by a timer.
    const resetSeconds = Math.min(WINDOW_SECONDS, Math.max(1, Math.ceil(msBeforeNext / 1000)));
    return { granted: used <= this.limit, used, resetSeconds };
  }
}

/** Names the count of a route that has one of its own, with the same limit. The other routes share one count. */
export const OwnRateLimit = Reflector.createDecorator<string>();

/** Refuses a call by a key that has exceeded its limit per minute (429). */
@ApiErrors('rate_limited')
@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(
    private readonly rate: KeyRateLimit,
    private readonly metrics: RejectionMetrics,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const record = await this.count(context);
    if (!record || record.granted) return true;
    this.metrics.count('key_per_minute');
    throw new RequestRateExceededError(this.rate.limit, record.resetSeconds);
  }

  /** Counts a call and sets its `X-RateLimit-*` headers. @returns undefined when the limit is turned off */
  async count(context: ExecutionContext): Promise<RateRecord | undefined> {
    const { limit } = this.rate;
    if (limit === 0) return undefined;
    const call = requestContextOf(context);
    const own = this.reflector.get(OwnRateLimit, context.getHandler());
    const { keyId } = call.caller;
    const record = await this.rate.count(own === undefined ? keyId : `${own}:${keyId}`);
    setRateLimitHeaders(call, limit, record);
    return record;
  }
}
