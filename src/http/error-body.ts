import { HttpStatus } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import type { ErrorCode, ErrorFields } from '../domain/errors.js';
import { count, dateTime } from './response-docs.js';

/** The HTTP status of each error code. */
export const ERROR_STATUS: Record<ErrorCode, HttpStatus> = {
  invalid_request: HttpStatus.BAD_REQUEST,
  unauthorized: HttpStatus.UNAUTHORIZED,
  invalid_api_key: HttpStatus.UNAUTHORIZED,
  plan_limit_exceeded: HttpStatus.PAYMENT_REQUIRED,
  feature_not_in_plan: HttpStatus.FORBIDDEN,
  channel_not_found: HttpStatus.NOT_FOUND,
  video_not_found: HttpStatus.NOT_FOUND,
  playlist_not_found: HttpStatus.NOT_FOUND,
  job_not_found: HttpStatus.NOT_FOUND,
  not_found: HttpStatus.NOT_FOUND,
  method_not_allowed: HttpStatus.METHOD_NOT_ALLOWED,
  conflict: HttpStatus.CONFLICT,
  job_finished: HttpStatus.CONFLICT,
  idempotency_conflict: HttpStatus.CONFLICT,
  results_expired: HttpStatus.GONE,
  rate_limited: HttpStatus.TOO_MANY_REQUESTS,
  too_many_jobs: HttpStatus.TOO_MANY_REQUESTS,
  internal_error: HttpStatus.INTERNAL_SERVER_ERROR,
  upstream_failure: HttpStatus.BAD_GATEWAY,
  upstream_blocked: HttpStatus.BAD_GATEWAY,
  service_unavailable: HttpStatus.SERVICE_UNAVAILABLE,
  upstream_timeout: HttpStatus.GATEWAY_TIMEOUT,
  transcript_unavailable: HttpStatus.NOT_FOUND,
  language_unavailable: HttpStatus.NOT_FOUND,
  video_unavailable: HttpStatus.NOT_FOUND,
  video_private: HttpStatus.NOT_FOUND,
  video_members_only: HttpStatus.NOT_FOUND,
  video_age_restricted: HttpStatus.NOT_FOUND,
  video_not_live_yet: HttpStatus.CONFLICT,
  video_live: HttpStatus.CONFLICT,
  upstream_busy: HttpStatus.SERVICE_UNAVAILABLE,
};

@ApiSchema({ name: 'InvalidField' })
class InvalidFieldDto {
  @ApiProperty({ description: 'The name of the invalid parameter or body field.' })
  field: string;

  @ApiProperty({ description: 'Why the value is invalid and which values are valid.' })
  message: string;
}

@ApiSchema({ name: 'Error' })
class ErrorDto {
  @ApiProperty({ enum: Object.keys(ERROR_STATUS), description: 'A stable error code. docs/errors.md describes each.' })
  code: ErrorCode;

  @ApiProperty({ description: 'A message for developers. Its wording may change; match on `code` instead.' })
  message: string;

  @ApiProperty({ description: 'Whether the same request can succeed later.' })
  retryable: boolean;

  @ApiProperty({ description: 'Identifies the request in the logs of the service. Also sent as `X-Request-Id`.' })
  requestId: string;

  @ApiPropertyOptional({
    type: [InvalidFieldDto],
    description: 'With `invalid_request`: every invalid parameter or body field.',
  })
  details?: InvalidFieldDto[];

  @ApiPropertyOptional(count('With `plan_limit_exceeded`: the monthly limit of the organization, in transcripts.'))
  limit?: number;

  @ApiPropertyOptional(count('With `plan_limit_exceeded`: transcripts charged in the current month.'))
  used?: number;

  @ApiPropertyOptional(count('With `plan_limit_exceeded`: transcripts reserved by requests in progress.'))
  reserved?: number;

  @ApiPropertyOptional(
    count('With `plan_limit_exceeded`: the maximum number of transcripts that this request could have charged.'),
  )
  required?: number;

  @ApiPropertyOptional(
    dateTime('With `plan_limit_exceeded`: the start of the next calendar month (UTC), when the quota resets.'),
  )
  resetAt?: string;

  @ApiPropertyOptional({
    type: String,
    description: 'With `plan_limit_exceeded`: what the limit applies to; always `organization`.',
  })
  scope?: string;

  @ApiPropertyOptional({
    type: String,
    description: 'With `feature_not_in_plan`: the feature that the plan does not include.',
  })
  feature?: string;

  @ApiPropertyOptional({
    type: String,
    description: 'With `feature_not_in_plan`: the current plan of the organization.',
  })
  plan?: string;

  @ApiPropertyOptional({
    type: String,
    description: 'With `feature_not_in_plan`: the lowest plan that includes the feature.',
  })
  requiredPlan?: string;
}

/** The body of every error response. */
@ApiSchema({ name: 'ErrorAnswer' })
export class ErrorBodyDto {
  @ApiProperty({ description: 'The error.' })
  error: ErrorDto;
}

/** @param error the public part of a `DomainError`; `fields` are added to the common ones */
export function errorBody(
  error: { code: ErrorCode; message: string; retryable: boolean; fields?: ErrorFields },
  requestId: string,
): ErrorBodyDto {
  return {
    error: { code: error.code, message: error.message, retryable: error.retryable, requestId, ...error.fields },
  };
}
