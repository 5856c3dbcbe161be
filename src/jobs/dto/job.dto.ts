import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { z } from 'zod';
import { page } from '../../domain/page.js';
import { count, dateTime, dateTimeOrNull, textOrNull } from '../../domain/schema-fields.js';
import { Channel, Playlist } from '../../domain/transcript.js';
import { StoredFields } from '../../http/routes/field.js';
import { instanceOf, orNull } from '../../http/routes/response-docs.js';
import { storedForm } from '../../http/routes/validation.js';
import { TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/api-transcripts.js';
import { EntryDto } from '../../transcripts/dto/transcripts-response.dto.js';
import { JOB_STATES, CHECK_AGAIN_SECONDS_MAX, JOB_REASONS } from '../job.js';
import { JobFields, keepState } from './jobs-request.dto.js';

/** What a job was created with: one of `channel`, `playlist` and `videos`; the others are null. */
@ApiSchema({ name: 'JobRequest' })
export class JobRequestDto extends StoredFields(JobFields) {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 1,
    description: 'The number of videos that the request named, each counted once. The results have their IDs.',
  })
  videos: number | null;
}

export const labels = z.record(z.string(), z.string()).describe('Your own pairs.');

/** `total = succeeded + failed + pending` and `succeeded = cached + fetched` hold at any moment. */
export const JobSummaryDto = z
  .object({
    total: count(
      'The number of listed videos: `succeeded` + `failed` + `pending`. It grows until the list is complete.',
    ),
    succeeded: count('Videos with a transcript: `cached` + `fetched`.'),
    failed: count('Videos that have failed for good, the retries of the job included.'),
    cached: count('Transcripts that were not fetched for this job. They are free.'),
    fetched: count('Transcripts fetched for this job: the number charged to the monthly quota.'),
    pending: count('Videos that have neither a transcript nor a final error yet.'),
  })
  .meta({ id: 'JobSummary' });
export type JobSummaryDto = z.infer<typeof JobSummaryDto>;

/** An archive job. Times are ISO 8601 in UTC. */
export const JobDto = z
  .object({
    id: z.string().describe('The ID of the job.'),
    state: z
      .enum(JOB_STATES)
      .describe(
        '`queued`: no work was done yet. `listing`: the list of videos is being read. `running`: transcripts are being fetched, ' +
          'or the job waits to try failed videos again. `paused`: it waits for what `reason` names and goes on by itself. ' +
          '`completed`, `canceled` and `failed`: it has ended; `canceled` and `failed` jobs can be resumed.',
      ),
    reason: z
      .enum(JOB_REASONS)
      .nullable()
      .describe(
        'Why the job is paused or has failed. `plan_limit_exceeded`: the quota, or what the key of the job may use of it, is used up; a paused job goes on ' +
          'when the month turns or the limit of the organization grows. `upstream_blocked`: YouTube blocks the service; the job probes until it is served again. ' +
          '`plan_changed`: the plan does not include archive jobs any more. `list_incomplete`: the list of YouTube ended before the number ' +
          'of videos that it states; what was listed is read, and the list is read again later. `channel_not_found`, `playlist_not_found`: the channel or the playlist does not exist.',
      ),
    channel: orNull(Channel, 'The channel. Null until it was looked up, and for a job that names none.'),
    playlist: orNull(Playlist, 'The playlist. Null until it was looked up, and for a job that names none.'),
    request: instanceOf(JobRequestDto).describe('The request that created the job.'),
    labels,
    keep: keepState,
    summary: JobSummaryDto.describe('Counts of the videos of the job.'),
    hidden: count(
      'How many videos YouTube counts in the list beyond those that it lists, when it was last read to its end. They are ' +
        'hidden, or the list ended early: then the job is paused with `list_incomplete`, and read again until three reads ' +
        'over at least an hour have ended at the same video.',
    ),
    createdAt: dateTime('When the job was created.'),
    startedAt: dateTimeOrNull('When the first work on the job began. Null while it is queued.'),
    finishedAt: dateTimeOrNull('When the job was completed, canceled or failed. Null before.'),
    expiresAt: dateTimeOrNull('When the results of the finished job are deleted. Null before it has finished.'),
    checkAgainSeconds: z
      .int()
      .min(1)
      .max(CHECK_AGAIN_SECONDS_MAX)
      .nullable()
      .describe(
        'Seconds after which it is worthwhile to look at the job again. Null when it has finished; not yet while a canceled job still stores ' +
          'the results of its running slice.',
      ),
  })
  .meta({ id: 'Job' });
