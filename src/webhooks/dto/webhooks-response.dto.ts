import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { countField, dateTime, dateTimeOrNull, PageDto, textOrNull } from '../../http/routes/response-docs.js';
import {
  DELIVERY_RETENTION_DAYS,
  DELIVERY_STATES,
  DISABLED_REASONS,
  FAILING_DAYS,
  ROTATION_HOURS,
  WEBHOOK_EVENTS,
  type DeliveryState,
  type DisabledReason,
  type WebhookEvent,
} from '../webhook.js';

@ApiSchema({ name: 'Webhook' })
export class WebhookDto {
  @ApiProperty({ description: 'The ID of the webhook.' })
  id: string;

  @ApiProperty({ format: 'uri', description: 'Where events are sent.' })
  url: string;

  @ApiProperty({
    type: 'array',
    items: { type: 'string', enum: [...WEBHOOK_EVENTS] },
    nullable: true,
    description: 'The events that are sent. Null: all of them, including those of later versions.',
  })
  events: WebhookEvent[] | null;

  @ApiProperty(dateTime('When the webhook was created.'))
  createdAt: Date;

  @ApiProperty(
    dateTimeOrNull(
      `When the secret before the last rotation stops signing, ${ROTATION_HOURS} hours after it. Null when one secret signs.`,
    ),
  )
  previousSecretUntil: Date | null;

  @ApiProperty(
    dateTimeOrNull('The first failed attempt since the last successful one. Null when the last attempt succeeded.'),
  )
  failingSince: Date | null;

  @ApiProperty(dateTimeOrNull('When the webhook was turned off; only test events are sent to it. Null while it is on.'))
  disabledAt: Date | null;

  @ApiProperty({
    enum: [...DISABLED_REASONS, null],
    type: String,
    nullable: true,
    description: `Why it was turned off: \`gone\` (the receiver responded with 410) or \`failing\` (a delivery was given up and none had succeeded for ${FAILING_DAYS} days).`,
  })
  disabledReason: DisabledReason | null;
}

@ApiSchema({ name: 'WebhookWithSecret' })
export class WebhookWithSecretDto extends WebhookDto {
  @ApiProperty({
    description:
      'The secret that signs the deliveries (Standard Webhooks). It is returned only once, except to a repeated request with the same `Idempotency-Key`.',
  })
  secret: string;
}

@ApiSchema({ name: 'Webhooks' })
export class WebhooksDto {
  @ApiProperty({ type: [WebhookDto], description: 'All webhooks of the organization, oldest first.' })
  webhooks: WebhookDto[];
}

const responseStatus = {
  type: 'integer',
  nullable: true,
  description: 'The HTTP status of the response. Null when there was none.',
} as const;
const durationMs = countField('How long the last attempt took, in milliseconds.');

@ApiSchema({ name: 'WebhookTestResult' })
export class TestResultDto {
  @ApiProperty({ description: 'Whether the receiver responded with a status from 200 to 299.' })
  delivered: boolean;

  @ApiProperty(responseStatus)
  responseStatus: number | null;

  @ApiProperty(textOrNull('Why the attempt failed. Null when it succeeded.'))
  error: string | null;

  @ApiProperty(durationMs)
  durationMs: number;
}

@ApiSchema({ name: 'WebhookDelivery' })
export class DeliveryDto {
  @ApiProperty({ description: 'The ID of the delivery, sent as `webhook-id` in each of its attempts.' })
  id: string;

  @ApiProperty({ description: 'The event.' })
  type: string;

  @ApiProperty({
    enum: DELIVERY_STATES,
    description:
      '`pending` until an attempt succeeds (`succeeded`), or none will be made any more (`failed`): the last one failed, the ' +
      'webhook was turned off, or it had too many waiting deliveries.',
  })
  state: DeliveryState;

  @ApiProperty(dateTime('When the event occurred.'))
  createdAt: Date;

  @ApiProperty(countField('The number of attempts so far.'))
  attempts: number;

  @ApiProperty(dateTimeOrNull('When the last attempt ended. Null before the first one has.'))
  lastAttemptAt: Date | null;

  @ApiProperty(
    dateTimeOrNull('When the next attempt is due; a failing webhook can wait longer. Null when none will be made.'),
  )
  nextAttemptAt: Date | null;

  @ApiProperty(responseStatus)
  responseStatus: number | null;

  @ApiProperty(
    textOrNull(
      'Why the last attempt failed, or why no further one is made. Null when it succeeded, and before the first one.',
    ),
  )
  error: string | null;

  @ApiProperty({ ...durationMs, nullable: true })
  durationMs: number | null;
}

@ApiSchema({ name: 'WebhookDeliveriesPage' })
export class DeliveriesPageDto extends PageDto {
  @ApiProperty({
    type: [DeliveryDto],
    description: `The deliveries of the last ${DELIVERY_RETENTION_DAYS} days, newest first.`,
  })
  deliveries: DeliveryDto[];
}

// The examples of the OpenAPI document.

export const WEBHOOK: WebhookDto = {
  id: 'whk_0a1b2c3d4e5f6a7b8c9d0e1f',
  url: 'https://app.example.com/hooks/transcripts',
  events: ['job.completed', 'job.failed'],
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

export const DELIVERIES: DeliveriesPageDto = {
  deliveries: [
    {
      id: 'msg_5b1f0c9e7d8a4e3fb2c1a09f8e7d6c5b',
      type: 'job.completed',
      state: 'pending',
      createdAt: new Date('2026-11-20T17:12:00.000Z'),
      attempts: 2,
      lastAttemptAt: new Date('2026-11-20T17:12:05.900Z'),
      nextAttemptAt: new Date('2026-11-20T17:17:03.100Z'),
      responseStatus: 503,
      error: 'The receiver responded with 503.',
      durationMs: 91,
    },
  ],
  next: null,
};
