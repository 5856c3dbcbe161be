import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { RequestRateExceededError } from '../domain/errors.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { setRateLimitHeaders } from '../http/routes/limit-headers.js';
import { requestContextOf, type RequestContext } from '../http/server/request-context.js';
import { CallRate } from './call-rate.js';
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
    const refusal = await this.refusalOf(
      requestContextOf(execution),
      this.reflector.get(OwnRateLimit, execution.getHandler()),
    );
    if (refusal) throw refusal;
    return true;
  }

  /**
   * Counts a call, sets its `X-RateLimit-*` headers, and returns the error that refuses it.
   *
   * @param route of a count of its own
   */
  async refusalOf(context: RequestContext, route?: string): Promise<RequestRateExceededError | undefined> {
    const record = await this.rate.count(context.caller, { route });
    if (!record) return undefined;
    setRateLimitHeaders(context, record.limit, record);
    if (record.used <= record.limit) return undefined;
    this.metrics.count(`${record.scope}_per_minute`);
    return new RequestRateExceededError(record.limit, record.resetSeconds, record.scope);
  }

  /** Counts more for a call that was counted as one. The headers of its response may be sent already. */
  async addCalls({ caller }: RequestContext, calls: number): Promise<void> {
    if (calls > 0) await this.rate.count(caller, { calls });
  }
}
