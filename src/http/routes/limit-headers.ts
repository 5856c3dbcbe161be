import type { Response } from 'express';
import { decidingQuota, remainingQuota, type QuotaState } from '../../domain/errors.js';
import type { RequestContext } from '../server/request-context.js';

const integer = (description: string) => ({ description, schema: { type: 'integer' as const, minimum: 0 } });

const text = (description: string, example: string) => ({ description, schema: { type: 'string' as const }, example });

/** The limits as draft-ietf-httpapi-ratelimit-headers-10 has them: lists of Structured Fields (RFC 9651). */
const POLICY = 'RateLimit-Policy';
const STATE = 'RateLimit';

/** Absent when the limit is turned off. */
export const RATE_LIMIT_HEADERS = {
  [POLICY]: text(
    'The limits: calls in a `minute`, and transcripts in a `month`, each with its quota `q` and its window `w` in seconds. Each is ' +
      'that of the key or that of the organization, of which less remains.',
    '"minute";q=60;w=60, "month";q=5000;w=2592000',
  ),
  [STATE]: text(
    'What remains of each limit (`r`), and the seconds until it is whole again (`t`).',
    '"minute";r=59;t=60, "month";r=4975;t=604800',
  ),
  'X-RateLimit-Limit': integer(
    'Requests per minute that the key may make, or all keys of the organization when fewer remain for them.',
  ),
  'X-RateLimit-Remaining': integer('Requests that remain in the current window of one minute.'),
  'X-RateLimit-Reset': integer('Seconds until the window ends and requests are allowed again.'),
};

export const QUOTA_HEADERS = {
  'X-Quota-Limit': integer('Monthly transcript limit of the organization, or of the API key when less remains for it.'),
  'X-Quota-Remaining': integer('Transcripts that remain after the maximum cost of this request is reserved.'),
  'X-Quota-Reset': integer('Seconds until the next calendar month (UTC) starts.'),
};

/** Response headers that pages of other origins may read. */
export const EXPOSED_HEADERS = [
  'X-Request-Id',
  'Location',
  'WWW-Authenticate',
  'Retry-After',
  'Warning',
  ...Object.keys(RATE_LIMIT_HEADERS),
  ...Object.keys(QUOTA_HEADERS),
];

const MINUTE_SECONDS = 60;

/** @param count the calls in the window, and the seconds until it ends */
export function setRateLimitHeaders(
  context: RequestContext,
  limit: number,
  { used, resetSeconds }: { used: number; resetSeconds: number },
): void {
  const remaining = Math.max(0, limit - used);
  context.setHeader('X-RateLimit-Limit', limit);
  context.setHeader('X-RateLimit-Remaining', remaining);
  context.setHeader('X-RateLimit-Reset', resetSeconds);
  context.setHeader(POLICY, `"minute";q=${limit};w=${MINUTE_SECONDS}`);
  context.setHeader(STATE, `"minute";r=${remaining};t=${resetSeconds}`);
}

/** Sets the headers about the quota that decides: that of the organization, or of the key when less remains for it. */
export function setQuotaHeaders(response: Response, quota: QuotaState): void {
  const { resetAt, asOf } = quota;
  const { limit, ...counts } = decidingQuota(quota);
  const remaining = remainingQuota({ limit, ...counts });
  // By the database's clock: this machine's may be hours off.
  const resetSeconds = Math.max(0, Math.ceil((resetAt.getTime() - asOf.getTime()) / 1000));
  response.setHeader('X-Quota-Limit', limit);
  response.setHeader('X-Quota-Remaining', remaining);
  response.setHeader('X-Quota-Reset', resetSeconds);
  const monthSeconds = (resetAt.getTime() - Date.UTC(resetAt.getUTCFullYear(), resetAt.getUTCMonth() - 1)) / 1000;
  append(response, POLICY, `"month";q=${limit};w=${monthSeconds}`);
  append(response, STATE, `"month";r=${remaining};t=${resetSeconds}`);
}

/** Adds a member to a list; the limit by minute is absent when it is turned off. */
function append(response: Response, name: string, member: string): void {
  const before = response.getHeader(name);
  response.setHeader(name, typeof before === 'string' ? `${before}, ${member}` : member);
}
