import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { RequestRateExceededError } from '../domain/errors.js';
import { ApiErrors } from '../http/error-docs.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { requestContextOf, type RequestContext } from '../http/request-context.js';
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
    const refusal = await this.refusalOf(
      requestContextOf(execution),
      this.reflector.get(OwnRateLimit, execution.getHandler()),
    );
    if (refusal) throw refusal;
    return true;
  }

  /** Counts a call, and returns the error that refuses it. @param own the name of its own count */
  async refusalOf(context: RequestContext, own?: string): Promise<RequestRateExceededError | undefined> {
    const record = await this.count(context, own);
    if (!record || record.granted) return undefined;
    this.metrics.count('key_per_minute');
    return new RequestRateExceededError(this.rate.limit, record.resetSeconds);
  }

  /** Counts more for a call that was counted as one. The headers of its response may be sent already. */
  async addCalls({ caller }: RequestContext, calls: number): Promise<void> {
    if (calls > 0 && this.rate.limit > 0) await this.rate.count(caller.keyId, calls);
  }

  /** Counts a call and sets its `X-RateLimit-*` headers. @returns undefined when the limit is turned off */
  private async count(context: RequestContext, own: string | undefined): Promise<RateRecord | undefined> {
    const { limit } = this.rate;
    if (limit === 0) return undefined;
    const { keyId } = context.caller;
    const record = await this.rate.count(own === undefined ? keyId : `${own}:${keyId}`);
    setRateLimitHeaders(context, limit, record);
    return record;
  }
}