export type JobDto = z.infer<typeof JobDto>;

export const JobsPageDto = page
  .extend({ jobs: z.array(JobDto).describe('Jobs of the organization, newest first.') })
  .meta({ id: 'Jobs' });
export type JobsPageDto = z.infer<typeof JobsPageDto>;

/** Written as text by `ResultsResponse`, because stored entries are already JSON. */
export const JobResultsDto = z
  .object({
    results: z
      .array(
        EntryDto.extend({ position: z.int().min(1).describe('The place of the video in the list of the job.') }).meta({
          id: 'JobVideoTranscript',
        }),
      )
      .describe('Entries of the job in the order in which they became final.'),
    next: textOrNull(
      'The `after` of the next page. Null at the end of a finished job only: while the job runs, request `after=next` again ' +
        'later.',
    ),
    job: JobDto.describe('The job at the time of the last entry.'),
  })
  .meta({ id: 'JobResults' });
export type JobResultsDto = z.infer<typeof JobResultsDto>;

/** The states whose beginning is an event for webhooks, by the database function `job_transition`. */
const REPORTED_STATES = ['completed', 'failed', 'paused', 'canceled'] as const;

const JobEventData = z
  .object({
    jobId: z.string().describe('The ID of the job: its results are at `GET /jobs/{id}/results`.'),
    labels,
    state: z.enum(REPORTED_STATES).describe('The state that the job has entered.'),
    reason: textOrNull('As `reason` of the job. Null when the state has none.'),
    channelId: textOrNull('The ID of the channel. Null when it was not found yet, and for a job that names none.'),
    summary: JobSummaryDto.describe('The counts of the job when the event occurred.'),
  })
  .meta({ id: 'JobEventData' });

export const JobEventDto = z
  .object({
    type: z.enum(REPORTED_STATES.map((state) => `job.${state}` as const)).describe('The event.'),
    timestamp: dateTime('When the event occurred.'),
    data: JobEventData.describe('The job.'),
  })
  .meta({ id: 'JobEvent' });

// The examples of the OpenAPI document: a job that was just created, one that runs, and one that has ended.

export const NEW_JOB_EXAMPLE = {
  id: 'job_3VqTb8yWm2LkR0sXcE9a1D',
  state: 'queued',
  reason: null,
  channel: null,
  playlist: null,
  request: { ...storedForm(JobFields, { channel: '@harbourlight', languages: ['en', 'de'] }), videos: null },
  labels: {},
  keep: 'off',
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
  hidden: 0,
  createdAt: '2026-11-20T16:00:00.000Z',
  startedAt: null,
  finishedAt: null,
  expiresAt: null,
  checkAgainSeconds: 2,
} satisfies JobDto;

export const RUNNING_JOB_EXAMPLE = {
  ...NEW_JOB_EXAMPLE,
  state: 'running',
  channel: TRANSCRIPTS_EXAMPLE.channel,
  summary: { total: 1480, succeeded: 612, failed: 38, cached: 100, fetched: 512, pending: 830 },
  startedAt: '2026-11-20T16:00:01.000Z',
} satisfies JobDto;

export const CANCELED_JOB_EXAMPLE = {
  ...RUNNING_JOB_EXAMPLE,
  state: 'canceled',
  finishedAt: '2026-11-20T16:21:44.000Z',
  expiresAt: '2026-11-23T16:21:44.000Z',
  checkAgainSeconds: null,
} satisfies JobDto;

export const JOBS_PAGE_EXAMPLE = { jobs: [RUNNING_JOB_EXAMPLE], next: null } satisfies JobsPageDto;

/** Of the two entries of an example. */
export const CURSORS_EXAMPLE = ['1.nB3kQz0A', '2.7tXw_uRe'] as const;

export const RESULTS_EXAMPLE = {
  results: TRANSCRIPTS_EXAMPLE.results.map((entry, index) => ({ position: index + 1, ...entry })),
  next: CURSORS_EXAMPLE[1],
  job: RUNNING_JOB_EXAMPLE,
} satisfies JobResultsDto;

export const RESULTS_LINES_EXAMPLE = [
  ...RESULTS_EXAMPLE.results.map((result, at) => ({
    ...{ type: 'result', cursor: CURSORS_EXAMPLE[at], position: at + 1, result },
  })),
  { type: 'summary', summary: RUNNING_JOB_EXAMPLE.summary, next: CURSORS_EXAMPLE[1], job: RUNNING_JOB_EXAMPLE },
];
