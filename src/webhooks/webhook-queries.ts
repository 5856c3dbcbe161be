import type { DeliveryState, DisabledReason, WebhookEvent } from './webhook.js';

export interface WebhookRow {
  id: string;
  url: string;
  events: WebhookEvent[] | null;
  secret: Buffer;
  previous_secret: Buffer | null;
  previous_secret_until: Date | null;
  created_at: Date;
  failing_since: Date | null;
  disabled_at: Date | null;
  disabled_reason: DisabledReason | null;
}

// The old secret of a rotation that has ended is not returned, whether or not it was removed yet.
const WEBHOOK = `
  id, url, events, secret, created_at, failing_since, disabled_at, disabled_reason,
  CASE WHEN previous_secret_until > quota_now() THEN previous_secret END AS previous_secret,
  CASE WHEN previous_secret_until > quota_now() THEN previous_secret_until END AS previous_secret_until`;

/** A created webhook. With the outcome `too_many` none was created, and its columns are null. */
export type CreatedRow = { outcome: 'too_many' } | (WebhookRow & { outcome: 'created' });

/** $1 id, $2 organization, $3 URL, $4 events, $5 stored secret, $6 most webhooks. No row: the organization was deleted. */
export const CREATE = `
  SELECT outcome, ${WEBHOOK}
    FROM (SELECT result.outcome, (result.webhook).* FROM webhook_create($1, $2, $3, $4, $5, $6) result) created`;

export const LIST = `SELECT ${WEBHOOK} FROM webhooks WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY created_at, id`;

export const FIND = `SELECT ${WEBHOOK} FROM webhooks WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL`;

/** Its deliveries are removed later, in batches. */
export const DELETE = `
  UPDATE webhooks SET deleted_at = quota_now()
    WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL RETURNING id`;

/** $3 new stored secret, $4 hours for which the old one signs too, $5 IDs of the keys of this process: it can read the old one. */
export const ROTATE = `
  UPDATE webhooks
    SET previous_secret = CASE WHEN substr(secret, 1, 8) = ANY ($5::bytea[]) THEN secret END,
        previous_secret_until =
          CASE WHEN substr(secret, 1, 8) = ANY ($5::bytea[]) THEN quota_now() + make_interval(hours => $4) END,
        secret = $3
    WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL RETURNING ${WEBHOOK}`;

export interface DeliveryRow {
  id: string;
  type: string;
  state: DeliveryState;
  created_at: Date;
  attempts: number;
  last_attempt_at: Date | null;
  next_attempt_at: Date | null;
  response_status: number | null;
  error: string | null;
  duration_ms: number | null;
}

const DELIVERY = `
  id, type, state, created_at, attempts, last_attempt_at, next_attempt_at, response_status, error, duration_ms`;

/** $1 webhook, $2 count, $3 the delivery before the page; null for the first page. */
export const DELIVERIES = `
  SELECT ${DELIVERY} FROM webhook_deliveries
    WHERE webhook_id = $1 AND ($3::text IS NULL
      OR (created_at, id) < (SELECT created_at, id FROM webhook_deliveries WHERE id = $3 AND webhook_id = $1))
    ORDER BY created_at DESC, id DESC LIMIT $2`;

export const DELIVERY_EXISTS = 'SELECT FROM webhook_deliveries WHERE id = $1 AND webhook_id = $2';

export interface ClaimedRow {
  delivery_id: string;
  webhook_id: string;
  organization_id: string;
  url: string;
  type: string;
  /** JSON. */
  data: string;
  created_at: Date;
  attempts: number;
  secret: Buffer;
  previous_secret: Buffer | null;
}

/** $1 claim, $2 most deliveries, $3 seconds of the lease, $4 IDs of the encryption keys of this process. */
export const CLAIM = 'SELECT * FROM webhook_claim($1, $2, $3, $4)';

export interface RecordedRow {
  /** False when the delivery was claimed again or removed meanwhile. */
  recorded: boolean;
  disabled: DisabledReason | null;
}

/** $1 delivery, $2 claim, $3 outcome, $4 status, $5 error, $6 ms, $7 seconds until the next attempt, $8 seconds of failing. */
export const RECORD = 'SELECT * FROM webhook_record($1, $2, $3, $4, $5, $6, $7, $8)';

/** Gives a claimed delivery back that was not attempted to its end. */
export const RELEASE = `
  UPDATE webhook_deliveries SET claim = NULL, next_attempt_at = quota_now() WHERE id = $1 AND claim = $2`;

/** $1 days, $2 most rows. */
export const REMOVE_OLD = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE created_at < quota_now() - make_interval(days => $1)
      ORDER BY created_at LIMIT $2)`;

export const DELETE_OF_DELETED_ORGANIZATIONS = `
  UPDATE webhooks SET deleted_at = quota_now()
    WHERE deleted_at IS NULL AND organization_id IN (SELECT id FROM organizations WHERE deleted_at IS NOT NULL)`;

/** Deliveries of deleted webhooks; $1 most rows. */
export const REMOVE_OF_DELETED_WEBHOOKS = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT delivery.id FROM webhooks webhook CROSS JOIN LATERAL (
      SELECT id FROM webhook_deliveries WHERE webhook_id = webhook.id ORDER BY created_at, id LIMIT $1) delivery
    WHERE webhook.deleted_at IS NOT NULL LIMIT $1)`;

/** Deliveries of events that occurred while their webhook was turned off. */
export const END_OF_DISABLED_WEBHOOKS = `
  UPDATE webhook_deliveries
    SET state = 'failed', next_attempt_at = NULL, claim = NULL, error = 'The webhook was turned off.'
    WHERE next_attempt_at IS NOT NULL AND webhook_id IN (SELECT id FROM webhooks WHERE disabled_at IS NOT NULL)`;

export const REMOVE_DELETED = `
  DELETE FROM webhooks webhook WHERE deleted_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE webhook_id = webhook.id)`;

export const REMOVE_OLD_SECRETS = `
  UPDATE webhooks SET previous_secret = NULL, previous_secret_until = NULL WHERE previous_secret_until <= quota_now()`;

/** Webhooks to which nothing is sent, because no key of this process ($1, their IDs) reads their secret. */
export const UNREADABLE_SECRETS = `
  SELECT count(*)::integer AS webhooks FROM webhooks
    WHERE deleted_at IS NULL AND substr(secret, 1, 8) <> ALL ($1::bytea[])`;

export interface WaitingRow {
  waiting: number;
  overdue_seconds: number;
  dropped: number;
}

/** Overdue is what is due at a webhook to which nothing is being sent. */
export const WAITING = `
  WITH clock AS MATERIALIZED (SELECT quota_now() AS now), queue AS (
    SELECT webhook_id, count(*) AS waiting, min(next_attempt_at) AS due_at,
           bool_or(claim IS NOT NULL AND next_attempt_at > (SELECT now FROM clock)) AS is_sending
      FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL GROUP BY webhook_id
  )
  SELECT coalesce(sum(queue.waiting), 0)::integer AS waiting,
         coalesce(max(extract(epoch FROM clock.now - queue.due_at)) FILTER (
           WHERE queue.due_at <= clock.now AND NOT queue.is_sending AND webhook.disabled_at IS NULL
         ), 0)::double precision AS overdue_seconds,
         (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM webhook_deliveries_dropped)::double precision AS dropped
    FROM clock CROSS JOIN queue
      JOIN webhooks webhook ON webhook.id = queue.webhook_id AND webhook.deleted_at IS NULL
      JOIN organizations organization ON organization.id = webhook.organization_id AND organization.deleted_at IS NULL`;
