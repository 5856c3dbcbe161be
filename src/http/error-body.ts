import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import type { ErrorCode, ErrorFields } from '../domain/errors.js';
import { ERROR_STATUS } from './error-status.js';

@ApiSchema({ name: 'InvalidField' })
class InvalidFieldDto {
  @ApiProperty({ description: 'The name of the invalid parameter or body field.', example: 'limit' })
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

  @ApiPropertyOptional({
    type: 'integer',
    description: 'With `plan_limit_exceeded`: the monthly limit of the organization, in transcripts.',
  })
  limit?: number;

  @ApiPropertyOptional({
    type: 'integer',
    description: 'With `plan_limit_exceeded`: transcripts charged in the current month.',
  })
  used?: number;

  @ApiPropertyOptional({
    type: 'integer',
    description: 'With `plan_limit_exceeded`: transcripts reserved by requests in progress.',
  })
  reserved?: number;

  @ApiPropertyOptional({
    type: 'integer',
    description: 'With `plan_limit_exceeded`: the maximum number of transcripts that this request could have charged.',
  })
  required?: number;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    description: 'With `plan_limit_exceeded`: the start of the next calendar month (UTC), when the quota resets.',
  })
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
