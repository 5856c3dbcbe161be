import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { SharedCounts } from '../cache/shared-counts.js';
import { entryLimit } from '../domain/entry-limit.js';
import { TooManyFailedAuthenticationsError } from '../domain/errors.js';
import { networkOf } from '../http/client-address.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import type { RequestContext } from '../http/request-context.js';
import { MinuteLimit } from '../rate-limit/minute-limit.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';

/** Failures per minute of one address. Enough for mistyped keys, far too few for guessing one. */
const FAILURES_MAX = 20;
/** Failures per minute of an IPv6 site, and of the admin token over all addresses. */
const FAILURES_TOGETHER_MAX = 100;
/** The prefix that one household or one rented machine gets. */
const IPV6_PREFIX_BITS = 64;
/** The prefix that one site gets: 65,536 networks of the above. */
const IPV6_SITE_PREFIX_BITS = 48;
/** Bounds the memory; the least recently throttled scope is evicted. */
const THROTTLED_SCOPES_MAX = 20_000;

/** The kind of credential that a request failed to authenticate with. */
export type Credential = 'API key' | 'admin token';

const KEY_PREFIX: Record<Credential, string> = { 'API key': 'ct:failed', 'admin token': 'ct:failed-admin' };

/** Callers that are counted together, and the failures per minute that they may have. */
interface Scope {
  name: string;
  failures: MinuteLimit;
}

/**
 * Counts failed authentications by address. Keys that were valid recently and the valid admin token are never throttled, so
 * that an attacker cannot lock out the callers of the same address.
 */
@Injectable()
export class FailedAuthentications {
  private readonly ofAddress: Record<Credential, MinuteLimit>;
  private readonly together: Record<Credential, MinuteLimit>;
  /** When the throttling of a scope ends, by `performance.now()`. Until then failures are refused without counting them. */
  private readonly throttledUntilMs = new LRUCache<string, number>(entryLimit(THROTTLED_SCOPES_MAX));

  constructor(
    shared: SharedCounts,
    private readonly metrics: RejectionMetrics,
  ) {
    const limits = (max: number): Record<Credential, MinuteLimit> => ({
      'API key': new MinuteLimit(shared, KEY_PREFIX['API key'], max),
      'admin token': new MinuteLimit(shared, KEY_PREFIX['admin token'], max),
    });
    this.ofAddress = limits(FAILURES_MAX);
    this.together = limits(FAILURES_TOGETHER_MAX);
  }

  /** @throws TooManyFailedAuthenticationsError when the address is throttled as far as this process knows */
  refuseThrottled(call: RequestContext, credential: Credential = 'API key'): void {
    for (const { name, failures } of this.scopesOf(call.address, credential)) {
      const remainingMs = (this.throttledUntilMs.get(`${credential} ${name}`) ?? -Infinity) - performance.now();
      if (remainingMs > 0) this.refuse(call, credential, failures.limit, Math.ceil(remainingMs / 1000));
    }
  }

  /**
   * Counts one failure, separately for API keys and the admin token: for the address, for its IPv6 site, and for the admin
   * token over all addresses. The narrowest scope is counted first, so that one address alone cannot exhaust the others.
   *
   * @throws TooManyFailedAuthenticationsError when any of the scopes has reached its limit
   */
  async record(call: RequestContext, credential: Credential = 'API key'): Promise<void> {
    this.refuseThrottled(call, credential);
    for (const { name, failures } of this.scopesOf(call.address, credential)) {
      const { granted, resetSeconds } = await failures.count(name);
      if (granted) continue;
      this.throttledUntilMs.set(`${credential} ${name}`, performance.now() + resetSeconds * 1000);
      this.refuse(call, credential, failures.limit, resetSeconds);
    }
  }

  /** The scopes that a failure counts for, the narrowest first. */
  private scopesOf(address: string | undefined, credential: Credential): Scope[] {
    const [own, together] = [this.ofAddress[credential], this.together[credential]];
    const scopes = [{ name: networkOf(address, IPV6_PREFIX_BITS), failures: own }];
    const site = networkOf(address, IPV6_SITE_PREFIX_BITS);
    if (site.includes('/')) scopes.push({ name: site, failures: together });
    if (credential === 'admin token') scopes.push({ name: 'all', failures: together });
    return scopes;
  }

  private refuse(call: RequestContext, credential: Credential, limit: number, resetSeconds: number): never {
    this.metrics.count('failing_address');
    setRateLimitHeaders(call, limit, { used: limit, resetSeconds });
    throw new TooManyFailedAuthenticationsError(credential, resetSeconds);
  }
}
