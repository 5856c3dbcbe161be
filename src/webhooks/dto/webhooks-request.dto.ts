import { ApiSchema, getSchemaPath, type ApiOperationOptions } from '@nestjs/swagger';
import { Field, field, Fields, OptionalFields, Picked } from '../../http/routes/field.js';
import { Labels } from '../../jobs/dto/labels.js';
import { CURSOR_KIND } from '../../jobs/results/cursor.js';
import { URL_LENGTH_MAX } from '../webhook-url.js';
import { TEST_EVENT, WEBHOOK_EVENTS, type WebhookEvent } from '../webhook.js';
import { WEBHOOK } from './webhooks-response.dto.js';

const AUTHORIZATION_LENGTH_MAX = 1_000;

@ApiSchema({ name: 'NewWebhookBody' })
export class CreateWebhookDto {
  @Field.text({
    required: true,
    rule: 'a string',
    docs: { format: 'uri', maxLength: URL_LENGTH_MAX },
    description:
      'Where events are sent, by POST. An `https:` URL of a public host, with the port 80, 443 or one above 1023, and without ' +
      'user, password, fragment and API keys of this service.',
    example: WEBHOOK.url,
  })
  url: string;

  @Field.words({
    words: WEBHOOK_EVENTS,
    max: WEBHOOK_EVENTS.length,
    takesText: false,
    description: 'The events to send. By default all of them, including those of later versions.',
  })
  events?: WebhookEvent[];

  @Labels({
    description:
      'Only events of jobs and subscriptions that have all of these `labels` are sent. By default they decide nothing.',
    example: { customer: 'acme' },
  })
  labels?: Labels;

  @Field.text({
    rule: 'a text of 1 to 1000 printable ASCII characters, without spaces at its ends',
    min: 1,
    max: AUTHORIZATION_LENGTH_MAX,
    pattern: /^[!-~](?:[ -~]*[!-~])?$/,
    isStored: true,
    description:
      'The value of the header `Authorization` of each message, for receivers that cannot verify signatures. It is stored encrypted ' +
      'and never returned.',
    example: 'Bearer 0d6f2f5e1c',
  })
  authorization?: string;
}

@ApiSchema({ name: 'WebhookChangeBody' })
export class ChangeWebhookDto extends Fields(
  OptionalFields(Picked(CreateWebhookDto, 'url')),
  OptionalFields(Picked(CreateWebhookDto, 'events', 'labels', 'authorization'), { nullable: true }),
) {}

@ApiSchema({ name: 'WebhookReplayBody' })
export class ReplayDto {
  @field(CURSOR_KIND, {
    required: true,
    description:
      'A `next` or `cursor` of `GET /feed`, after which the entries are sent again; `0` for all that are stored.',
    example: '0',
  })
  after: string;
}

const JOB_EVENT = {
  type: 'job.completed',
  timestamp: '2026-11-20T17:12:00.000Z',
  data: {
    jobId: 'job_7Yd0m3VbQxE2kT9aRuWcLf',
    labels: { user: '42' },
    state: 'completed',
    reason: null,
    channelId: 'UCharbourlight__________',
    summary: { total: 812, succeeded: 790, failed: 22, cached: 40, fetched: 750, pending: 0 },
  },
};

const UPLOAD_EVENT = {
  type: 'upload.ready',
  timestamp: '2026-11-24T09:17:09.000Z',
  data: {
    subscriptionId: 'sub_6NfRk2pVx8ZbQ1mLtY4c9H',
    labels: { user: '42' },
    channel: { id: 'UCharbourlight__________', name: 'Harbour Light Workshop', handle: '@harbourlight' },
    videoId: 'hl-island__',
    url: 'https://www.youtube.com/watch?v=hl-island__',
    title: 'Round the island in the Marigold',
    publishedAt: '2026-11-24T08:30:05Z',
    code: null,
    results: '/subscriptions/sub_6NfRk2pVx8ZbQ1mLtY4c9H/results?after=17.x7Qm2_Zd&limit=1',
  },
};

const QUOTA_EVENT = {
  type: 'quota.threshold',
  timestamp: '2026-11-20T17:12:00.000Z',
  data: { threshold: 80, used: 4003, limit: 5000, period: '2026-11' },
};

const TEST_EVENT_SCHEMA = {
  type: 'object' as const,
  required: ['type', 'timestamp', 'data'],
  properties: {
    type: { type: 'string' as const, enum: [TEST_EVENT] },
    timestamp: { type: 'string' as const, format: 'date-time' },
    data: { type: 'object' as const, required: ['webhookId'], properties: { webhookId: { type: 'string' as const } } },
  },
};

/** The feature that an event is about describes its schema. */
const EVENT_SCHEMAS = ['JobEvent', 'UploadEvent', 'SubscriptionEvent', 'QuotaEvent', 'LibraryEvent'].map((name) => ({
  $ref: getSchemaPath(name),
}));

/** What a webhook is sent, in the OpenAPI document. */
export const EVENT_CALLBACKS: NonNullable<ApiOperationOptions['callbacks']> = {
  jobEvent: {
    '{$request.body#/url}': {
      post: {
        operationId: 'receiveJobEvent',
        summary: 'An event of an archive job, of a subscription, of the quota or of the library, or a test event',
        description:
          'The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` sign the message as Standard Webhooks defines it.',
        security: [],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: { oneOf: [...EVENT_SCHEMAS, TEST_EVENT_SCHEMA] },
              examples: {
                'job.completed': { summary: 'An archive job is completed', value: JOB_EVENT },
                'upload.ready': { summary: 'A new upload has its transcript', value: UPLOAD_EVENT },
                'quota.threshold': { summary: 'The quota is used to 80 %', value: QUOTA_EVENT },
              },
            },
          },
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
