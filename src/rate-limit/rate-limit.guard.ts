import { Inject, Injectable, type ExecutionContext } from '@nestjs/common';
import { ThrottlerGuard, type ThrottlerLimitDetail } from '@nestjs/throttler';
import { RateLimitedError, RequestRateExceededError } from '../domain/errors.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { RejectionCounts } from './rejection-counts.js';
import { callerOf } from '../auth/caller.js';
import { inboundCallOf, type InboundCall } from '../auth/inbound-call.js';

/** How often: refuses a call by a key that has called too often in the last minute (429). One count over all routes. */
@Injectable()
export class RateLimitGuard extends ThrottlerGuard {
  // The base class has the constructor.
  @Inject()
  private readonly events: RejectionCounts;

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    try {
      return await super.canActivate(context);
    } catch (error) {
      if (error instanceof RateLimitedError) this.events.count('key_per_minute');
      throw error;
    }
  }

  /** Counts a call that is refused for another reason, which is the one that it is told. */
  async count(context: ExecutionContext): Promise<void> {
    await super.canActivate(context).catch((error: unknown) => {
      if (!(error instanceof RateLimitedError)) throw error;
    });
  }

  /** The base knows requests and responses; an exchange is both. */
  protected override getRequestResponse(context: ExecutionContext): { req: InboundCall; res: InboundCall } {
    const call = inboundCallOf(context);
    return { req: call, res: call };
  }

  protected override getTracker({ subject }: InboundCall): Promise<string> {
    return Promise.resolve(callerOf(subject).keyId);
  }

  protected override generateKey(_context: ExecutionContext, keyId: string): string {
    return `ct:rate:${keyId}`;
  }

  /** The error brings its own; the base would send it with a call that is refused for another reason too. */
  protected override setResponseHeader(call: InboundCall, name: string, value: string | number): void {
    if (name !== 'Retry-After') call.setHeader(name, value);
  }

  protected override throwThrottlingException(context: ExecutionContext, detail: ThrottlerLimitDetail): Promise<void> {
    const { limit, timeToBlockExpire: waitSeconds } = detail;
    setRateLimitHeaders(inboundCallOf(context), limit, waitSeconds);
    throw new RequestRateExceededError(limit, waitSeconds);
  }
}
