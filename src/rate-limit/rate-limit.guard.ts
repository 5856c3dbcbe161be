import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { RequestRateExceededError } from '../domain/errors.js';
import { ApiErrors } from '../http/error-docs.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { requestContextOf } from '../http/request-context.js';
import { CallRate, type RateRecord } from './call-rate.js';
import { RejectionMetrics } from './rejection-metrics.js';

/** Names the count of a route that has one of its own, with the same limits. The other routes share one count. */
export const OwnRateLimit = Reflector.createDecorator<string>();

/** Refuses a call beyond the limit per minute of its key or its organization (429). */
@ApiErrors('rate_limited')
@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(
    private readonly rate: CallRate,
    private readonly metrics: RejectionMetrics,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const record = await this.count(execution);
    if (!record || record.used <= record.limit) return true;
    this.metrics.count(`${record.scope}_per_minute`);
    throw new RequestRateExceededError(record.limit, record.resetSeconds, record.scope);
  }

  /** Counts a call and sets its `X-RateLimit-*` headers. @returns undefined when the limits are turned off */
  async count(execution: ExecutionContext): Promise<RateRecord | undefined> {
    const context = requestContextOf(execution);
    const record = await this.rate.count(context.caller, this.reflector.get(OwnRateLimit, execution.getHandler()));
    if (record) setRateLimitHeaders(context, record.limit, record);
    return record;
  }
}
