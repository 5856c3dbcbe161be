import type { Response } from 'express';
import type { QuotaState } from '../domain/errors.js';
import type { RequestContext } from './request-context.js';

const integer = (description: string) => ({ description, schema: { type: 'integer' as const, minimum: 0 } });

/** Absent when the limit is turned off. */
export const RATE_LIMIT_HEADERS = {
  'X-RateLimit-Limit': integer('Requests per minute that the key may make.'),
  'X-RateLimit-Remaining': integer('Requests that remain in the current window of one minute.'),
  'X-RateLimit-Reset': integer('Seconds until the window ends and requests are allowed again.'),
};

export const QUOTA_HEADERS = {
  'X-Quota-Limit': integer('Monthly transcript limit of the organization.'),
  'X-Quota-Remaining': integer('Transcripts that remain after the maximum cost of this request is reserved.'),
  'X-Quota-Reset': integer('Seconds until the next calendar month (UTC) starts.'),
};

/** Response headers that pages of other origins may read. */
export const EXPOSED_HEADERS = [
  'X-Request-Id',
  'Location',
  'Retry-After',
  ...Object.keys(RATE_LIMIT_HEADERS),
  ...Object.keys(QUOTA_HEADERS),
];

/** @param count the calls in the window, and the seconds until it ends */
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
  // By the database's clock: this machine's may be hours off.
  response.setHeader('X-Quota-Reset', Math.max(0, Math.ceil((resetAt.getTime() - asOf.getTime()) / 1000)));
}
