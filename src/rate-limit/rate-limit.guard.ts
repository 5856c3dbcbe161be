import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { Environment } from '../config/environment.js';
import { RequestRateExceededError } from '../domain/errors.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { requestContextOf } from '../http/request-context.js';
import type { RateRecord } from './local-rate-counter.js';
import { RateCounter } from './rate-counter.js';
import { RejectionMetrics } from './rejection-metrics.js';

const WINDOW_MS = 60_000;

/** Names the count of a route that has one of its own, with the same limit. The other routes share one count. */
export const OwnRateLimit = Reflector.createDecorator<string>();

/** Refuses a call by a key that has exceeded its limit per minute (429). */
@Injectable()
export class RateLimitGuard implements CanActivate {
  private readonly limit: number;

  /** @param counter injected, because Nest creates an instance of this guard for each module that uses it */
  constructor(
    { RATE_LIMIT_PER_MINUTE }: Environment,
    private readonly counter: RateCounter,
    private readonly metrics: RejectionMetrics,
    private readonly reflector: Reflector,
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
    const own = this.reflector.get(OwnRateLimit, context.getHandler());
    const name = own === undefined ? call.caller.keyId : `${own}:${call.caller.keyId}`;
    const record = await this.counter.increment(`ct:rate:${name}`, WINDOW_MS, this.limit);
    setRateLimitHeaders(call, this.limit, record);
    return record;
  }
}
