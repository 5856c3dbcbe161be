import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { normalizeIp } from '@nestjs/throttler';
import { SharedCounts } from '../cache/shared-counts.js';
import { RateLimitedError } from '../domain/errors.js';
import { setRateLimitHeaders } from '../http/limit-headers.js';
import { AccessEvents } from './access-events.js';
import type { Exchange } from './exchange.js';
import { RateCounts } from './rate-counts.js';

/** More than a person who mistypes a key needs, and nothing to somebody who guesses. */
const FAILURES_MAX = 20;
const WINDOW_MS = 60_000;
/** What one household or one rented machine is given. */
const IPV6_PREFIX_BITS = 64;

/** What a request failed to prove itself with. */
export type Credential = 'API key' | 'admin token';

const COUNTED_AS: Record<Credential, string> = { 'API key': 'ct:failed', 'admin token': 'ct:failed-admin' };

/**
 * Counts requests that failed to authenticate, by address. It is asked only when one has failed, so that a valid key is
 * never held back by what others at its address do.
 */
@Injectable()
export class FailedAuthentications {
  private readonly counts: RateCounts;

  constructor(
    shared: SharedCounts,
    private readonly events: AccessEvents,
  ) {
    this.counts = new RateCounts(shared);
  }

  /**
   * Counts one failure, of API keys and of the admin token apart.
   *
   * @throws RateLimitedError when the address has failed too often in the last minute
   */
  async note(exchange: Exchange, credential: Credential = 'API key'): Promise<void> {
    const { isBlocked, timeToBlockExpire } = await this.counts.increment(
      `${COUNTED_AS[credential]}:${networkOf(exchange.address)}`,
      WINDOW_MS,
      FAILURES_MAX,
    );
    if (!isBlocked) return;
    this.events.count('failing_address');
    setRateLimitHeaders(exchange, FAILURES_MAX, timeToBlockExpire);
    throw new RateLimitedError(
      `Too many requests from this address had no valid ${credential}. With one, a request is answered at once.`,
      timeToBlockExpire,
    );
  }
}

/** Where a proxy is trusted it can be any text, as long as a header may be; all of that is one caller. */
function networkOf(address = ''): string {
  return isIP(address) === 0 ? 'unknown' : normalizeIp(address, IPV6_PREFIX_BITS);
}
