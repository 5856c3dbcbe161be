import { DomainError, fixedError, InvalidRequestError } from '../domain/errors.js';

export const WEBHOOK_EVENTS = [
  'job.completed',
  'job.failed',
  'job.paused',
  'job.canceled',
  'upload.ready',
  'upload.failed',
  'subscription.paused',
  'quota.threshold',
  'library.full',
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** The type of the event that `POST /webhooks/:id/test` sends; a webhook receives it whatever its `events` are. */
export const TEST_EVENT = 'webhook.test';

/** Why a webhook was turned off: the receiver responded with 410, or no delivery succeeded for days. */
export const DISABLED_REASONS = ['gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export const DELIVERY_STATES = ['pending', 'succeeded', 'failed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Of one organization. */
export const WEBHOOKS_MAX = 10;

/** How long a repeated request to create a webhook returns its secret. */
export const REPEATED_HOURS = 24;

/** How long both signatures are sent after a rotation. */
export const ROTATION_HOURS = 24;

/** A webhook is turned off when a delivery is given up and none has succeeded for this long. */
export const FAILING_DAYS = 5;

/** How long deliveries are stored that did not succeed, and those that did. */
export const DELIVERY_RETENTION_DAYS = 30;
export const SUCCEEDED_RETENTION_DAYS = 7;

export class WebhookNotFoundError extends fixedError(
  'not_found',
  'Webhook not found. List the webhooks of your organization with GET /webhooks.',
) {}

export class DeliveryNotFoundError extends fixedError(
  'not_found',
  'Delivery not found. List the deliveries of the webhook with GET /webhooks/:id/deliveries.',
) {}

export class WebhookTurnedOffError extends fixedError(
  'conflict',
  'The webhook is turned off. PATCH /webhooks/:id with its url turns it on again.',
) {}

export class DeliveryWaitingError extends fixedError(
  'conflict',
  'The delivery is waiting: it is sent without another request.',
) {}

export class QueueFullError extends fixedError(
  'conflict',
  'The webhook has 1000 waiting deliveries. Retry this one when some of them have ended.',
) {}

export class TooManyWebhooksError extends fixedError(
  'conflict',
  `Your organization has ${WEBHOOKS_MAX} webhooks, which is the maximum. Delete one first.`,
) {}

/** The service has no key for the secrets of webhooks. */
export class WebhooksDisabledError extends fixedError(
  'conflict',
  'Webhooks are disabled on this service. Its operator enables them by setting WEBHOOK_SECRET_KEY to 32 or more random ' +
    'characters (openssl rand -hex 32).',
) {}

/** The secret, or the value of the header, is encrypted with a key that this process does not have. */
export class UnreadableSecretError extends DomainError {
  constructor(message = 'The secret of this webhook cannot be read any more. Rotate it to get a new one.') {
    super('conflict', message);
  }
}

export class InvalidUrlError extends InvalidRequestError {
  /** @param message what is wrong with the field `url` */
  constructor(message: string) {
    super([{ field: 'url', message }]);
  }
}
