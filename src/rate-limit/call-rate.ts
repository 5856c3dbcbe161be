import { Inject, Injectable } from '@nestjs/common';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { RedisConnection } from '../cache/redis-connection.js';
import { Environment } from '../config/environment.js';
import type { Caller } from '../domain/caller.js';
import { FeedRateExceededError, RequestRateExceededError, type LimitScope } from '../domain/errors.js';
import { setRateLimitHeaders } from '../http/routes/limit-headers.js';
import type { RequestContext } from '../http/server/request-context.js';
import { RejectionMetrics } from './rejection-metrics.js';

const WINDOW_SECONDS = 60;
/** Feed readers come every few minutes at the most. */
const FEED_READS_PER_HOUR = 60;
const HOUR_SECONDS = 3_600;
/** So many keys of an organization can call at the full rate of a key. */
export const KEYS_AT_FULL_RATE = 10;

/** The limit that decides about a call, of the key and the organization: the one of which less remains. */
export interface RateRecord {
  scope: LimitScope;
  limit: number;
  /** Calls in the window, this one included; more than the limit for a call that is refused. */
  used: number;
  /** Seconds until the window ends, which the first call started. */
  resetSeconds: number;
}

type Limiter = RateLimiterMemory | RateLimiterRedis;

/**
 * The limits of calls per key and per organization, in fixed windows of a minute: over all replicas while Redis is available,
 * otherwise of this process. The memory for a caller is released with its window.
 */
@Injectable()
export class CallRate {
  private readonly limiters: Readonly<Record<LimitScope, Limiter>>;
  private readonly feedReads: Limiter;

  /** @param redis null without REDIS_URL */
  constructor(
    { RATE_LIMIT_PER_MINUTE: limit }: Environment,
    @Inject(RedisConnection) redis: RedisConnection | null,
    private readonly metrics: RejectionMetrics,
  ) {
    this.limiters = { key: limiterOf(limit, redis), organization: limiterOf(limit * KEYS_AT_FULL_RATE, redis) };
    this.feedReads = limiterOf(FEED_READS_PER_HOUR, redis, HOUR_SECONDS);
  }

  /**
   * Counts a call, sets its `X-RateLimit-*` headers, and returns the error that refuses it.
   *
   * @param route of a count of its own
   */
  async refusal(context: RequestContext, route?: string): Promise<RequestRateExceededError | undefined> {
    const record = await this.count(context.caller, { route });
    if (record) setRateLimitHeaders(context, record.limit, record);
    return record && this.refusalBy(record);
  }

  /**
   * Counts a message that is no call and costs little: ten times as many as calls of a key, over all keys of the organization.
   *
   * @throws RequestRateExceededError
   */
  async countMessage(context: RequestContext): Promise<void> {
    if (this.limiters.organization.points === 0) return;
    const record = await this.consume('organization', `messages:${context.caller.organization.id}`, 1);
    const refusal = this.refusalBy(record);
    if (!refusal) return;
    setRateLimitHeaders(context, record.limit, record);
    throw refusal;
  }

  /** Counts a read of a feed by its address. @throws FeedRateExceededError */
  async countFeedRead(name: string): Promise<void> {
    const { used, resetSeconds } = await consume(this.feedReads, `feed:${name}`, 1);
    if (used <= FEED_READS_PER_HOUR) return;
    this.metrics.count('feed_per_hour');
    throw new FeedRateExceededError(resetSeconds);
  }

  private refusalBy({ scope, limit, used, resetSeconds }: RateRecord): RequestRateExceededError | undefined {
    if (used <= limit) return undefined;
    this.metrics.count(`${scope}_per_minute`);
    return new RequestRateExceededError(limit, resetSeconds, scope);
  }

  /**
   * Counts a call, or as many as it is worth. What its key may not make does not count for the organization, whose other keys
   * would be refused for it.
   *
   * @param route of a count of its own
   * @returns undefined when the limits are turned off
   */
  async count(
    { keyId, organization }: Caller,
    { route, calls = 1 }: { route?: string | undefined; calls?: number } = {},
  ): Promise<RateRecord | undefined> {
    if (this.limiters.key.points === 0) return undefined;
    const nameOf = (id: string) => (route === undefined ? id : `${route}:${id}`);
    const ofKey = await this.consume('key', nameOf(keyId), calls);
    if (ofKey.used > ofKey.limit) return ofKey;
    const ofAll = await this.consume('organization', nameOf(organization.id), calls);
    return ofAll.limit - ofAll.used < ofKey.limit - ofKey.used ? ofAll : ofKey;
  }

  private async consume(scope: LimitScope, name: string, calls: number): Promise<RateRecord> {
    const limiter = this.limiters[scope];
    return { scope, limit: limiter.points, ...(await consume(limiter, name, calls)) };
  }
}

async function consume(limiter: Limiter, name: string, calls: number) {
  // Beyond the limit the limiter rejects with the count.
  const counted: unknown = await limiter.consume(name, calls).catch((rejected: unknown) => rejected);
  if (!(counted instanceof RateLimiterRes)) throw counted;
  const { consumedPoints: used, msBeforeNext } = counted;
  // In memory the rest of a window is computed by the wall clock, which may be set back; the window ends by a timer.
  const resetSeconds = Math.min(limiter.duration, Math.max(1, Math.ceil(msBeforeNext / 1000)));
  return { used, resetSeconds };
}

function limiterOf(points: number, redis: RedisConnection | null, duration = WINDOW_SECONDS): Limiter {
  const options = { keyPrefix: 'ct:rate', points, duration };
  const memory = new RateLimiterMemory(options);
  if (!redis) return memory;
  return new RateLimiterRedis({
    ...options,
    // Its only command, with the timeout of the connection.
    storeClient: {
      eval: (script: string, keysAndValues: { keys: string[]; arguments: string[] }) =>
        redis.run((client) => client.eval(script, keysAndValues)),
    },
    useRedisPackage: true,
    insuranceLimiter: memory,
  });
}
