import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ChannelDto, TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/transcripts-response.dto.js';
import {
  JOB_REASONS,
  JOB_STATES,
  ON_QUOTA,
  type Job,
  type JobReason,
  type JobRequest,
  type JobState,
  type JobSummary,
  type OnQuota,
} from '../job.js';
import { toCursor } from '../job.js';

/** The examples of the OpenAPI document: a job that was just created, one that runs, and one that has ended. */
export const NEW_JOB_EXAMPLE = {
  id: 'job_3VqTb8yWm2LkR0sXcE9a1D',
  state: 'queued',
  reason: null,
  channel: null,
  request: { channel: '@harbourlight', languages: ['en', 'de'], limit: null, since: null, onQuota: 'pause' },
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
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

@ApiSchema({ name: 'JobRequest' })
class JobRequestDto implements JobRequest {
  @ApiProperty({
    description: 'The channel as the request named it.',
    example: RUNNING_JOB_EXAMPLE.request.channel,
  })
  channel: string;

  @ApiProperty({
    type: [String],
    description: 'Language codes in order of preference. Empty: the original language of each video.',
    example: RUNNING_JOB_EXAMPLE.request.languages,
  })
  languages: readonly string[];

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 1,
    description: 'The maximum number of uploads. Null: every upload of the channel.',
    example: RUNNING_JOB_EXAMPLE.request.limit,
  })
  limit: number | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Only uploads newer than this video are taken. Null: all.',
    example: RUNNING_JOB_EXAMPLE.request.since,
  })
  since: string | null;

  @ApiProperty({
    enum: ON_QUOTA,
    description: 'What the job does when the monthly quota is used up.',
    example: RUNNING_JOB_EXAMPLE.request.onQuota,
  })
  onQuota: OnQuota;
}

@ApiSchema({ name: 'JobSummary' })
export class JobSummaryDto implements JobSummary {
  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description:
      'The number of listed uploads: `succeeded` + `failed` + `pending`. It grows until the list is complete.',
    example: RUNNING_JOB_EXAMPLE.summary.total,
  })
  total: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Videos with a transcript: `cached` + `fetched`.',
    example: RUNNING_JOB_EXAMPLE.summary.succeeded,
  })
  succeeded: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Videos that have failed for good, the retries of the job included.',
    example: RUNNING_JOB_EXAMPLE.summary.failed,
  })
  failed: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts that were not fetched for this job. They are free.',
    example: RUNNING_JOB_EXAMPLE.summary.cached,
  })
  cached: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts fetched for this job: the number charged to the monthly quota.',
    example: RUNNING_JOB_EXAMPLE.summary.fetched,
  })
  fetched: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Videos that have neither a transcript nor a final error yet.',
    example: RUNNING_JOB_EXAMPLE.summary.pending,
  })
  pending: number;
}

@ApiSchema({ name: 'Job' })
export class JobDto implements Job {
  @ApiProperty({ description: 'The ID of the job.', example: RUNNING_JOB_EXAMPLE.id })
  id: string;

  @ApiProperty({
    enum: JOB_STATES,
    description:
      '`queued`: no work was done yet. `listing`: the list of uploads is being read. `running`: transcripts are being fetched, ' +
      'or the job waits to try failed videos again. `paused`: it waits for what `reason` names and goes on by itself. ' +
      '`completed`, `canceled` and `failed`: it has ended; `canceled` and `failed` jobs can be resumed.',
    example: RUNNING_JOB_EXAMPLE.state,
  })
  state: JobState;

  @ApiProperty({
    type: String,
    enum: [...JOB_REASONS, null],
    nullable: true,
    description:
      'Why the job is paused or has failed. `plan_limit_exceeded`: the quota is used up; a paused job goes on when the month turns or the ' +
      'limit grows. `upstream_blocked`: YouTube blocks the service; the job probes until it is served again. ' +
      '`plan_changed`: the plan does not include archive jobs any more. `channel_not_found`: the channel does not exist.',
    example: RUNNING_JOB_EXAMPLE.reason,
  })
  reason: JobReason | null;

  // Declared in place: in OpenAPI 3.0 a reference to another schema cannot be null.
  @ApiProperty({
    type: 'object',
    nullable: true,
    properties: {
      id: { type: 'string', description: 'The YouTube channel ID.' },
      name: { type: 'string', description: 'The display name of the channel.' },
      handle: {
        type: 'string',
        nullable: true,
        description: 'The handle, including the `@`. Null for the rare channel without one.',
      },
    },
    required: ['id', 'name', 'handle'],
    selfRequired: true,
    description: 'The channel. Null until it was looked up.',
    example: RUNNING_JOB_EXAMPLE.channel,
  })
  channel: ChannelDto | null;

  @ApiProperty({ description: 'The request that created the job.' })
  request: JobRequestDto;

  @ApiProperty({ description: 'Counts of the videos of the job.' })
  summary: JobSummaryDto;

  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'When the job was created.',
    example: RUNNING_JOB_EXAMPLE.createdAt,
  })
  createdAt: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'When the first work on the job began. Null while it is queued.',
    example: RUNNING_JOB_EXAMPLE.startedAt,
  })
  startedAt: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'When the job was completed, canceled or failed. Null before.',
    example: RUNNING_JOB_EXAMPLE.finishedAt,
  })
  finishedAt: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'When the results of the finished job are deleted. Null before it has finished.',
    example: RUNNING_JOB_EXAMPLE.expiresAt,
  })
  expiresAt: string | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: 3600,
    description:
      'Seconds after which it is worthwhile to look at the job again. Null when it has finished; not yet while a canceled job still stores ' +
      'the results of its running slice.',
    example: RUNNING_JOB_EXAMPLE.checkAgainSeconds,
  })
  checkAgainSeconds: number | null;
}

@ApiSchema({ name: 'Jobs' })
export class JobsPageDto {
  @ApiProperty({ type: [JobDto], description: 'Jobs of the organization, newest first.' })
  jobs: JobDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The `after` of the next page. Null on the last page.',
    example: toCursor(RUNNING_JOB_EXAMPLE),
  })
  next: string | null;
}
