import { isIP } from 'node:net';
import { Logger } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import ipaddr from 'ipaddr.js';

const WARNING_INTERVAL_MS = 3_600_000;

const logger = new Logger('ProxyHops');

/** The value of Express's `trust proxy` setting for `TRUST_PROXY`. */
export function trustProxySetting(value: string): false | number | string {
  if (value === 'off') return false;
  return /^[0-9]+$/.test(value) ? Number(value) : value;
}

/**
 * Middleware: warns when a request passed fewer proxies than `TRUST_PROXY` counts, because then an address that the
 * caller wrote into `X-Forwarded-For` is trusted. Each proxy appends one address; a request without the header is a probe
 * that bypassed the proxies.
 *
 * @param hops `TRUST_PROXY`, when it is a number
 */
export function warnOfMissingProxies(hops: number) {
  let warnedAtMs = -Infinity;
  return (request: Request, _response: Response, next: NextFunction): void => {
    const forwarded = request.headersDistinct['x-forwarded-for']?.join(',').split(',').length ?? 0;
    const nowMs = performance.now();
    if (forwarded > 0 && forwarded < hops && nowMs - warnedAtMs >= WARNING_INTERVAL_MS) {
      warnedAtMs = nowMs;
      logger.warn({
        event: 'too_many_hops',
        message:
          `A request passed ${forwarded} of the ${hops} proxies that TRUST_PROXY counts, so callers can forge the address ` +
          `that their failed authentications are counted by. Set TRUST_PROXY to the number of proxies that every request passes.`,
      });
    }
    next();
  };
}

/**
 * The network that an address belongs to, for counting by address: an IPv4 address by itself (also in its IPv6-mapped
 * form), an IPv6 address by its prefix, e.g. `2001:db8:1:2::/64`. `unknown` for anything else: behind a trusted proxy the
 * address can be any text.
 */
export function networkOf(address: string | undefined, ipv6PrefixBits: number): string {
  // An IPv6 address may end with the zone of the interface, e.g. `fe80::1%eth0`.
  const [bare = ''] = (address ?? '').split('%', 1);
  if (isIP(bare) === 0) return 'unknown';
  const parsed = ipaddr.process(bare);
  if (parsed.kind() === 'ipv4' || parsed.range() === 'loopback') return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${bare}/${ipv6PrefixBits}`).toString()}/${ipv6PrefixBits}`;
}
