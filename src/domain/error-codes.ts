import { CHANNEL_FORMS } from './references/channel-reference.js';
import { VIDEO_FAILURES } from './transcript.js';

/** What is stated of an error that refuses a call. */
interface CallError {
  /** The HTTP status. */
  status: number;
  /** Whether the same call can succeed later. */
  retryable: boolean;
  /** When it occurs, for the OpenAPI document. An operation can say it more exactly. */
  title: string;
  /** The message, of an error that has one only and no feature. */
  message?: string;
}

const CALL_ERRORS = {
  invalid_request: { status: 400, retryable: false, title: 'A parameter or a field is invalid' },
  unauthorized: { status: 401, retryable: false, title: 'The API key is missing' },
  invalid_api_key: { status: 401, retryable: false, title: 'The API key is invalid' },
  invalid_token: { status: 401, retryable: false, title: 'The access token is invalid' },
  plan_limit_exceeded: { status: 402, retryable: false, title: 'The request could exceed the monthly quota' },
  feature_not_in_plan: { status: 403, retryable: false, title: 'The plan does not include the feature' },
  scope_missing: { status: 403, retryable: false, title: 'The API key or the access token lacks the scope' },
  organization_not_linked: {
    status: 403,
    retryable: false,
    title: 'No organization is linked to that of the access token',
  },
  client_blocked: { status: 403, retryable: false, title: 'The client of the access token is blocked' },
  admin_role_required: {
    status: 403,
    retryable: false,
    title: 'The access token does not have `OIDC_ADMIN_CLAIM`',
    message: 'The access token does not have the claim that /admin requires.',
  },
  channel_not_found: {
    status: 404,
    retryable: false,
    title: 'The channel does not exist',
    message: `Channel not found. Use ${CHANNEL_FORMS}.`,
  },
  video_not_found: {
    status: 404,
    retryable: false,
    title: 'The text is not a reference to a video',
    message:
      'Video not found. Use a video ID (11 characters) or a video URL on youtube.com (/watch?v=, /shorts/, /live/, ' +
      '/embed/) or youtu.be.',
  },
  playlist_not_found: { status: 404, retryable: false, title: 'The playlist does not exist' },
  job_not_found: {
    status: 404,
    retryable: false,
    title: 'The organization has no job with this ID',
  },
  subscription_not_found: {
    status: 404,
    retryable: false,
    title: 'The organization has no subscription with this ID',
  },
  not_found: { status: 404, retryable: false, title: 'Nothing has this path or ID' },
  method_not_allowed: { status: 405, retryable: false, title: 'The endpoint does not support the method' },
  conflict: { status: 409, retryable: false, title: 'The state of the object does not allow the change' },
  job_finished: { status: 409, retryable: false, title: 'The job has already been completed or has failed' },
  idempotency_conflict: {
    status: 409,
    retryable: false,
    title: 'The Idempotency-Key was used with another request',
    message: 'This idempotency key was used with a different request. Use a new key for a new request.',
  },
  results_expired: { status: 410, retryable: false, title: 'The results were deleted at `expiresAt`' },
  rate_limited: { status: 429, retryable: true, title: 'The rate limit of the key or organization is exceeded' },
  too_many_jobs: { status: 429, retryable: true, title: 'The organization has too many unfinished jobs' },
  too_many_subscriptions: { status: 429, retryable: true, title: 'The organization has too many subscriptions' },
  internal_error: {
    status: 500,
    retryable: false,
    title: 'An unexpected error occurred',
    message: 'Internal error. The log of the service contains the cause under the request id.',
  },
  service_unavailable: {
    status: 503,
    retryable: true,
    title: 'The database is unavailable, or the service is shutting down',
  },
  // A single video can have these as well, with a message of its own.
  upstream_failure: {
    ...VIDEO_FAILURES.upstream_failure,
    title: 'YouTube could not be read',
    message: 'YouTube sent a response that could not be read. Retry later.',
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
} satisfies Record<string, CallError>;

/** Every `error.code`: those of a call, and why a video has no transcript. docs/errors.md has a section for each. */
export const ERRORS = { ...VIDEO_FAILURES, ...CALL_ERRORS };

export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];
