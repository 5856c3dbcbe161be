import { CHANNEL_FORMS } from './references/channel-reference.js';
import { VIDEO_FAILURES } from './transcript.js';

/**
 * Of a call that fails again unless it is changed.
 *
 * @param title when it occurs, for the OpenAPI document; an operation can say it more exactly
 */
const final = (status: number, title: string) => ({ status, retryable: false, title });

/** The same of a call that can succeed later. */
const passing = (status: number, title: string) => ({ status, retryable: true, title });

/** What refuses a call, with its message where that is always the same and of no feature. */
const CALL_ERRORS = {
  invalid_request: final(400, 'A parameter or a field is invalid'),
  unauthorized: final(401, 'The API key is missing'),
  invalid_api_key: final(401, 'The API key is invalid'),
  invalid_token: final(401, 'The access token is invalid'),
  plan_limit_exceeded: final(402, 'The request could exceed the monthly quota'),
  feature_not_in_plan: final(403, 'The plan does not include the feature'),
  scope_missing: final(403, 'The API key or the access token lacks the scope'),
  organization_not_linked: final(403, 'No organization is linked to that of the access token'),
  client_blocked: final(403, 'The client of the access token is blocked'),
  admin_role_required: {
    ...final(403, 'The access token does not have `OIDC_ADMIN_CLAIM`'),
    message: 'The access token does not have the claim that /admin requires.',
  },
  channel_not_found: {
    ...final(404, 'The channel does not exist'),
    message: `Channel not found. Use ${CHANNEL_FORMS}.`,
  },
  video_not_found: {
    ...final(404, 'The text is not a reference to a video'),
    message:
      'Video not found. Use a video ID (11 characters) or a video URL on youtube.com (/watch?v=, /shorts/, /live/, ' +
      '/embed/) or youtu.be.',
  },
  playlist_not_found: final(404, 'The playlist does not exist'),
  job_not_found: final(404, 'The organization has no job with this ID'),
  subscription_not_found: final(404, 'The organization has no subscription with this ID'),
  not_found: final(404, 'Nothing has this path or ID'),
  method_not_allowed: final(405, 'The endpoint does not support the method'),
  conflict: final(409, 'The state of the object does not allow the change'),
  job_finished: final(409, 'The job has already been completed or has failed'),
  idempotency_conflict: {
    ...final(409, 'The Idempotency-Key was used with another request'),
    message: 'This idempotency key was used with a different request. Use a new key for a new request.',
  },
  results_expired: final(410, 'The results were deleted at `expiresAt`'),
  cursor_unknown: final(410, 'The database does not have the result of the cursor'),
  rate_limited: passing(429, 'The rate limit of the key or organization is exceeded'),
  too_many_jobs: passing(429, 'The organization has too many unfinished jobs'),
  too_many_subscriptions: passing(429, 'The organization has too many subscriptions'),
  internal_error: {
    ...final(500, 'An unexpected error occurred'),
    message: 'Internal error. The log of the service contains the cause under the request id.',
  },
  service_unavailable: passing(503, 'The database is unavailable, or the service is shutting down'),
  // A single video can have these as well, with a message of its own.
  upstream_failure: {
    ...VIDEO_FAILURES.upstream_failure,
    title: 'YouTube could not be read',
  },
  upstream_blocked: {
    ...VIDEO_FAILURES.upstream_blocked,
    title: 'YouTube blocks the service',
    message: 'YouTube currently blocks requests from this service. Retry later.',
  },
  upstream_busy: {
    ...VIDEO_FAILURES.upstream_busy,
    title: 'The queue to YouTube is too long for the deadline',
    message: 'This service limits its requests to YouTube and cannot serve the call before its deadline. Retry later.',
  },
  upstream_timeout: {
    ...VIDEO_FAILURES.upstream_timeout,
    title: 'YouTube did not respond in time',
    message: 'YouTube did not respond before the deadline. Retry the request.',
  },
};

/** Every `error.code`: those of a call, and why a video has no transcript. docs/errors.md has a section for each. */
export const ERRORS = { ...VIDEO_FAILURES, ...CALL_ERRORS };

export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];
