import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { IsIn, IsString } from 'class-validator';
import { Optional } from '../../../http/validation.js';
import { JobDto, RUNNING_JOB_EXAMPLE } from '../../../jobs/dto/job.dto.js';
import { JOB_STATES, type JobState } from '../../../jobs/job.js';
import type { JobStats, OperatedJob } from '../../../jobs/job-overview.js';
import { PageQueryDto } from './requests.dto.js';
import { KEY, ORGANIZATION } from './responses.dto.js';

const count = (description: string) => ({ type: 'integer', minimum: 0, description }) as const;

export class AdminJobsQueryDto extends PageQueryDto {
  @ApiPropertyOptional({
    type: 'string',
    description: 'The ID of an organization: only its jobs. By default those of all organizations.',
    example: ORGANIZATION.id,
  })
  @Optional()
  @IsString({ message: 'organization must be the ID of an organization, given once.' })
  organization?: string;

  @ApiPropertyOptional({
    enum: JOB_STATES,
    description: 'Only the jobs in this state. By default those in every state.',
    example: 'running',
  })
  @Optional()
  @IsIn(JOB_STATES, { message: `state must be one of ${JOB_STATES.join(', ')}, given once.` })
  state?: JobState;
}

@ApiSchema({ name: 'AdminJob' })
export class AdminJobDto extends JobDto implements OperatedJob {
  @ApiProperty({ description: 'The ID of the organization that the job belongs to.' })
  organizationId: string;

  @ApiProperty({ description: 'The ID of the key that created the job.' })
  keyId: string;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 0,
    description: 'How long the next slice of the job has been due without running, in seconds. Null when none is due.',
  })
  overdueSeconds: number | null;
}

@ApiSchema({ name: 'AdminJobsPage' })
export class AdminJobsPageDto {
  @ApiProperty({ type: [AdminJobDto], description: 'The jobs, newest first.' })
  jobs: AdminJobDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The value of `after` for the next page. Null on the last page.',
  })
  next: string | null;
}

@ApiSchema({ name: 'JobCounts' })
class JobCountsDto implements Record<JobState, number> {
  @ApiProperty(count('Jobs on which no work was done yet.'))
  queued: number;

  @ApiProperty(count('Jobs whose list of uploads is being read.'))
  listing: number;

  @ApiProperty(count('Jobs whose transcripts are being fetched, or that wait to try failed videos again.'))
  running: number;

  @ApiProperty(count('Jobs that wait for what their `reason` names.'))
  paused: number;

  @ApiProperty(count('Completed jobs whose results or state are still stored.'))
  completed: number;

  @ApiProperty(count('Canceled jobs whose results or state are still stored.'))
  canceled: number;

  @ApiProperty(count('Failed jobs whose results or state are still stored.'))
  failed: number;
}

@ApiSchema({ name: 'JobSlices' })
class JobSlicesDto {
  @ApiProperty(count('Slices of jobs (up to 25 videos, or a page of the list) that are being worked on.'))
  running: number;

  @ApiProperty(count('Slices of jobs that are due and wait for a worker.'))
  due: number;

  @ApiProperty(count('How long the oldest due slice has waited, in seconds.'))
  oldestDueSeconds: number;
}

@ApiSchema({ name: 'JobStats' })
export class JobStatsDto implements JobStats {
  @ApiProperty({ description: 'The number of jobs in each state.' })
  jobs: JobCountsDto;

  @ApiProperty({ description: 'The work that is done and that waits.' })
  slices: JobSlicesDto;

  @ApiProperty(count('Videos of unfinished jobs that have neither a transcript nor a final error yet.'))
  pendingVideos: number;

  @ApiProperty(count('The size of the stored results, in bytes.'))
  storedBytes: number;

  @ApiProperty({
    type: [AdminJobDto],
    description:
      'Jobs that do not move: their next slice has been due for more than 5 minutes and is not being worked on. The most overdue ' +
      'first, 20 at most.',
  })
  stuck: AdminJobDto[];
}

// The examples of the OpenAPI document.

export const ADMIN_JOB: AdminJobDto = {
  ...RUNNING_JOB_EXAMPLE,
  organizationId: ORGANIZATION.id,
  keyId: KEY.id,
  overdueSeconds: null,
};

export const CANCELED_ADMIN_JOB: AdminJobDto = {
  ...ADMIN_JOB,
  state: 'canceled',
  finishedAt: '2026-11-20T16:21:44.000Z',
  expiresAt: '2026-11-23T16:21:44.000Z',
  checkAgainSeconds: null,
};

export const JOB_STATS: JobStatsDto = {
  jobs: { queued: 1, listing: 0, running: 3, paused: 1, completed: 41, canceled: 2, failed: 0 },
  slices: { running: 2, due: 1, oldestDueSeconds: 4 },
  pendingVideos: 2310,
  storedBytes: 734003200,
  stuck: [],
};
