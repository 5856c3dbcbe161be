import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { JobSummaryDto } from './job.dto.js';

/** The states whose beginning is an event for webhooks, by the database function `job_store`. */
const REPORTED_STATES = ['completed', 'failed', 'paused', 'canceled'] as const;

@ApiSchema({ name: 'JobEventData' })
class JobEventDataDto {
  @ApiProperty({ description: 'The ID of the job: its results are at `GET /jobs/{id}/results`.' })
  jobId: string;

  @ApiProperty({ enum: REPORTED_STATES, description: 'The state that the job has entered.' })
  state: string;

  @ApiProperty({ type: String, nullable: true, description: 'As `reason` of the job. Null when the state has none.' })
  reason: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'The ID of the channel. Null when it was not found yet.' })
  channelId: string | null;

  @ApiProperty({ description: 'The counts of the job when the event occurred.' })
  summary: JobSummaryDto;
}

/** The body of a message to a webhook about a job. */
@ApiSchema({ name: 'JobEvent' })
export class JobEventDto {
  @ApiProperty({ enum: REPORTED_STATES.map((state) => `job.${state}`), description: 'The event.' })
  type: string;

  @ApiProperty({ format: 'date-time', description: 'When the event occurred.' })
  timestamp: string;

  @ApiProperty({ description: 'The job.' })
  data: JobEventDataDto;
}
