import { z } from 'zod';
import { page } from '../../domain/page.js';
import { count, textOrNull } from '../../domain/schema-fields.js';
import {
  DELIVERY_RETENTION_DAYS,
  DELIVERY_STATES,
  DISABLED_REASONS,
  FAILING_DAYS,
  ROTATION_HOURS,
  SUCCEEDED_RETENTION_DAYS,
  WEBHOOK_EVENTS,
} from '../webhook.js';

export const WebhookDto = z
  .object({
    id: z.string().describe('The ID of the webhook.'),
    url: z.string().meta({ format: 'uri', description: 'Where events are sent.' }),
    events: z
      .array(z.enum(WEBHOOK_EVENTS))
      .nullable()
      .describe('The events that are sent. Null: all of them, including those of later versions.'),
    labels: z
      .record(z.string(), z.string())
      .describe(
        'Only events of jobs and subscriptions that have all of these labels are sent. Empty: they decide nothing.',
      ),
    hasAuthorization: z
      .boolean()
      .describe('Whether messages have a header `Authorization`, whose value is not returned.'),
    replaying: z
      .boolean()
      .describe('Whether entries of the feed are being sent again. Those that become final meanwhile follow them.'),
    createdAt: z.date().describe('When the webhook was created.'),
    previousSecretUntil: z
      .date()
      .nullable()
      .describe(
        `When the secret before the last rotation stops signing, ${ROTATION_HOURS} hours after it. Null when one secret signs.`,
      ),
    failingSince: z
      .date()
      .nullable()
      .describe('The first failed attempt since the last successful one. Null when the last attempt succeeded.'),
    disabledAt: z
      .date()
      .nullable()
      .describe('When the webhook was turned off; only test events are sent to it. Null while it is on.'),
    disabledReason: z
      .enum(DISABLED_REASONS)
      .nullable()
      .describe(
        `Why it was turned off: \`gone\` (the receiver responded with 410) or \`failing\` (a delivery was given up and none had succeeded for ${FAILING_DAYS} days).`,
      ),
  })
  .meta({ id: 'Webhook' });
export type WebhookDto = z.infer<typeof WebhookDto>;

export const WebhookWithSecretDto = WebhookDto.extend({
  secret: z
    .string()
    .describe(
      'The secret that signs the deliveries (Standard Webhooks). It is returned only once, except to a repeated request with the same `Idempotency-Key`.',
    ),
}).meta({ id: 'WebhookWithSecret' });
export type WebhookWithSecretDto = z.infer<typeof WebhookWithSecretDto>;

export const WebhooksDto = z
  .object({ webhooks: z.array(WebhookDto).describe('All webhooks of the organization, oldest first.') })
  .meta({ id: 'Webhooks' });
export type WebhooksDto = z.infer<typeof WebhooksDto>;

const responseStatus = z.int().nullable().describe('The HTTP status of the response. Null when there was none.');
const durationMs = count('How long the last attempt took, in milliseconds.');

export const TestResultDto = z
  .object({
    delivered: z.boolean().describe('Whether the receiver responded with a status from 200 to 299.'),
    responseStatus,
    error: textOrNull('Why the attempt failed. Null when it succeeded.'),
    durationMs,
  })
  .meta({ id: 'WebhookTestResult' });
export type TestResultDto = z.infer<typeof TestResultDto>;

export const DeliveryDto = z
  .object({
    id: z.string().describe('The ID of the delivery.'),
    eventId: z
      .string()
      .describe(
        'The ID of the event, sent as `webhook-id` in each attempt. A replay sends the events with the same IDs again.',
      ),
    jobId: textOrNull('The job that the event is about.'),
    subscriptionId: textOrNull('The subscription that the event is about.'),
    videoId: textOrNull('The upload that the event is about.'),
    type: z.string().describe('The event.'),
    state: z
      .enum(DELIVERY_STATES)
      .describe(
        '`pending` until an attempt succeeds (`succeeded`), or none will be made any more (`failed`): the last one failed, the ' +
          'webhook was turned off, or it had too many waiting deliveries.',
      ),
    createdAt: z.date().describe('When the delivery was stored.'),
    attempts: count('The number of attempts so far, since it was last requested to be sent again.'),
    lastAttemptAt: z.date().nullable().describe('When the last attempt ended. Null before the first one has.'),
    nextAttemptAt: z
      .date()
      .nullable()
      .describe('When the next attempt is due; a failing webhook can wait longer. Null when none will be made.'),
    responseStatus,
    error: textOrNull(
      'Why the last attempt failed, or why no further one is made. Null when it succeeded, and before the first one.',
    ),
    durationMs: durationMs.nullable(),
  })
  .meta({ id: 'WebhookDelivery' });
export type DeliveryDto = z.infer<typeof DeliveryDto>;

export const DeliveriesPageDto = page
  .extend({
    deliveries: z
      .array(DeliveryDto)
      .describe(
        `The deliveries, newest first: those that succeeded of the last ${SUCCEEDED_RETENTION_DAYS} days, others of ${DELIVERY_RETENTION_DAYS}.`,
      ),
  })
  .meta({ id: 'WebhookDeliveriesPage' });
export type DeliveriesPageDto = z.infer<typeof DeliveriesPageDto>;

// The examples of the OpenAPI document.

export const WEBHOOK: WebhookDto = {
  id: 'whk_0a1b2c3d4e5f6a7b8c9d0e1f',
  url: 'https://app.example.com/hooks/transcripts',
  events: ['job.completed', 'job.failed'],
  labels: { customer: 'acme' },
  hasAuthorization: false,
  replaying: false,
  createdAt: new Date('2026-11-20T16:00:00.000Z'),
  previousSecretUntil: null,
  failingSince: null,
  disabledAt: null,
  disabledReason: null,
};

export const WEBHOOKS: WebhooksDto = { webhooks: [WEBHOOK] };

export const WEBHOOK_WITH_SECRET: WebhookWithSecretDto = {
  ...WEBHOOK,
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwYTZxAbNxQYQ=',
};

export const ROTATED_WEBHOOK: WebhookWithSecretDto = {
  ...WEBHOOK_WITH_SECRET,
  previousSecretUntil: new Date('2026-11-22T09:30:00.000Z'),
};

export const TEST_RESULT: TestResultDto = {
  delivered: false,
  responseStatus: 500,
  error: 'The receiver responded with 500.',
  durationMs: 184,
};

export const DELIVERY: DeliveryDto = {
  id: 'dlv_019aa2f3c1a07b1f8e2d5c4b3a291807',
  eventId: 'msg_5b1f0c9e7d8a4e3fb2c1a09f8e7d6c5b',
  jobId: 'job_7Yd0m3VbQxE2kT9aRuWcLf',
  subscriptionId: null,
  videoId: null,
  type: 'job.completed',
  state: 'pending',
  createdAt: new Date('2026-11-20T17:12:00.000Z'),
  attempts: 2,
  lastAttemptAt: new Date('2026-11-20T17:12:05.900Z'),
  nextAttemptAt: new Date('2026-11-20T17:17:03.100Z'),
  responseStatus: 503,
  error: 'The receiver responded with 503.',
  durationMs: 91,
};

export const DELIVERIES: DeliveriesPageDto = { deliveries: [DELIVERY], next: null };
