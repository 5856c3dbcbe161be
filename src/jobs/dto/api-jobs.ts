import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../../auth/auth.decorators.js';
import { ApiId, type ErrorExample } from '../../http/errors/error-docs.js';
import { idempotencyKey } from '../../http/routes/idempotency-key.js';
import { contentOf, type Model, refTo } from '../../http/routes/response-docs.js';
import { requestContext } from '../../http/server/request-context.js';
import { ENTRY_HEADERS } from '../../transcripts/dto/api-transcripts.js';
import { MARKDOWN, NDJSON } from '../../transcripts/response/transcripts-response.js';
import { JobFinishedError, ResultsExpiredError, StoredResultsLimitError, TooManyJobsError } from '../job.js';
import type { Idempotency } from '../job-store.js';
import { JOB_VARIANTS, type JobVariant } from '../job-variants.js';
import { CursorExpiredError, CursorUnknownError } from '../results/cursor.js';
import type { ResultsOwner } from '../results/results-response.js';
import { RUNNING_JOB_EXAMPLE } from './job.dto.js';
import { SUBSCRIPTION_EXAMPLE } from './subscription.dto.js';

export const RESULTS_EXPIRED: ErrorExample = {
  title: 'The results were deleted at `expiresAt`',
  error: new ResultsExpiredError('2026-11-23T16:21:44.000Z'),
};

export const CURSOR_EXPIRED: ErrorExample = {
  title: 'Results after the cursor have expired',
  error: new CursorExpiredError('41.nB3kQz0A', 12),
};

export const CURSOR_UNKNOWN: ErrorExample = {
  title: 'The cursor is of a time after that to which the database was restored',
  error: new CursorUnknownError('41.nB3kQz0A'),
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

/** @throws InvalidRequestError */
export function idempotencyOf(request: Request): Idempotency | undefined {
  const key = idempotencyKey(request);
  return key === undefined ? undefined : { key };
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

const MARKDOWN_EXAMPLE = `- \`video_private\`: https://www.youtube.com/watch?v=hl-private_

The next entries: \`after=41.nB3kQz0A\`
`;

/** What a line of NDJSON states beside an entry, and the last line beside `next`. */
const LINE_FIELDS: Record<ResultsOwner, { entry: string; summary: string }> = {
  job: { entry: '`position`, ', summary: '`summary`, `next` and `job`' },
  subscription: { entry: '', summary: '`summary`, `next` and `subscription`' },
  feed: { entry: '`subscriptionId`, `channel`, `labels`, ', summary: '`next`' },
};

/** Documents the forms of results. @param lines the example as NDJSON */
export function ApiResults(type: Model, of: ResultsOwner, example: object, lines: readonly object[]): MethodDecorator {
  const { entry, summary } = LINE_FIELDS[of];
  return applyDecorators(
    ApiOkResponse({
      description:
        'Entries in the order in which they became final. JSON and Markdown (`Accept: text/markdown`) are a page; NDJSON (`Accept: application/x-ndjson`) has all entries from `after` on.',
      headers: { Vary: ENTRY_HEADERS.Vary },
      ...contentOf(
        { schema: refTo(type), example },
        {
          [NDJSON]: {
            schema: {
              type: 'string',
              description:
                `One JSON object per line, with a \`type\`: a \`result\` with the fields \`cursor\`, ${entry}and \`result\` for each entry, and ` +
                `last \`summary\` with ${summary}. A body without the last line is incomplete: request ` +
                '`after` with the last `cursor` that was received.',
            },
            example: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
          },
          [MARKDOWN]: {
            schema: { type: 'string', description: 'A section for each entry, and last the `after` of the next page.' },
            example: MARKDOWN_EXAMPLE,
          },
        },
      ),
    }),
  );
}
