import type { Response } from 'express';
import type { QuotaState } from '../domain/errors.js';

const seconds = (description: string) => ({ description, schema: { type: 'integer' as const, minimum: 0 } });
const count = seconds;

/** Absent while the limit is turned off. */
export const RATE_LIMIT_HEADERS = {
  'X-RateLimit-Limit': count('The maximum number of requests per minute with this API key.'),
  'X-RateLimit-Remaining': count('The number of requests that remain in the current minute.'),
  'X-RateLimit-Reset': seconds(
    'Seconds until the oldest request leaves the one-minute window, which allows another request.',
  ),
};

export const QUOTA_HEADERS = {
  'X-Quota-Limit': count('The monthly limit of the organization, in transcripts.'),
  'X-Quota-Remaining': count('Transcripts that remain this month, after the maximum cost of this request has been reserved.'),
  'X-Quota-Reset': seconds('Seconds until the quota resets, at the start of the next calendar month (UTC).'),
};

/** What a page on another origin may read beside the body. */
export const EXPOSED_HEADERS = [
  'X-Request-Id',
  'Retry-After',
  ...Object.keys(RATE_LIMIT_HEADERS),
  ...Object.keys(QUOTA_HEADERS),
];

interface HeaderTaker {
  setHeader(name: string, value: string | number): unknown;
}

/** For a call that is one too many. */
export function setRateLimitHeaders(response: HeaderTaker, limit: number, resetSeconds: number): void {
  response.setHeader('X-RateLimit-Limit', limit);
  response.setHeader('X-RateLimit-Remaining', 0);
  response.setHeader('X-RateLimit-Reset', resetSeconds);
}

export function setQuotaHeaders(response: Response, { limit, used, reserved, resetAt, asOf }: QuotaState): void {
  response.setHeader('X-Quota-Limit', limit);
  response.setHeader('X-Quota-Remaining', Math.max(0, limit - used - reserved));
  // Never by this machine's clock, which may be hours off the database's.
  response.setHeader('X-Quota-Reset', Math.max(0, Math.ceil((resetAt.getTime() - asOf.getTime()) / 1000)));
}
