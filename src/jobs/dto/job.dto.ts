import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import {
  countField,
  dateTime,
  dateTimeOrNull,
  objectOrNull,
  PageDto,
  textOrNull,
} from '../../http/routes/response-docs.js';
import { TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/api-transcripts.js';
import {
  CHANNEL_PROPERTIES,
  ChannelDto,
  EntryDto,
  PLAYLIST_PROPERTIES,
  PlaylistDto,
} from '../../transcripts/dto/transcripts-response.dto.js';
import { StoredFields } from '../../http/routes/field.js';
import { storedForm } from '../../http/routes/validation.js';
import { JOB_STATES, type JobState } from '../job-states.js';
import { JOB_REASONS, type JobReason } from '../job.js';
import { JobFields } from './jobs-request.dto.js';

/** The examples of the OpenAPI document: a job that was just created, one that runs, and one that has ended. */
export const NEW_JOB_EXAMPLE = {
  id: 'job_3VqTb8yWm2LkR0sXcE9a1D',
  state: 'queued',
  reason: null,
  channel: null,
  playlist: null,
  request: { ...storedForm(JobFields, { channel: '@harbourlight', languages: ['en', 'de'] }), videos: null },
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

/** `total = succeeded + failed + pending` and `succeeded = cached + fetched` hold at any moment. */
@ApiSchema({ name: 'JobSummary' })
export class JobSummaryDto {
  @ApiProperty(
    countField('The number of listed videos: `succeeded` + `failed` + `pending`. It grows until the list is complete.'),
  )
  total: number;

  @ApiProperty(countField('Videos with a transcript: `cached` + `fetched`.'))
  succeeded: number;

  @ApiProperty(countField('Videos that have failed for good, the retries of the job included.'))
  failed: number;

  @ApiProperty(countField('Transcripts that were not fetched for this job. They are free.'))
  cached: number;

  @ApiProperty(countField('Transcripts fetched for this job: the number charged to the monthly quota.'))
  fetched: number;

  @ApiProperty(countField('Videos that have neither a transcript nor a final error yet.'))
  pending: number;
}

/** An archive job. Times are ISO 8601 in UTC. */
@ApiSchema({ name: 'Job' })
export class JobDto {
  @ApiProperty({ description: 'The ID of the job.' })
  id: string;

  @ApiProperty({
    enum: JOB_STATES,
    description:
      '`queued`: no work was done yet. `listing`: the list of videos is being read. `running`: transcripts are being fetched, ' +
      'or the job waits to try failed videos again. `paused`: it waits for what `reason` names and goes on by itself. ' +
      '`completed`, `canceled` and `failed`: it has ended; `canceled` and `failed` jobs can be resumed.',
  })
  state: JobState;

  @ApiProperty({
    type: String,
    enum: [...JOB_REASONS, null],
    nullable: true,
    description:
      'Why the job is paused or has failed. `plan_limit_exceeded`: the quota, or what the key of the job may use of it, is used up; a paused job goes on ' +
      'when the month turns or the limit of the organization grows. `upstream_blocked`: YouTube blocks the service; the job probes until it is served again. ' +
      '`plan_changed`: the plan does not include archive jobs any more. `list_incomplete`: the list of YouTube ended before the number ' +
      'of videos that it states; what was listed is read, and the list is read again later. `channel_not_found`, `playlist_not_found`: the channel or the playlist does not exist.',
  })
  reason: JobReason | null;

  @ApiProperty(
    objectOrNull('The channel. Null until it was looked up, and for a job that names none.', CHANNEL_PROPERTIES),
  )
  channel: ChannelDto | null;

  @ApiProperty(
    objectOrNull('The playlist. Null until it was looked up, and for a job that names none.', PLAYLIST_PROPERTIES),
  )
  playlist: PlaylistDto | null;

  @ApiProperty({ description: 'The request that created the job.' })
  request: JobRequestDto;

  @ApiProperty({ description: 'Counts of the videos of the job.' })
  summary: JobSummaryDto;

  @ApiProperty(
    countField(
      'How many videos YouTube counts in the list beyond those that it lists, when it was last read to its end. They are ' +
        'hidden, or the list ended early: then the job is paused with `list_incomplete`, and read again until three reads ' +
        'over at least an hour have ended at the same video.',
    ),
  )
  hidden: number;

  @ApiProperty(dateTime('When the job was created.'))
  createdAt: string;

  @ApiProperty(dateTimeOrNull('When the first work on the job began. Null while it is queued.'))
  startedAt: string | null;

  @ApiProperty(dateTimeOrNull('When the job was completed, canceled or failed. Null before.'))
  finishedAt: string | null;

  @ApiProperty(dateTimeOrNull('When the results of the finished job are deleted. Null before it has finished.'))
  expiresAt: string | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: 3600,
    description:
      'Seconds after which it is worthwhile to look at the job again. Null when it has finished; not yet while a canceled job still stores ' +
      'the results of its running slice.',
  })
  checkAgainSeconds: number | null;
}

