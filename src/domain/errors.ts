import { PLAN_NAMES, type Plan } from './plan.js';
import type { VideoFailure, VideoFailureCode } from './transcript.js';

/** The HTTP status of each `error.code` of a refused call, and whether the same call can succeed later. */
export const ERROR_KINDS = {
  invalid_request: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false },
  invalid_api_key: { status: 401, retryable: false },
  plan_limit_exceeded: { status: 402, retryable: false },
  feature_not_in_plan: { status: 403, retryable: false },
  channel_not_found: { status: 404, retryable: false },
  video_not_found: { status: 404, retryable: false },
  playlist_not_found: { status: 404, retryable: false },
  job_not_found: { status: 404, retryable: false },
  not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  conflict: { status: 409, retryable: false },
  job_finished: { status: 409, retryable: false },
  idempotency_conflict: { status: 409, retryable: false },
  results_expired: { status: 410, retryable: false },
  rate_limited: { status: 429, retryable: true },
  too_many_jobs: { status: 429, retryable: true },
  internal_error: { status: 500, retryable: false },
  upstream_failure: { status: 502, retryable: true },
  upstream_blocked: { status: 502, retryable: true },
  service_unavailable: { status: 503, retryable: true },
  upstream_timeout: { status: 504, retryable: true },
  // Of a call about one video.
  transcript_unavailable: { status: 404, retryable: false },
  language_unavailable: { status: 404, retryable: false },
  video_unavailable: { status: 404, retryable: false },
  video_private: { status: 404, retryable: false },
  video_members_only: { status: 404, retryable: false },
  video_age_restricted: { status: 404, retryable: false },
  video_not_live_yet: { status: 409, retryable: true },
  video_live: { status: 409, retryable: true },
  upstream_busy: { status: 503, retryable: true },
} satisfies Record<string, { status: number; retryable: boolean }>;

export type ErrorCode = keyof typeof ERROR_KINDS;

/** Fields of an error body in addition to `code`, `message`, `retryable` and `requestId`. */
export type ErrorFields = Readonly<Record<string, unknown>>;

/**
 * An error that is reported to the caller: a stable code, a public message, whether a retry can succeed, and a private
 * `cause` for the log only.
 */
export abstract class DomainError extends Error {
  abstract readonly code: ErrorCode;

  /** @param retryAfterSeconds seconds to wait before a retry, sent as `Retry-After` */
  constructor(
    message: string,
    cause?: unknown,
    readonly retryAfterSeconds?: number,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }

  /** The HTTP status. */
  get status(): number {
    return ERROR_KINDS[this.code].status;
  }

  get retryable(): boolean {
    return ERROR_KINDS[this.code].retryable;
  }

  fields(): ErrorFields {
    return {};
  }
}

/** Base of a class of errors that all have one code and one message. */
function fixedError<Code extends ErrorCode>(code: Code, message: string) {
  return class extends DomainError {
    readonly code = code;

    constructor(cause?: unknown) {
      super(message, cause);
    }
  };
}

export interface InvalidField {
  field: string;
  message: string;
}

export class InvalidRequestError extends DomainError {
  readonly code = 'invalid_request';

  constructor(readonly details: readonly InvalidField[]) {
    super(details.map((detail) => detail.message).join(' '));
  }

  override fields(): ErrorFields {
    return { details: this.details };
  }
}

/** A malformed request with a more specific status than 400, or one that is not read any further. */
export class RefusedRequestError extends InvalidRequestError {
  /** @param field the part of the request that is malformed */
  constructor(
    private readonly specificStatus: number,
    field: string,
    message: string,
  ) {
    super([{ field, message }]);
  }

  override get status(): number {
    return this.specificStatus;
  }
}

/** No route matches the path. */
export class RouteNotFoundError extends fixedError('not_found', 'Not found. See /docs for the available endpoints.') {}

/** The route exists for other methods. */
export class MethodNotAllowedError extends DomainError {
  readonly code = 'method_not_allowed';

  /** @param allowed the methods of the route, e.g. `GET, HEAD` */
  constructor(readonly allowed: string) {
    super(`Method not allowed. Use ${allowed}.`);
  }
}

/** A bug. The response does not contain its cause. */
export class InternalError extends fixedError(
  'internal_error',
  'Internal error. The log of the service contains the cause under the request id.',
) {}

export class UnauthorizedError extends DomainError {
  readonly code = 'unauthorized';

  /** @param place where to send the key */
  constructor(place = 'the header "Authorization: Bearer <API_KEY>"') {
    super(`Send your API key in ${place}.`);
  }
}

export class InvalidApiKeyError extends fixedError(
  'invalid_api_key',
  'This API key is malformed, unknown, revoked or expired.',
) {}

export class FeatureNotInPlanError extends DomainError {
  readonly code = 'feature_not_in_plan';

