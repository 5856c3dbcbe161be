import type { Plan } from './plan.js';

/** Every `error.code` that a refused call can carry. The HTTP status of each stands in `http/error-status.ts`. */
export type ErrorCode =
  | 'invalid_request'
  | 'unauthorized'
  | 'invalid_api_key'
  | 'plan_limit_exceeded'
  | 'feature_not_in_plan'
  | 'channel_not_found'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'rate_limited'
  | 'internal_error'
  | 'upstream_failure'
  | 'upstream_blocked'
  | 'service_unavailable'
  | 'upstream_timeout';

/** Fields that an error adds to its body beside `code`, `message`, `retryable` and `requestId`. */
export type ErrorFields = Readonly<Record<string, unknown>>;

/**
 * A refusal that the caller is meant to read: a stable code, a public message, whether trying again can help, and a
 * private `cause` that goes to the log only.
 */
export abstract class DomainError extends Error {
  abstract readonly code: ErrorCode;
  readonly retryable: boolean = false;
  /** Seconds after which a retry makes sense, sent as `Retry-After`. */
  readonly retryAfterSeconds: number | undefined = undefined;

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }

  fields(): ErrorFields {
    return {};
  }
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

export class UnauthorizedError extends DomainError {
  readonly code = 'unauthorized';

  /** @param place where the key belongs */
  constructor(place = 'the header "Authorization: Bearer <API_KEY>"') {
    super(`Send your API key in ${place}.`);
  }
}

export class InvalidApiKeyError extends DomainError {
  readonly code = 'invalid_api_key';

  constructor() {
    super('This API key is malformed, unknown, revoked or expired.');
  }
}

export class FeatureNotInPlanError extends DomainError {
  readonly code = 'feature_not_in_plan';

  constructor(
    readonly feature: string,
    readonly plan: Plan,
    readonly requiredPlan: Plan,
  ) {
    super(`Your organization is on the ${plan} plan; this operation needs the ${requiredPlan} plan.`);
  }

  override fields(): ErrorFields {
    return { feature: this.feature, plan: this.plan, requiredPlan: this.requiredPlan };
  }
}

export class ChannelNotFoundError extends DomainError {
  readonly code = 'channel_not_found';

  constructor(cause?: unknown) {
    super(
      'No such channel. Give a handle (@name), a channel ID (UC and 22 characters) or the URL of a channel on youtube.com.',
      cause,
    );
  }
}

/** The state of an organization's quota at the moment a call was refused; counts are transcripts of one calendar month (UTC). */
export interface QuotaState {
  limit: number;
  used: number;
  reserved: number;
  /** When the next month begins and `used` starts again at 0. */
  resetAt: Date;
  /** When these figures were read, by the same clock as `resetAt`: that of the database. */
  asOf: Date;
}

export class PlanLimitExceededError extends DomainError {
  readonly code = 'plan_limit_exceeded';

  /** @param limitThatFits the largest `limit` with which the same call would be granted now; 0 when there is none. */
  constructor(
    readonly quota: QuotaState,
    readonly required: number,
    readonly limitThatFits: number,
  ) {
    const left = Math.max(0, quota.limit - quota.used - quota.reserved);
    super(
      `This call could cost ${required} ${required === 1 ? 'transcript' : 'transcripts'} and ${left} of ${quota.limit} are ` +
        `left this month. ${advice(quota, limitThatFits)}`,
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

function advice({ reserved, resetAt }: QuotaState, limitThatFits: number): string {
  if (limitThatFits > 0) return `limit=${limitThatFits} would fit.`;
  if (reserved > 0) return `No limit would fit now; ${reserved} are held for calls that are under way.`;
  return `No limit would fit before the quota starts again at ${resetAt.toISOString()}.`;
}

/** What stopped the reading of a channel as a whole; a single video's trouble is a `VideoFailure`, never an error. */
export type UpstreamErrorCode = 'upstream_failure' | 'upstream_blocked' | 'upstream_timeout';

const UPSTREAM_MESSAGES: Record<UpstreamErrorCode, string> = {
  upstream_failure: 'The platform answered in a way that could not be read. Try again later.',
  upstream_blocked: 'The platform refuses to answer this service at the moment. Try again later.',
  upstream_timeout: 'The platform took too long to answer. Try again.',
};

/** The channel or its uploads could not be read from the platform. */
export class UpstreamError extends DomainError {
  override readonly retryable = true;

  constructor(
    readonly code: UpstreamErrorCode,
    cause?: unknown,
  ) {
    super(UPSTREAM_MESSAGES[code], cause);
  }
}

/** The caller's own limit, never the platform's. */
export class RateLimitedError extends DomainError {
  readonly code = 'rate_limited';
  override readonly retryable = true;

  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

export class ServiceUnavailableError extends DomainError {
  readonly code = 'service_unavailable';
  override readonly retryable = true;

  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    cause?: unknown,
  ) {
    super(message, cause);
  }
}

/** An API key exceeded its rate limit. */
export class RequestRateExceededError extends RateLimitedError {
  constructor(requestsPerMinute: number, retryAfterSeconds: number) {
    super(
      `Rate limit of ${requestsPerMinute} requests per minute exceeded. Retry after ${inSeconds(retryAfterSeconds)}.`,
      retryAfterSeconds,
    );
  }
}

/** An API key has the maximum number of requests in flight. */
export class ConcurrencyLimitReachedError extends RateLimitedError {
  constructor(requestsMax: number, retryAfterSeconds: number) {
    const requests = requestsMax === 1 ? '1 request' : `${requestsMax} requests`;
    super(
      `Concurrency limit of ${requests} for this key reached. Retry when a running request has ended.`,
      retryAfterSeconds,
    );
  }
}

/** An address sent too many requests without a valid credential. */
export class TooManyFailedAuthenticationsError extends RateLimitedError {
  constructor(credential: 'API key' | 'admin token', retryAfterSeconds: number) {
    super(
      `Too many requests without a valid ${credential} from this address. Retry with a valid ${credential}, or after ` +
        `${inSeconds(retryAfterSeconds)}.`,
      retryAfterSeconds,
    );
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