@ApiSchema({ name: 'Jobs' })
export class JobsPageDto extends PageDto {
  @ApiProperty({ type: [JobDto], description: 'Jobs of the organization, newest first.' })
  jobs: JobDto[];
}

@ApiSchema({ name: 'JobVideoTranscript' })
class JobEntryDto extends EntryDto {
  @ApiProperty({ type: 'integer', minimum: 1, description: 'The place of the video in the list of the job.' })
  position: number;
}

/** The example of the OpenAPI document: the first two entries of a running job. */
export const RESULTS_EXAMPLE = {
  results: TRANSCRIPTS_EXAMPLE.results.map((entry, index) => ({ position: index + 1, ...entry })),
  next: 2,
  job: RUNNING_JOB_EXAMPLE,
} satisfies JobResultsDto;

export const RESULTS_LINES_EXAMPLE = [
  ...RESULTS_EXAMPLE.results.map((result, at) => ({ type: 'result', cursor: at + 1, position: at + 1, result })),
  { type: 'summary', summary: RUNNING_JOB_EXAMPLE.summary, next: 2, job: RUNNING_JOB_EXAMPLE },
];

/** Written as text by `ResultsResponse`, because stored entries are already JSON. */
@ApiSchema({ name: 'JobResults' })
export class JobResultsDto {
  @ApiProperty({
    type: [JobEntryDto],
    description: 'Entries of the job in the order in which they became final.',
  })
  results: JobEntryDto[];

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 0,
    description:
      'The `after` of the next page. Null at the end of a finished job only: while the job runs, request `after=next` again ' +
      'later.',
  })
  next: number | null;

  @ApiProperty({ description: 'The job at the time of the last entry.' })
  job: JobDto;
}

/** The states whose beginning is an event for webhooks, by the database function `job_changed`. */
const REPORTED_STATES = ['completed', 'failed', 'paused', 'canceled'] as const;

@ApiSchema({ name: 'JobEventData' })
class JobEventDataDto {
  @ApiProperty({ description: 'The ID of the job: its results are at `GET /jobs/{id}/results`.' })
  jobId: string;

  @ApiProperty({ enum: REPORTED_STATES, description: 'The state that the job has entered.' })
  state: string;

  @ApiProperty(textOrNull('As `reason` of the job. Null when the state has none.'))
  reason: string | null;

  @ApiProperty(textOrNull('The ID of the channel. Null when it was not found yet, and for a job that names none.'))
  channelId: string | null;

  @ApiProperty({ description: 'The counts of the job when the event occurred.' })
  summary: JobSummaryDto;
}

/** The body of a message to a webhook about a job. */
@ApiSchema({ name: 'JobEvent' })
export class JobEventDto {
  @ApiProperty({ enum: REPORTED_STATES.map((state) => `job.${state}`), description: 'The event.' })
  type: string;

  @ApiProperty(dateTime('When the event occurred.'))
  timestamp: string;

  @ApiProperty({ description: 'The job.' })
  data: JobEventDataDto;
}