  constructor(
    readonly feature: string,
    readonly plan: Plan,
    readonly requiredPlan: Plan,
  ) {
    super(
      `Your organization is on the ${PLAN_NAMES[plan]} plan; this operation requires the ${PLAN_NAMES[requiredPlan]} plan.`,
    );
  }

  override fields(): ErrorFields {
    return { feature: this.feature, plan: this.plan, requiredPlan: this.requiredPlan };
  }
}

export class ChannelNotFoundError extends fixedError(
  'channel_not_found',
  'Channel not found. Use a handle (@name), a channel ID (UC and 22 characters) or a channel URL on youtube.com.',
) {}

/** The text of a caller is not a reference to a video. A video that the platform does not play is a `VideoFailure`. */
export class VideoNotFoundError extends fixedError(
  'video_not_found',
  'Video not found. Use a video ID (11 characters) or a video URL on youtube.com (/watch?v=, /shorts/, /live/, ' +
    '/embed/) or youtu.be.',
) {}

/** Seconds to wait when the service holds back its requests and does not know for how long. */
const BUSY_RETRY_AFTER_SECONDS = 30;

/** The one video of a call has no transcript. In a list of videos this is a failed entry. */
export class VideoFailedError extends DomainError {
  readonly code: VideoFailureCode;

  constructor({ code, message, retryAfterSeconds }: VideoFailure & { message: string }) {
    super(message, undefined, retryAfterSeconds ?? (code === 'upstream_busy' ? BUSY_RETRY_AFTER_SECONDS : undefined));
    this.code = code;
  }
}

/** The playlist does not exist, or the platform states that it is private. */
export class PlaylistNotFoundError extends DomainError {
  readonly code = 'playlist_not_found';

  constructor(reason: 'unknown' | 'private' = 'unknown', cause?: unknown) {
    super(
      reason === 'private'
        ? 'This playlist is private. Its owner can make it public or unlisted.'
        : 'Playlist not found. Use a playlist ID (PL…, UU…, OLAK5uy_…) or the URL of a playlist on youtube.com.',
      cause,
    );
  }
}

export class JobNotFoundError extends fixedError(
  'job_not_found',
  'Job not found. List the jobs of your organization with GET /jobs.',
) {}

/** The state of the job does not allow the operation. */
export class JobFinishedError extends DomainError {
  readonly code = 'job_finished';

  constructor(operation: 'cancel' | 'resume', state: string) {
    super(`The job is ${state} and can no longer be ${operation === 'cancel' ? 'canceled' : 'resumed'}.`);
  }
}

/** The idempotency key was used for another request. */
export class IdempotencyConflictError extends fixedError(
  'idempotency_conflict',
  'This Idempotency-Key was used with a different request. Use a new key for a new job.',
) {}

export class ResultsExpiredError extends DomainError {
  readonly code = 'results_expired';

  /** @param expiredAt ISO 8601 */
  constructor(expiredAt: string) {
    super(`The results of this job expired at ${expiredAt}. Create a new job to fetch them again.`);
  }
}

/** Jobs take minutes. */
const JOBS_RETRY_AFTER_SECONDS = 60;

/** The organization has the maximum number of unfinished jobs. */
export class TooManyJobsError extends DomainError {
  readonly code = 'too_many_jobs';

  constructor(jobsMax: number) {
    super(
      `Your organization has reached the limit of ${jobsMax} unfinished ${jobsMax === 1 ? 'job' : 'jobs'}. ` +
        'Wait until one is finished, or cancel one.',
      undefined,
      JOBS_RETRY_AFTER_SECONDS,
    );
  }
}

/** The organization stores as many jobs, or as many results, as it may. */
export class StoredResultsLimitError extends DomainError {
  readonly code = 'too_many_jobs';

  /** @param stored what the organization stores the maximum of */
  constructor(stored: { jobs: number } | { megabytes: number }) {
    const maximum = 'jobs' in stored ? `${stored.jobs} jobs` : `${stored.megabytes} MB of job results`;
    super(
      `Your organization stores ${maximum}, the maximum. ` +
        'Delete finished jobs with DELETE /jobs/{id}, or wait until they expire.',
      undefined,
      JOBS_RETRY_AFTER_SECONDS,
    );
  }
}

export class WebhookNotFoundError extends fixedError(
  'not_found',
  'Webhook not found. List the webhooks of your organization with GET /webhooks.',
) {}

/** The state of an organization's quota; counts are transcripts of one calendar month (UTC). */
export interface QuotaState {
  limit: number;
  used: number;
  reserved: number;
  /** When the next month starts and `used` is 0 again. */
  resetAt: Date;
  /** When these figures were read, by the clock of the database, as `resetAt` is. */
  asOf: Date;
}

/** The number of transcripts that can still be reserved this month. */
export function remainingQuota({ limit, used, reserved }: QuotaState): number {
  return Math.max(0, limit - used - reserved);
}

