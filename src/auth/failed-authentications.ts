import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { normalizeIp } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';
import { SharedCounts } from '../cache/shared-counts.js';
import { TooManyFailedAuthenticationsError } from '../domain/errors.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { RejectionCounts } from '../rate-limit/rejection-counts.js';
import type { InboundCall } from './inbound-call.js';
import { RateCounter } from '../rate-limit/rate-counter.js';

/** More than a person who mistypes a key needs, and nothing to somebody who guesses. */
const FAILURES_MAX = 20;
/** For what one customer of a provider is given at most, and for all guesses at the one admin token. */
const FAILURES_TOGETHER_MAX = 100;
const WINDOW_MS = 60_000;
/** What one household or one rented machine is given. */
const IPV6_PREFIX_BITS = 64;
/** What one site is given: 65,536 networks of the above. */
const IPV6_SITE_PREFIX_BITS = 48;
/** Whoever was held back longest ago is forgotten first, so that many addresses cannot fill the memory. */
const HELD_BACK_MAX = 20_000;

/** What a request failed to prove itself with. */
export type Credential = 'API key' | 'admin token';

const COUNTED_AS: Record<Credential, string> = { 'API key': 'ct:failed', 'admin token': 'ct:failed-admin' };

/** Callers that are counted together, and how often they may fail in a minute. */
interface Scope {
  key: string;
  failuresMax: number;
}

/**
 * Counts requests that failed to authenticate, by address. It refuses only those that have failed, so that a valid key is
 * never held back by what others at its address do.
 */
@Injectable()
export class FailedAuthentications {
  private readonly counts: RateCounter;
  /** Until when a scope is refused, by `performance.now()`: the next failure needs no count, which may be in Redis. */
  private readonly heldBackUntilMs = new LRUCache<string, number>({ max: HELD_BACK_MAX });

  constructor(
    shared: SharedCounts,
    private readonly events: RejectionCounts,
  ) {
    this.counts = new RateCounter(shared);
  }

  /** Whether the address has failed too often in the last minute, as far as this process knows; it asks nobody. */
  isHeldBack({ address }: InboundCall, credential: Credential = 'API key'): boolean {
    return scopesOf(address, credential).some(({ key }) => this.heldBackMs(key) > 0);
  }

  /**
   * Counts one failure, of API keys and of the admin token apart: for the address, for the IPv6 site that it is in, and
   * for the admin token over all addresses. The narrowest comes first, so that one address alone cannot use up the rest.
   *
   * @throws TooManyFailedAuthenticationsError when any of them has failed too often in the last minute
   */
  async note(call: InboundCall, credential: Credential = 'API key'): Promise<void> {
    const scopes = scopesOf(call.address, credential);
    for (const scope of scopes) {
      const waitMs = this.heldBackMs(scope.key);
      if (waitMs > 0) this.refuse(call, credential, scope, Math.ceil(waitMs / 1000));
    }
    for (const scope of scopes) {
      const { isBlocked, timeToBlockExpire } = await this.counts.increment(scope.key, WINDOW_MS, scope.failuresMax);
      if (!isBlocked) continue;
      this.heldBackUntilMs.set(scope.key, performance.now() + timeToBlockExpire * 1000);
      this.refuse(call, credential, scope, timeToBlockExpire);
    }
  }

  private heldBackMs(key: string): number {
    return (this.heldBackUntilMs.get(key) ?? -Infinity) - performance.now();
  }

  private refuse(call: InboundCall, credential: Credential, { failuresMax }: Scope, waitSeconds: number): never {
    this.events.count('failing_address');
    setRateLimitHeaders(call, failuresMax, waitSeconds);
    throw new TooManyFailedAuthenticationsError(credential, waitSeconds);
  }
}

/** The scopes that a failure counts for, the narrowest first. */
function scopesOf(address: string | undefined, credential: Credential): Scope[] {
  const prefix = COUNTED_AS[credential];
  const scopes = [{ key: `${prefix}:${networkOf(address, IPV6_PREFIX_BITS)}`, failuresMax: FAILURES_MAX }];
  const site = networkOf(address, IPV6_SITE_PREFIX_BITS);
  if (site.includes('/')) scopes.push({ key: `${prefix}:${site}`, failuresMax: FAILURES_TOGETHER_MAX });
  if (credential === 'admin token') scopes.push({ key: `${prefix}:all`, failuresMax: FAILURES_TOGETHER_MAX });
  return scopes;
}

/** Where a proxy is trusted it can be any text, as long as a header may be; all of that is one caller. */
function networkOf(address: string | undefined, ipv6PrefixBits: number): string {
  return address === undefined || isIP(address) === 0 ? 'unknown' : normalizeIp(address, ipv6PrefixBits);
}
