import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { ERROR_STATUSES, type ErrorCode } from '../../domain/error-codes.js';
import type { DomainError, ErrorFields } from '../../domain/errors.js';
import { countField, dateTime } from '../routes/response-docs.js';

@ApiSchema({ name: 'InvalidField' })
class InvalidFieldDto {
  @ApiProperty({ description: 'The name of the invalid parameter or body field.' })
  field: string;

  @ApiProperty({ description: 'Why the value is invalid and which values are valid.' })
  message: string;
}

@ApiSchema({ name: 'Error' })
class ErrorDto {
  @ApiProperty({
    enum: Object.keys(ERROR_STATUSES),
    description: 'A stable error code.',
  })
  code: ErrorCode;

  @ApiProperty({ description: 'A message for developers. Its wording may change; match on `code` instead.' })
  message: string;

  @ApiProperty({ description: 'Whether the same request can succeed later.' })
  retryable: boolean;

  @ApiProperty({ description: 'Identifies the request in the logs of the service. Also sent as `X-Request-Id`.' })
  requestId: string;

  @ApiProperty({
    format: 'uri-reference',
    description: 'The section about the code on the page about errors of this service.',
  })
  docs: string;

  @ApiPropertyOptional({
    type: [InvalidFieldDto],
    description: 'With `invalid_request`: every invalid parameter or body field.',
  })
  details?: InvalidFieldDto[];

  @ApiPropertyOptional(countField('With `plan_limit_exceeded`: the monthly limit, in transcripts; see `scope`.'))
  limit?: number;

  @ApiPropertyOptional(countField('With `plan_limit_exceeded`: transcripts charged in the current month.'))
  used?: number;

  @ApiPropertyOptional(countField('With `plan_limit_exceeded`: transcripts reserved by requests in progress.'))
  reserved?: number;

  @ApiPropertyOptional(
    countField('With `plan_limit_exceeded`: the maximum number of transcripts that this request could have charged.'),
  )
  required?: number;

  @ApiPropertyOptional(
    dateTime('With `plan_limit_exceeded`: the start of the next calendar month (UTC), when the quota resets.'),
  )
  resetAt?: string;

  @ApiPropertyOptional({
    type: String,
    description:
      'With `plan_limit_exceeded`: what the limit and the counts are of: the `organization`, or the API `key` when less remains for it. ' +
      'With `scope_missing`: the scope that the operation requires, `read` or `write`.',
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

  @ApiPropertyOptional(
    countField('With `results_expired` of a subscription: the cursor (`after`) of the oldest results that are stored.'),
  )
  oldest?: number;
}

/** Swagger UI. */
export const DOCS_PAGE = '/docs';

/** The page with a section about each code. */
export const ERRORS_PAGE = '/docs/errors';

/** The body of every error response. */
@ApiSchema({ name: 'ErrorAnswer' })
export class ErrorBodyDto {
  @ApiProperty({ description: 'The error.' })
  error: ErrorDto;
}

/** @param more fields in addition to those of the error */
export function errorBody(error: DomainError, requestId: string, more: ErrorFields = {}): ErrorBodyDto {
  const { code, message, retryable } = error;
  return { error: { code, message, retryable, requestId, docs: `${ERRORS_PAGE}#${code}`, ...error.fields, ...more } };
}
