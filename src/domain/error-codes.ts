import { VIDEO_FAILURES } from './transcript.js';

/** The HTTP status of each `error.code` of a refused call. */
export const ERROR_STATUSES = {
  invalid_request: 400,
  unauthorized: 401,
  invalid_api_key: 401,
  invalid_token: 401,
  plan_limit_exceeded: 402,
  feature_not_in_plan: 403,
  scope_missing: 403,
  organization_not_linked: 403,
  client_blocked: 403,
  admin_role_required: 403,
  channel_not_found: 404,
  video_not_found: 404,
  playlist_not_found: 404,
  job_not_found: 404,
  subscription_not_found: 404,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  job_finished: 409,
  idempotency_conflict: 409,
  results_expired: 410,
  cursor_unknown: 410,
  rate_limited: 429,
  too_many_jobs: 429,
  too_many_subscriptions: 429,
  internal_error: 500,
  upstream_failure: 502,
  upstream_blocked: 502,
  service_unavailable: 503,
  upstream_timeout: 504,
  // Of a call about one video.
  transcript_unavailable: 404,
  language_unavailable: 404,
  video_unavailable: 404,
  video_private: 404,
  video_members_only: 404,
  video_age_restricted: 404,
  video_not_live_yet: 409,
  video_live: 409,
  upstream_busy: 503,
} satisfies Record<string, number>;

export type ErrorCode = keyof typeof ERROR_STATUSES;

/** A limit, the platform or the state of the service refused the call; later it can succeed. */
const RETRYABLE_STATUSES = [429, 502, 503, 504];

/** Whether the same call can succeed later. */
export function isRetryable(code: ErrorCode): boolean {
  const failures: Partial<Record<ErrorCode, { retryable: boolean }>> = VIDEO_FAILURES;
  return failures[code]?.retryable ?? RETRYABLE_STATUSES.includes(ERROR_STATUSES[code]);
}
