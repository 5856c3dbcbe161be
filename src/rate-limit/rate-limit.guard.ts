import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { RequestRateExceededError } from '../domain/errors.js';
import { ApiErrors } from '../http/error-docs.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { requestContextOf } from '../http/request-context.js';
import { KeyRateLimit, type RateRecord } from './key-rate-limit.js';
import { RejectionMetrics } from './rejection-metrics.js';

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

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const record = await this.count(execution);
    if (!record || record.granted) return true;
    this.metrics.count('key_per_minute');
    throw new RequestRateExceededError(this.rate.limit, record.resetSeconds);
  }

  /** Counts a call and sets its `X-RateLimit-*` headers. @returns undefined when the limit is turned off */
  async count(execution: ExecutionContext): Promise<RateRecord | undefined> {
    const { limit } = this.rate;
    if (limit === 0) return undefined;
    const context = requestContextOf(execution);
    const own = this.reflector.get(OwnRateLimit, execution.getHandler());
    const { keyId } = context.caller;
    const record = await this.rate.count(own === undefined ? keyId : `${own}:${keyId}`);
    setRateLimitHeaders(context, limit, record);
    return record;
  }
}
