import { createHash, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Actor } from '../domain/caller.js';
import { IdempotencyConflictError } from '../http/routes/idempotency-key.js';
import { toPage, UnknownCursorError, type Page, type PageRequest } from '../domain/page.js';
import type { CreateWebhookDto } from './dto/webhooks-request.dto.js';
import type { DeliveryDto, WebhookDto, WebhookWithSecretDto } from './dto/webhooks-response.dto.js';
import {
  REPEATED_HOURS,
  ROTATION_HOURS,
  TEST_EVENT,
  TooManyWebhooksError,
  WebhookNotFoundError,
  WEBHOOKS_MAX,
} from './webhook.js';
import { WebhookResolver } from './webhook-resolver.js';
import { WebhookSender, type SendResult } from './webhook-sender.js';
import { generateSecret, messageBody, secretText, WebhookSecrets, type StoredSecrets } from './webhook-secrets.js';
import { hostOf, parseWebhookUrl } from './webhook-url.js';

export const WEBHOOK_ID = /^whk_[0-9a-f]{24}$/;
const ID_BYTES = 12;
const DELIVERY_ID = /^msg_[0-9a-f]{32}$/;

const COLUMNS = `
  id, url, events, created_at AS "createdAt",
  CASE WHEN previous_secret_until > clock_now() THEN previous_secret_until END AS "previousSecretUntil",
  failing_since AS "failingSince", disabled_at AS "disabledAt", disabled_reason AS "disabledReason"`;

/** What the audit trail has of a webhook, without the path of its URL, which can be a secret. */
const AUDITED = `jsonb_build_object('url', substring(url FROM '^[a-z]+://[^/]+'), 'events', events)`;

/**
 * $7 hours for which a repeated request returns the secret. Only what was created by this request is audited, which PostgreSQL
 * would leave out without the condition at the end.
 */
const CREATE = `
  WITH created AS MATERIALIZED (SELECT * FROM webhook_create($1, $2, $3, $4, $5, $6)),
  audited AS MATERIALIZED (
    SELECT audit_record($8, 'webhook.created', $2, $1, NULL, ${AUDITED}) FROM created WHERE secret = $5
  )
  SELECT ${COLUMNS}, secret, created_at <= clock_now() - make_interval(hours => $7) AS "isOld"
    FROM created LEFT JOIN audited ON true`;

const LIST = `SELECT ${COLUMNS} FROM webhooks WHERE organization_id = $1 ORDER BY created_at, id`;

const DELETE = `SELECT audit_record($3, 'webhook.deleted', $2, $1, ${AUDITED}, NULL) FROM webhook_delete($1, $2)`;

/** $3 new stored secret, $4 hours for which the old one signs too. */
const ROTATE = `
  WITH rotated AS (
    UPDATE webhooks
      SET previous_secret = secret, previous_secret_until = clock_now() + make_interval(hours => $4), secret = $3
      WHERE id = $1 AND organization_id = $2 RETURNING *, audit_record($5, 'webhook.rotated', $2, $1, NULL, ${AUDITED})
  ) SELECT ${COLUMNS} FROM rotated`;

const TARGET = `
  SELECT url, secret, CASE WHEN previous_secret_until > clock_now() THEN previous_secret END AS previous_secret
    FROM webhooks WHERE id = $1 AND organization_id = $2`;

/** $1 webhook, $2 count, $3 the delivery before the page; null for the first page. */
const LIST_DELIVERIES = `
  SELECT id, type, state, created_at AS "createdAt", attempts, last_attempt_at AS "lastAttemptAt",
         next_attempt_at AS "nextAttemptAt", response_status AS "responseStatus", error, duration_ms AS "durationMs"
    FROM webhook_deliveries
    WHERE webhook_id = $1 AND ($3::text IS NULL
      OR (created_at, id) < (SELECT created_at, id FROM webhook_deliveries WHERE id = $3 AND webhook_id = $1))
    ORDER BY created_at DESC, id DESC LIMIT $2`;

type CreatedRow = WebhookDto & { secret: Buffer; isOld: boolean };

/** The same idempotency key of an organization gives the same ID, which only one webhook can have. */
function newId(organizationId: string, idempotencyKey: string | undefined): string {
  const bytes =
    idempotencyKey === undefined
      ? randomBytes(ID_BYTES)
      : createHash('sha256').update(`${organizationId} ${idempotencyKey}`).digest().subarray(0, ID_BYTES);
  return `whk_${bytes.toString('hex')}`;
}

const secretNotShown = (id: string): string =>
  `This idempotency key created the webhook ${id} more than ${REPEATED_HOURS} hours ago, and its secret is not returned again. ` +
  `POST /webhooks/${id}/rotate returns a new one.`;

