import type { Response } from 'express';
import type { QuotaState } from '../domain/errors.js';
import type { RequestContext } from './request-context.js';

const seconds = (description: string) => ({ description, schema: { type: 'integer' as const, minimum: 0 } });
const count = seconds;

/** Absent while the limit is turned off. */
export const RATE_LIMIT_HEADERS = {
  'X-RateLimit-Limit': count('Calls that the key may make in a minute.'),
  'X-RateLimit-Remaining': count('How many of them are left.'),
  'X-RateLimit-Reset': seconds(
    'Seconds until the oldest call of the last minute counts no more, and one more is left.',
  ),
};

export const QUOTA_HEADERS = {
  'X-Quota-Limit': count('Transcripts a month that the organization has.'),
  'X-Quota-Remaining': count('How many are left when this call has reserved what it could cost.'),
  'X-Quota-Reset': seconds('Seconds until the next calendar month (UTC) begins.'),
};

/** What a page on another origin may read beside the body. */
export const EXPOSED_HEADERS = [
  'X-Request-Id',
  'Retry-After',
  ...Object.keys(RATE_LIMIT_HEADERS),
  ...Object.keys(QUOTA_HEADERS),
];

/** @param count the calls in the window, and the seconds until there is room for one more than now */
export function setRateLimitHeaders(
  call: RequestContext,
  limit: number,
  { used, resetSeconds }: { used: number; resetSeconds: number },
): void {
  call.setHeader('X-RateLimit-Limit', limit);
  call.setHeader('X-RateLimit-Remaining', Math.max(0, limit - used));
  call.setHeader('X-RateLimit-Reset', resetSeconds);
}

export function setQuotaHeaders(response: Response, { limit, used, reserved, resetAt, asOf }: QuotaState): void {
  response.setHeader('X-Quota-Limit', limit);
  response.setHeader('X-Quota-Remaining', Math.max(0, limit - used - reserved));
  // Never by this machine's clock, which may be hours off the database's.
  response.setHeader('X-Quota-Reset', Math.max(0, Math.ceil((resetAt.getTime() - asOf.getTime()) / 1000)));
}
