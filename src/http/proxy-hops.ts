import { Logger } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';

/** How often the same is warned of. */
const WARNING_INTERVAL_MS = 3_600_000;

const logger = new Logger('ProxyHops');

/**
 * Middleware: warns when a request came through fewer proxies than `TRUST_PROXY` says, because then what the caller wrote
 * into `X-Forwarded-For` is believed. Each proxy adds one address to it; a request without any is a probe that came past them.
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
          `A request came through ${forwarded} of the ${hops} proxies that TRUST_PROXY counts. Callers can choose the address ` +
          `that they are counted by; set TRUST_PROXY to the number of proxies that every request passes.`,
      });
    }
    next();
  };
}
