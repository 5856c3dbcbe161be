import { Injectable } from '@nestjs/common';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { TooManyFailedAuthenticationsError } from '../domain/errors.js';
import { networkOf, type RequestContext } from '../http/server/request-context.js';
import { setRateLimitHeaders } from '../http/routes/limit-headers.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';

/** Failures in a window. Enough for mistyped keys, far too few for guessing one. */
const FAILURES_MAX = 20;
const WINDOW_SECONDS = 60;

/**
 * Failures per minute with the admin token over all addresses, because a caller can make up addresses where a proxy is trusted
 * too far. Nobody who has the token is affected.
 */
const ADMIN_FAILURES_MAX = 100;

/** The kind of credential that a request failed to authenticate with. */
export type Credential = 'API key' | 'admin token';

/**
 * Counts failed authentications by address (IPv6: by its /64 network) in this process, separately for API keys and the admin
 * token. Keys that were valid recently and the valid admin token are never throttled, so that an attacker cannot lock out the
 * callers of the same address.
 */
@Injectable()
export class FailedAuthentications {
  private readonly failures = new RateLimiterMemory({ points: FAILURES_MAX, duration: WINDOW_SECONDS });
  private readonly adminFailures = new RateLimiterMemory({ points: ADMIN_FAILURES_MAX, duration: WINDOW_SECONDS });

  constructor(private readonly metrics: RejectionMetrics) {}

  /** @throws TooManyFailedAuthenticationsError when the address has no failure left this minute */
  async refuseThrottled(context: RequestContext): Promise<void> {
    if (context.address === undefined) return;
    const counted = await this.failures.get(countOf(context, 'API key'));
    if (counted && counted.msBeforeNext > 0 && counted.consumedPoints >= FAILURES_MAX)
      this.refuse(context, 'API key', counted);
  }

  /** Counts one failure. @throws TooManyFailedAuthenticationsError when the address, or all of them, had none left */
  async record(context: RequestContext, credential: Credential = 'API key'): Promise<void> {
    // Over NATS nobody has an address: counted together, one caller would lock out all others.
    if (context.address === undefined) return;
    const counts = [{ limiter: this.failures, name: countOf(context, credential) }];
    if (credential === 'admin token') counts.push({ limiter: this.adminFailures, name: 'all addresses' });
    for (const { limiter, name } of counts) {
      // Beyond the limit the limiter rejects with the count.
      const counted: unknown = await limiter.consume(name).catch((full: unknown) => full);
      if (!(counted instanceof RateLimiterRes)) throw counted;
      if (counted.consumedPoints > limiter.points) this.refuse(context, credential, counted, limiter.points);
    }
  }

  private refuse(
    context: RequestContext,
    credential: Credential,
    { msBeforeNext }: RateLimiterRes,
    limit = FAILURES_MAX,
  ): never {
    // Computed by the wall clock, which may be set back; the window ends by a timer.
    const resetSeconds = Math.min(WINDOW_SECONDS, Math.max(1, Math.ceil(msBeforeNext / 1000)));
    this.metrics.count('failing_address');
    setRateLimitHeaders(context, limit, { used: limit, resetSeconds });
    throw new TooManyFailedAuthenticationsError(credential, resetSeconds);
  }
}

function countOf({ address }: RequestContext, credential: Credential): string {
  return `${credential} ${networkOf(address)}`;
}
