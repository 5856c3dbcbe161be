import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../../auth/auth.decorators.js';
import { ApiId, type ErrorExample } from '../../http/errors/error-docs.js';
import { contentOf, type Model, refTo } from '../../http/routes/response-docs.js';
import { requestContext } from '../../http/server/request-context.js';
import { ENTRY_HEADERS } from '../../transcripts/dto/api-transcripts.js';
import { NDJSON } from '../../transcripts/response/transcripts-response.js';
import { JobFinishedError, ResultsExpiredError, StoredResultsLimitError, TooManyJobsError } from '../job.js';
import { JOB_VARIANTS, type JobVariant } from '../job-variants.js';
import { RUNNING_JOB_EXAMPLE } from './job.dto.js';
import { SUBSCRIPTION_EXAMPLE } from './subscription.dto.js';

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

export const NOT_CANCELABLE: ErrorExample = {
  title: 'The job has already been completed or has failed',
  error: new JobFinishedError('cancel', 'completed'),
};

/**
 * The organization of the caller; adds the job or subscription to the log line of the request, unless the path has another text
 * than an ID.
 */
export function organizationOf(request: Request, variant: JobVariant, id: string): string {
  const { caller, log } = requestContext(request);
  if (JOB_VARIANTS[variant].idForm.test(id)) log[`${variant}Id`] = id;
  return caller.organization.id;
}

/** The header of a response that has created something. */
export const locationOf = (created: JobVariant) => ({
  Location: { description: `The path of the ${created}: \`/${created}s/{id}\`.`, schema: { type: 'string' as const } },
});

/** The parameter of the routes of a job or a subscription, and their 404. */
export function ApiJobId(
  variant: JobVariant,
  title = `The organization has no ${variant} with this ID`,
): MethodDecorator {
  const example = variant === 'job' ? RUNNING_JOB_EXAMPLE.id : SUBSCRIPTION_EXAMPLE.id;
  const { prefix, NotFound } = JOB_VARIANTS[variant];
  return ApiId(`The ID of the ${variant} (\`${prefix}_…\`).`, example, { title, error: new NotFound() });
}

/**
 * Guards an operation on the jobs or the subscriptions that exist, which is on every plan and has a rate limit of its own: looking
 * at them takes no call from other operations.
 */
export function OnJobs(variant: JobVariant, limits?: { limitsConcurrency: boolean }): MethodDecorator {
  return RequiresApiKey({ ...limits, countedAs: `${variant}s` });
}

/** The same for an operation on one of them. */
export function OnJob(variant: JobVariant, limits?: { limitsConcurrency: boolean }): MethodDecorator {
  return applyDecorators(OnJobs(variant, limits), ApiJobId(variant));
}

/** Documents the two forms of the results of a job or a subscription. @param lines the example as NDJSON */
export function ApiResults(
  type: Model,
  variant: JobVariant,
  example: object,
  lines: readonly object[],
): MethodDecorator {
  const position = variant === 'job' ? '`position`, ' : '';
  return applyDecorators(
    ApiOkResponse({
      description:
        'Entries in the order in which they became final. JSON is a page; NDJSON (`Accept: application/x-ndjson`) has all entries from `after` on.',
      headers: { Vary: ENTRY_HEADERS.Vary },
      ...contentOf(
        { schema: refTo(type), example },
        {
          [NDJSON]: {
            schema: {
              type: 'string',
              description:
                `One JSON object per line, with a \`type\`: a \`result\` with the fields \`cursor\`, ${position}and \`result\` for each entry, and ` +
                `last \`summary\` with the fields \`summary\`, \`next\` and \`${variant}\`. A body without the last line is incomplete: request ` +
                '`after` with the last `cursor` that was received.',
            },
            example: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
          },
        },
      ),
    }),
  );
}