/** Creates, lists, rotates, tests and deletes the webhooks of organizations. */
@Injectable()
export class WebhooksService {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly secrets: WebhookSecrets,
    private readonly resolver: WebhookResolver,
    private readonly sender: WebhookSender,
  ) {}

  /**
   * Creates a webhook, or finds the one that was created with the same idempotency key: its ID follows from the key.
   *
   * @throws InvalidUrlError, WebhooksDisabledError, TooManyWebhooksError, IdempotencyConflictError, UnreadableSecretError
   */
  async create(
    organizationId: string,
    { url: text, events }: CreateWebhookDto,
    actor: Actor,
    idempotencyKey?: string,
  ): Promise<WebhookWithSecretDto> {
    const url = parseWebhookUrl(text, this.environment.WEBHOOK_ALLOW_PRIVATE);
    const id = newId(organizationId, idempotencyKey);
    const newSecret = this.secrets.encrypt(id, generateSecret());
    const host = hostOf(url);
    if (isIP(host) === 0) await this.resolver.addressesOf(host, organizationId);
    const wanted = [url.href, events ? [...new Set(events)] : null];
    const values = [id, organizationId, ...wanted, newSecret, WEBHOOKS_MAX, REPEATED_HOURS, actor];
    const [row] = await queryWithDeadline<CreatedRow[]>(this.database, CREATE, values, organizationId);
    if (!row) throw new TooManyWebhooksError();
    const { secret, isOld, ...webhook } = row;
    if (JSON.stringify([webhook.url, webhook.events]) !== JSON.stringify(wanted)) throw new IdempotencyConflictError();
    if (isOld) throw new IdempotencyConflictError(secretNotShown(id));
    const [current] = this.secrets.signing(id, { secret, previous_secret: null });
    return { ...webhook, secret: secretText(current) };
  }

  /** Oldest first. */
  list(organizationId: string): Promise<WebhookDto[]> {
    return queryWithDeadline(this.database, LIST, [organizationId]);
  }

  /** With its deliveries. @throws WebhookNotFoundError */
  async delete(organizationId: string, id: string, actor: Actor): Promise<void> {
    const deleted = await this.query<unknown[]>(DELETE, organizationId, id, actor);
    if (deleted.length === 0) throw new WebhookNotFoundError();
  }

  /** Replaces the secret; for a day the old one signs too. @throws WebhookNotFoundError, WebhooksDisabledError */
  async rotate(organizationId: string, id: string, actor: Actor): Promise<WebhookWithSecretDto> {
    const secret = generateSecret();
    const values = [this.secrets.encrypt(id, secret), ROTATION_HOURS, actor];
    const [webhook] = await this.query<WebhookDto[]>(ROTATE, organizationId, id, ...values);
    if (!webhook) throw new WebhookNotFoundError();
    return { ...webhook, secret: secretText(secret) };
  }

  /**
   * Sends a test event now, once, also to a webhook that is turned off.
   *
   * @throws WebhookNotFoundError, UnreadableSecretError
   */
  async test(organizationId: string, id: string): Promise<SendResult> {
    const target = await this.find(organizationId, id);
    const body = messageBody(TEST_EVENT, new Date(), JSON.stringify({ webhookId: id }));
    const message = { id: `msg_${randomBytes(16).toString('hex')}`, body };
    return this.sender.send(target.url, organizationId, message, this.secrets.signing(id, target));
  }

  /** Newest first. @throws WebhookNotFoundError, UnknownCursorError */
  async deliveries(
    organizationId: string,
    id: string,
    { limit, after = null }: PageRequest,
  ): Promise<Page<DeliveryDto>> {
    await this.find(organizationId, id);
    if (after !== null && !DELIVERY_ID.test(after)) throw new UnknownCursorError(after);
    const rows = await queryWithDeadline<DeliveryDto[]>(this.database, LIST_DELIVERIES, [id, limit + 1, after]);
    // Others followed the `next` of a page, unless it is of another list or they were removed meanwhile.
    if (after !== null && rows.length === 0) throw new UnknownCursorError(after);
    return toPage(rows, limit);
  }

  private async find(organizationId: string, id: string): Promise<StoredSecrets & { url: string }> {
    const [found] = await this.query<(StoredSecrets & { url: string })[]>(TARGET, organizationId, id);
    if (!found) throw new WebhookNotFoundError();
    return found;
  }

  /** Runs a statement about one webhook. @throws WebhookNotFoundError when the ID is malformed */
  private async query<Rows>(
    statement: string,
    organizationId: string,
    id: string,
    ...values: unknown[]
  ): Promise<Rows> {
    if (!WEBHOOK_ID.test(id)) throw new WebhookNotFoundError();
    return queryWithDeadline<Rows>(this.database, statement, [id, organizationId, ...values]);
  }
}