export class PlanLimitExceededError extends DomainError {
  readonly code = 'plan_limit_exceeded';

  /**
   * @param fitting the largest number of videos, from the first on, with which the same call would be granted now
   * @param parameter how the call states the number of its videos: by a `limit`, or by a list of `videos`
   */
  constructor(
    readonly quota: QuotaState,
    readonly required: number,
    readonly fitting: number,
    parameter: 'limit' | 'videos' = 'limit',
  ) {
    super(
      `This request may use up to ${required} ${required === 1 ? 'transcript' : 'transcripts'} of the monthly quota, and ` +
        `${remainingQuota(quota)} of ${quota.limit} remain. ${advice(quota, fitting, parameter)}`,
    );
  }

  override fields(): ErrorFields {
    return {
      limit: this.quota.limit,
      used: this.quota.used,
      reserved: this.quota.reserved,
      required: this.required,
      resetAt: this.quota.resetAt.toISOString(),
      scope: 'organization',
    };
  }
}

function advice(
  { limit, used, reserved, resetAt }: QuotaState,
  fitting: number,
  parameter: 'limit' | 'videos',
): string {
  if (fitting > 0) {
    if (parameter === 'limit') return `Retry with limit=${fitting} or lower.`;
    return fitting === 1 ? 'Retry with the first video only.' : `Retry with the first ${fitting} videos or fewer.`;
  }
  // A limit that was lowered below what is used leaves nothing, whatever the running requests release.
  if (reserved > 0 && used < limit) return `Running requests have reserved ${reserved}. Retry when they have ended.`;
  return `The quota resets at ${resetAt.toISOString()}.`;
}

/** Codes of errors that fail a call as a whole; the failure of one video is a `VideoFailure` instead. */
const UPSTREAM_MESSAGES = {
  upstream_failure: 'YouTube sent a response that could not be read. Retry later.',
  upstream_blocked: 'YouTube currently blocks requests from this service. Retry later.',
  upstream_timeout: 'YouTube did not respond before the deadline. Retry the request.',
};

/** The channel, its uploads or a playlist could not be read from the platform. */
export class UpstreamError extends DomainError {
  constructor(
    readonly code: keyof typeof UPSTREAM_MESSAGES,
    cause?: unknown,
    retryAfterSeconds?: number,
  ) {
    super(UPSTREAM_MESSAGES[code], cause, retryAfterSeconds);
  }
}

/** The caller exceeded its own limit; limits of the platform are upstream errors. */
abstract class RateLimitedError extends DomainError {
  readonly code = 'rate_limited';

  constructor(message: string, retryAfterSeconds: number) {
    super(message, undefined, retryAfterSeconds);
  }
}

/** An API key exceeded its rate limit. */
export class RequestRateExceededError extends RateLimitedError {
  constructor(requestsPerMinute: number, retryAfterSeconds: number) {
    const limit = `Rate limit of ${requestsPerMinute} requests per minute exceeded.`;
    super(`${limit} Retry after ${inSeconds(retryAfterSeconds)}.`, retryAfterSeconds);
  }
}

/** An API key has the maximum number of requests in flight. */
export class ConcurrencyLimitReachedError extends RateLimitedError {
  constructor(requestsMax: number, retryAfterSeconds: number) {
    const limit = `Concurrency limit of ${requestsMax} ${requestsMax === 1 ? 'request' : 'requests'} for this key reached.`;
    super(`${limit} Retry when a running request has ended.`, retryAfterSeconds);
  }
}

/** An address sent too many requests without a valid credential. */
export class TooManyFailedAuthenticationsError extends RateLimitedError {
  constructor(credential: 'API key' | 'admin token', retryAfterSeconds: number) {
    const limit = `Too many requests without a valid ${credential} from this address.`;
    super(`${limit} Retry with a valid ${credential}, or after ${inSeconds(retryAfterSeconds)}.`, retryAfterSeconds);
  }
}

export class ServiceUnavailableError extends DomainError {
  readonly code = 'service_unavailable';

  constructor(message: string, retryAfterSeconds: number, cause?: unknown) {
    super(message, cause, retryAfterSeconds);
  }
}

/** The process has the maximum number of requests in flight. */
export class ServiceAtCapacityError extends ServiceUnavailableError {
  constructor(retryAfterSeconds: number) {
    super('The service is at capacity. Nothing was charged. Retry shortly.', retryAfterSeconds);
  }
}

export class DatabaseUnavailableError extends ServiceUnavailableError {
  constructor(retryAfterSeconds: number, cause?: unknown) {
    super('The service cannot reach its database. Nothing was charged. Retry shortly.', retryAfterSeconds, cause);
  }
}

function inSeconds(seconds: number): string {
  return seconds === 1 ? '1 second' : `${seconds} seconds`;
}
