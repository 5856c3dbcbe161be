import { refusalOf } from './api-key-text.js';
import { tokenScope, type Scope } from './caller.js';
import { ERRORS, type ErrorCode } from './error-codes.js';
import { PLAN_NAMES, type Plan } from './plan.js';
import type { CaptionTrack, VideoFailure, VideoFailureCode } from './transcript.js';

/** Fields of an error body in addition to `code`, `message`, `retryable` and `requestId`. */
export type ErrorFields = Readonly<Record<string, unknown>>;

interface ErrorDetails {
  /** For the log only. */
  cause?: unknown;
  /** Seconds to wait before a retry, sent as `Retry-After`. */
  retryAfterSeconds?: number | undefined;
  fields?: ErrorFields;
}

/** An error that is reported to the caller: a stable code, a public message, and whether a retry can succeed. */
export class DomainError extends Error {
  readonly retryable: boolean;
  readonly status: number;
  readonly fields: ErrorFields;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    { cause, retryAfterSeconds, fields = {} }: ErrorDetails = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.retryable = ERRORS[code].retryable;
    this.status = ERRORS[code].status;
    this.fields = fields;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Base of a class of errors that all have one code and one message. */
export function fixedError(code: ErrorCode, message: string) {
  return class extends DomainError {
    constructor(cause?: unknown) {
      super(code, message, { cause });
    }
  };
}

export interface InvalidField {
  field: string;
  message: string;
}

export class InvalidRequestError extends DomainError {
  constructor(readonly details: readonly InvalidField[]) {
    super('invalid_request', details.map(({ message }) => message).join(' '), { fields: { details } });
  }
}

export function invalidField(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError([{ field, message }]);
}

/** A bug. The response does not contain its cause. */
export class InternalError extends fixedError('internal_error', ERRORS.internal_error.message) {}

/** Why a key that has the form of one is not accepted. Only who has the key learns it. */
const KEY_REFUSALS = {
  unknown: 'No API key of this service is equal to this one. Check that it was issued by this service.',
  revoked: 'This API key was revoked. Use another one.',
  expired: 'This API key has expired. Use another one.',
};
export type KeyRefusal = keyof typeof KEY_REFUSALS | 'malformed';

export class InvalidApiKeyError extends DomainError {
  /**
   * @param sent what is malformed
   * @param expected what is accepted in its place, with its article
   */
  constructor(refusal: KeyRefusal, sent = '', expected = 'an API key') {
    super('invalid_api_key', refusal === 'malformed' ? refusalOf(sent, expected) : KEY_REFUSALS[refusal]);
  }
}

export class FeatureNotInPlanError extends DomainError {
  constructor(feature: string, plan: Plan, requiredPlan: Plan) {
    super(
      'feature_not_in_plan',
      `Your organization is on the ${PLAN_NAMES[plan]} plan; this operation requires the ${PLAN_NAMES[requiredPlan]} plan.`,
      { fields: { feature, plan, requiredPlan } },
    );
  }
}

export class ChannelNotFoundError extends fixedError('channel_not_found', ERRORS.channel_not_found.message) {}

/** The text of a caller is not a reference to a video. A video that the platform does not play is a `VideoFailure`. */
export class VideoNotFoundError extends fixedError('video_not_found', ERRORS.video_not_found.message) {}

/** Seconds to wait when the service holds back its requests and does not know for how long. */
const BUSY_RETRY_AFTER_SECONDS = 30;

/** The one video of a call has no transcript. In a list of videos this is a failed entry. */
export class VideoFailedError extends DomainError {
  declare readonly code: VideoFailureCode;

  /** @param captionTracks what the video has instead of the requested languages */
  constructor(
    { code, message, retryAfterSeconds }: VideoFailure & { message: string },
    captionTracks: readonly CaptionTrack[] | null = null,
  ) {
    const unknown = code === 'upstream_busy' ? BUSY_RETRY_AFTER_SECONDS : undefined;
    super(code, message, {
      retryAfterSeconds: retryAfterSeconds ?? unknown,
      ...(code === 'language_unavailable' && captionTracks && { fields: { captionTracks } }),
    });
  }
}

/** The playlist does not exist, or the platform states that it is private. */
export class PlaylistNotFoundError extends DomainError {
  constructor(reason: 'unknown' | 'private' = 'unknown', cause?: unknown) {
    super(
      'playlist_not_found',
      reason === 'private'
        ? 'This playlist is private. Its owner can make it public or unlisted.'
        : 'Playlist not found. Use a playlist ID (PL…, UU…, OLAK5uy_…) or the URL of a playlist on youtube.com.',
      { cause },
    );
  }
}

/** Transcripts of one calendar month (UTC). */
export interface QuotaCounts {
  limit: number;
  used: number;
  reserved: number;
}

export interface QuotaState extends QuotaCounts {
  /** When the next month starts and `used` is 0 again. */
  resetAt: Date;
  /** When these figures were read, by the clock of the database, as `resetAt` is. */
  asOf: Date;
  /** Of the API key that reserved, when it has a limit of its own. */
  key?: QuotaCounts | undefined;
}

/** The number of transcripts that can still be reserved this month. */
export function remainingQuota({ limit, used, reserved }: QuotaCounts): number {
  return Math.max(0, limit - used - reserved);
}

/** The counts that decide about a reservation: those of the organization, or of the key when less remains for it. */
export function decidingQuota({ key, ...organization }: QuotaState): QuotaCounts & { scope: LimitScope } {
  return key && remainingQuota(key) < remainingQuota(organization)
    ? { ...key, scope: 'key' }
    : { ...organization, scope: 'organization' };
}

export class PlanLimitExceededError extends DomainError {
  readonly decided: QuotaCounts;

