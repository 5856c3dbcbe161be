import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiHeader, ApiOkResponse, ApiParam, getSchemaPath } from '@nestjs/swagger';
import { RequiresApiKey } from '../../auth/auth.decorators.js';
import { ApiErrors, type ErrorExample } from '../../http/error-docs.js';
import { contentOf } from '../../http/response-docs.js';
import { OwnRateLimit } from '../../rate-limit/rate-limit.guard.js';
import { NDJSON } from '../../transcripts/response/transcripts-response.js';
import {
  IdempotencyConflictError,
  JobNotFoundError,
  ResultsExpiredError,
  StoredResultsLimitError,
  TooManyJobsError,
} from '../job.js';
import { RUNNING_JOB_EXAMPLE } from './job.dto.js';
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_LENGTH_MAX } from './jobs-request.dto.js';

/** The name of the count of the operations on existing jobs, so that looking at a job takes no call from other operations. */
const JOBS_RATE_LIMIT = 'jobs';

export const RESULTS_EXPIRED: ErrorExample = {
  title: 'The results were deleted at `expiresAt`',
  error: new ResultsExpiredError('2026-11-23T16:21:44.000Z'),
};

export const TOO_MANY_JOBS: ErrorExample = {
  title: 'The organization has too many unfinished jobs',
  error: new TooManyJobsError(5),
};

export const TOO_MUCH_STORED: ErrorExample = {
  title: 'The organization stores too many results',
  error: new StoredResultsLimitError({ megabytes: 10_000 }),
};

export const CONFLICTING_KEY: ErrorExample = {
  title: 'The Idempotency-Key was used with another request',
  error: new IdempotencyConflictError(),
};

/** Jobs that end, and those that do not. */
type Owner = 'job' | 'subscription';

/** The header of a response that has created something. */
export const locationOf = (created: Owner) => ({
  Location: { description: `The path of the ${created}: \`/${created}s/{id}\`.`, schema: { type: 'string' as const } },
});

/** The parameter of the routes of a job, and their 404. */
export function ApiJobId(title = 'The organization has no job with this ID'): MethodDecorator {
  const description = 'The ID of the job (`job_…`).';
  return applyDecorators(
    ApiParam({ name: 'id', description, schema: { type: 'string', example: RUNNING_JOB_EXAMPLE.id } }),
    ApiErrors({ title, error: new JobNotFoundError() }),
  );
}

/** Guards an operation on the jobs that exist, which is on every plan and has a rate limit of its own. */
export function OnJobs(limits?: { limitsConcurrency: boolean }): MethodDecorator {
  return applyDecorators(RequiresApiKey(limits), OwnRateLimit(JOBS_RATE_LIMIT));
}

/** The same for an operation on one job. */
export function OnJob(limits?: { limitsConcurrency: boolean }): MethodDecorator {
  return applyDecorators(OnJobs(limits), ApiJobId());
}

/** Documents the header that makes the creation of a job or a subscription repeatable. */
export function ApiIdempotencyKey(created: Owner): MethodDecorator {
  return ApiHeader({
    name: IDEMPOTENCY_KEY,
    required: false,
    description:
      `Makes the request safe to repeat: the same key and body return the ${created} that the first request has created, another body ` +
      `is 409 \`idempotency_conflict\`. Printable ASCII characters, such as a UUID; stored as long as the ${created}, for the organization.`,
    schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY_KEY_LENGTH_MAX },
    example: '5b1f7a52-6c0e-4a1b-9d3c-2f60c1f0a7de',
  });
}

/** Stored results in the document. */
interface DocumentedResults<Results extends object> {
  type: Type<Results>;
  /** The field of the results that has the state of what they belong to. */
  owner: Owner;
  description: string;
  example: Results;
  ndjsonExample: string;
}

/** Documents the two forms of the results of a job or a subscription. */
export function ApiResults<Results extends object>(results: DocumentedResults<Results>): MethodDecorator {
  const { type, owner, description, example, ndjsonExample } = results;
  const position = owner === 'job' ? '`position`, ' : '';
  return applyDecorators(
    ApiExtraModels(type),
    ApiOkResponse({
      description: `${description} JSON is a page; NDJSON (\`Accept: application/x-ndjson\`) has all entries from \`after\` on.`,
      headers: {
        Vary: {
          description:
            '`Accept-Encoding, Accept`: the body is compressed for clients that accept gzip, and NDJSON for clients that accept it.',
          schema: { type: 'string' },
        },
      },
      ...contentOf(
        { schema: { $ref: getSchemaPath(type) }, example },
        {
          [NDJSON]: {
            schema: {
              type: 'string',
              description:
                `One JSON object per line, with a \`type\`: a \`result\` with the fields \`cursor\`, ${position}and \`result\` for each entry, and ` +
                `last \`summary\` with the fields \`summary\`, \`next\` and \`${owner}\`. A body without the last line is incomplete: request ` +
                '`after` with the last `cursor` that was received.',
            },
            example: ndjsonExample,
          },
        },
      ),
    }),
  );
}
