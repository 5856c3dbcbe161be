import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { RequestRateExceededError } from '../domain/errors.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { requestContextOf } from '../http/request-context.js';
import type { RateRecord } from './local-rate-counter.js';
import { RateCounter } from './rate-counter.js';
import { RejectionMetrics } from './rejection-metrics.js';

const WINDOW_MS = 60_000;

/** Refuses a call by a key that has exceeded its limit per minute (429). All routes share one count. */
@Injectable()
export class RateLimitGuard implements CanActivate {
  private readonly limit: number;

  /** @param counter injected, because Nest creates an instance of this guard for each module that uses it */
  constructor(
    { RATE_LIMIT_PER_MINUTE }: Environment,
    private readonly counter: RateCounter,
    private readonly metrics: RejectionMetrics,
  ) {
    this.limit = RATE_LIMIT_PER_MINUTE;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const record = await this.count(context);
    if (!record || record.granted) return true;
    this.metrics.count('key_per_minute');
    throw new RequestRateExceededError(this.limit, record.resetSeconds);
  }

  /** Counts a call and sets its `X-RateLimit-*` headers. @returns undefined when the limit is turned off */
  async count(context: ExecutionContext): Promise<RateRecord | undefined> {
    if (this.limit === 0) return undefined;
    const call = requestContextOf(context);
    const record = await this.counter.increment(`ct:rate:${call.caller.keyId}`, WINDOW_MS, this.limit);
    setRateLimitHeaders(call, this.limit, record);
    return record;
  }
}