  /**
   * @param fitting the largest number of videos, from the first on, with which the same call would be granted now
   * @param parameter how the call states the number of its videos: by a `limit`, or by a list of `videos`
   */
  constructor(
    readonly quota: QuotaState,
    required: number,
    readonly fitting: number,
    parameter: 'limit' | 'videos' = 'limit',
  ) {
    const decided = decidingQuota(quota);
    const { limit, used, reserved, scope } = decided;
    const resetAt = quota.resetAt.toISOString();
    const name = scope === 'key' ? 'monthly limit of this API key' : 'monthly quota';
    super(
      'plan_limit_exceeded',
      `This request may use up to ${counted(required, 'transcript')} of the ${name}, and ` +
        `${remainingQuota(decided)} of ${limit} remain. ${advice(decided, resetAt, fitting, parameter)}`,
      { fields: { limit, used, reserved, required, resetAt, scope } },
    );
    this.decided = decided;
  }
}

function advice(
  { limit, used, reserved }: QuotaCounts,
  resetAt: string,
  fitting: number,
  parameter: 'limit' | 'videos',
): string {
  if (fitting > 0) {
    if (parameter === 'limit') return `Retry with limit=${fitting} or lower.`;
    return fitting === 1 ? 'Retry with the first video only.' : `Retry with the first ${fitting} videos or fewer.`;
  }
  // A limit that was lowered below what is used leaves nothing, whatever the running requests release.
  if (reserved > 0 && used < limit) return `Running requests have reserved ${reserved}. Retry when they have ended.`;
  return `The quota resets at ${resetAt}.`;
}

type UpstreamCode = 'upstream_failure' | 'upstream_blocked' | 'upstream_busy' | 'upstream_timeout';

/** The channel, its uploads or a playlist could not be read from the platform. */
export class UpstreamError extends DomainError {
  declare readonly code: UpstreamCode;

  constructor(code: UpstreamCode, cause?: unknown, retryAfterSeconds?: number, message: string = ERRORS[code].message) {
    super(code, message, { cause, retryAfterSeconds });
  }
}

/** The API key or the token of a caller may not do what it is used for. */
export class ScopeMissingError extends DomainError {
  /** The scope to request a token with; undefined for a key, whose scopes do not change. */
  readonly tokenScope: string | undefined;

  constructor(scope: Scope, of: 'key' | 'client') {
    const ofToken = of === 'client' ? tokenScope(scope) : undefined;
    const message =
      ofToken === undefined
        ? `This API key does not have the scope ${scope}. The operator can issue one that has it.`
        : `This access token does not have the scope ${ofToken}. Request a token that has it.`;
    super('scope_missing', message, { fields: { scope } });
    this.tokenScope = ofToken;
  }
}

/** Whose limit refuses a call. */
export type LimitScope = 'key' | 'organization';

const OF_ORGANIZATION = 'for all keys of your organization';

/** An API key or its organization exceeded its rate limit. */
export class RequestRateExceededError extends DomainError {
  constructor(requestsPerMinute: number, retryAfterSeconds: number, scope: LimitScope = 'key') {
    const whose = scope === 'key' ? '' : ` ${OF_ORGANIZATION}`;
    const limit = `Rate limit of ${requestsPerMinute} requests per minute${whose} exceeded.`;
    super('rate_limited', `${limit} Retry after ${counted(retryAfterSeconds, 'second')}.`, { retryAfterSeconds });
  }
}

/** The address of a feed is read too often. */
export class FeedRateExceededError extends DomainError {
  constructor(retryAfterSeconds: number) {
    const retry = `Retry after ${counted(retryAfterSeconds, 'second')}.`;
    super('rate_limited', `The address of a feed can be read 60 times an hour. ${retry}`, { retryAfterSeconds });
  }
}

/** An API key or its organization has the maximum number of requests in flight. */
export class ConcurrencyLimitReachedError extends DomainError {
  constructor(requestsMax: number, retryAfterSeconds: number, scope: LimitScope = 'key') {
    const whose = scope === 'key' ? 'for this key' : OF_ORGANIZATION;
    const limit = `Concurrency limit of ${counted(requestsMax, 'request')} ${whose} reached.`;
    super('rate_limited', `${limit} Retry when a running request has ended.`, { retryAfterSeconds });
  }
}

/** An address sent too many requests without a valid credential. */
export class TooManyFailedAuthenticationsError extends DomainError {
  constructor(credential: 'API key' | 'admin token', retryAfterSeconds: number) {
    const limit = `Too many requests without a valid ${credential} from this address.`;
    const advice = `Retry with a valid ${credential}, or after ${counted(retryAfterSeconds, 'second')}.`;
    super('rate_limited', `${limit} ${advice}`, { retryAfterSeconds });
  }
}

export class ServiceUnavailableError extends DomainError {
  constructor(message: string, retryAfterSeconds: number, cause?: unknown) {
    super('service_unavailable', message, { cause, retryAfterSeconds });
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

/** A number of things, in words: 1 job, 2 jobs. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
