import { z } from 'zod';
import { ERROR_CODES } from '../../domain/error-codes.js';
import type { DomainError, ErrorFields } from '../../domain/errors.js';
import { count, dateTime } from '../../domain/schema-fields.js';
import { CaptionTrack } from '../../domain/transcript.js';

const InvalidField = z
  .object({
    field: z.string().describe('The name of the invalid parameter or body field.'),
    message: z.string().describe('Why the value is invalid and which values are valid.'),
  })
  .meta({ id: 'InvalidField' });

/** Of a code only, which the description names. */
const ONLY_SOME = {
  details: z.array(InvalidField).describe('With `invalid_request`: every invalid parameter or body field.'),
  limit: count('With `plan_limit_exceeded`: the monthly limit, in transcripts; see `scope`.'),
  used: count('With `plan_limit_exceeded`: transcripts charged in the current month.'),
  reserved: count('With `plan_limit_exceeded`: transcripts reserved by requests in progress.'),
  required: count(
    'With `plan_limit_exceeded`: the maximum number of transcripts that this request could have charged.',
  ),
  resetAt: dateTime('With `plan_limit_exceeded`: the start of the next calendar month (UTC), when the quota resets.'),
  scope: z
    .string()
    .describe(
      'With `plan_limit_exceeded`: what the limit and the counts are of: the `organization`, or the API `key` when less remains for it. ' +
        'With `scope_missing`: the scope that the operation requires, `read` or `write`.',
    ),
  feature: z.string().describe('With `feature_not_in_plan`: the feature that the plan does not include.'),
  plan: z.string().describe('With `feature_not_in_plan`: the current plan of the organization.'),
  requiredPlan: z.string().describe('With `feature_not_in_plan`: the lowest plan that includes the feature.'),
  oldest: z
    .string()
    .describe(
      'With `results_expired` of a subscription or the feed, and with `cursor_unknown`: the `after` to continue with, before the next ' +
        'result that is stored, or the oldest one.',
    ),
  expired: count(
    'With `results_expired` of a subscription or the feed: how many entries after the cursor have expired, 0 when only its own was deleted.',
  ),
  captionTracks: z
    .array(CaptionTrack)
    .describe('With `language_unavailable` of a call about one video: every caption track of the video.'),
};

const ErrorDto = z
  .object({
    code: z.enum(ERROR_CODES).describe('A stable error code.'),
    message: z.string().describe('A message for developers. Its wording may change; match on `code` instead.'),
    retryable: z.boolean().describe('Whether the same request can succeed later.'),
    requestId: z.string().describe('Identifies the request in the logs of the service. Also sent as `X-Request-Id`.'),
    docs: z.string().meta({
      format: 'uri-reference',
      description: 'The section about the code on the page about errors of this service.',
    }),
    ...z.object(ONLY_SOME).partial().shape,
  })
  .meta({ id: 'Error' });

/** Swagger UI. */
export const DOCS_PAGE = '/docs';

/** The page with a section about each code. */
export const ERRORS_PAGE = '/docs/errors';

export const ErrorBodyDto = z.object({ error: ErrorDto.describe('The error.') }).meta({ id: 'ErrorAnswer' });
export type ErrorBodyDto = z.infer<typeof ErrorBodyDto>;

/** @param more fields in addition to those of the error */
export function errorBody(error: DomainError, requestId: string, more: ErrorFields = {}): ErrorBodyDto {
  const { code, message, retryable } = error;
  return { error: { code, message, retryable, requestId, docs: `${ERRORS_PAGE}#${code}`, ...error.fields, ...more } };
}
