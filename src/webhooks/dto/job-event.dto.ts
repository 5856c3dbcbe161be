import { ApiProperty, ApiSchema, getSchemaPath, type ApiOperationOptions } from '@nestjs/swagger';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../webhook.js';

const count = (description: string) => ({ type: 'integer', minimum: 0, description }) as const;

@ApiSchema({ name: 'JobEventSummary' })
class JobEventSummaryDto {
  @ApiProperty(count('The number of listed uploads: `succeeded` + `failed` + `pending`.'))
  total: number;

  @ApiProperty(count('Videos with a transcript: `cached` + `fetched`.'))
  succeeded: number;

  @ApiProperty(count('Videos that have failed for good.'))
  failed: number;

  @ApiProperty(count('Transcripts that were not fetched for this job. They are free.'))
  cached: number;

  @ApiProperty(count('Transcripts fetched for this job: the number charged to the monthly quota.'))
  fetched: number;

  @ApiProperty(count('Videos that have neither a transcript nor a final error yet.'))
  pending: number;
}

@ApiSchema({ name: 'JobEventData' })
class JobEventDataDto {
  @ApiProperty({ description: 'The ID of the job: its results are at `GET /jobs/{id}/results`.' })
  jobId: string;

  @ApiProperty({
    enum: WEBHOOK_EVENTS.map((event) => event.slice('job.'.length)),
    description: 'The state that the job has entered.',
  })
  state: string;

  @ApiProperty({ type: String, nullable: true, description: 'As `reason` of the job. Null when the state has none.' })
  reason: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'The ID of the channel. Null when it was not found yet.' })
  channelId: string | null;

  @ApiProperty({ description: 'The counts of the job when the event occurred.' })
  summary: JobEventSummaryDto;
}

/** The body of a message about an archive job, as the database function `job_store` writes it. */
@ApiSchema({ name: 'JobEvent' })
export class JobEventDto {
  @ApiProperty({ enum: WEBHOOK_EVENTS, description: 'The event.' })
  type: WebhookEvent;

  @ApiProperty({ format: 'date-time', description: 'When the event occurred.' })
  timestamp: string;

  @ApiProperty({ description: 'The job.' })
  data: JobEventDataDto;
}

const JOB_EVENT: JobEventDto = {
  type: 'job.completed',
  timestamp: '2026-11-20T17:12:00.000Z',
  data: {
    jobId: 'job_7Yd0m3VbQxE2kT9aRuWcLf',
    state: 'completed',
    reason: null,
    channelId: 'UCharbourlight__________',
    summary: { total: 812, succeeded: 790, failed: 22, cached: 40, fetched: 750, pending: 0 },
  },
};

/** What a webhook is sent, in the OpenAPI document. */
export const JOB_EVENT_CALLBACKS: NonNullable<ApiOperationOptions['callbacks']> = {
  jobEvent: {
    '{$request.body#/url}': {
      post: {
        operationId: 'receiveJobEvent',
        summary: 'An event of an archive job',
        description:
          'The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` sign the message as Standard Webhooks defines it. ' +
          'A test event (`webhook.test`) has the ID of the webhook as `data.webhookId` instead.',
        security: [],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: getSchemaPath(JobEventDto) }, example: JOB_EVENT } },
        },
        responses: {
          '2XX': { description: 'The receiver has accepted the event.' },
          '410': { description: 'The webhook is turned off.' },
          '4XX': { description: 'The event is sent again later, as after any other status.' },
        },
      },
    },
  },
};
