import { getSchemaPath, type ApiOperationOptions } from '@nestjs/swagger';

const JOB_EVENT = {
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

/** What a webhook is sent, in the OpenAPI document. The feature that an event is about describes its schema. */
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
          content: { 'application/json': { schema: { $ref: getSchemaPath('JobEvent') }, example: JOB_EVENT } },
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
