import { createHash, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Actor } from '../domain/caller.js';
import { IdempotencyConflictError } from '../http/routes/idempotency-key.js';
import { toPage, UnknownCursorError, type Page, type PageRequest } from '../domain/page.js';
import { readResultCursor } from '../jobs/results/cursor.js';
import { FeedService } from '../jobs/results/feed.service.js';
import type { ChangeWebhookDto, CreateWebhookDto } from './dto/webhooks-request.dto.js';
import type { DeliveryDto, WebhookDto, WebhookWithSecretDto } from './dto/webhooks-response.dto.js';
import {
  DeliveryNotFoundError,
  DeliveryWaitingError,
  QueueFullError,
  REPEATED_HOURS,
  ROTATION_HOURS,
  TEST_EVENT,
  TooManyWebhooksError,
  WebhookNotFoundError,
  WEBHOOKS_MAX,
  WebhookTurnedOffError,
} from './webhook.js';
import { WebhookResolver, hostOf, parseWebhookUrl } from './webhook-url.js';
import { WebhookSender, type SendResult } from './webhook-sender.js';
import { generateSecret, messageBody, secretText, WebhookSecrets, type StoredSecrets } from './webhook-secrets.js';

export const WEBHOOK_ID = /^whk_[0-9a-f]{24}$/;
const ID_BYTES = 12;
/** Until version 1.0 it was that of the event. */
const DELIVERY_ID = /^(?:dlv|msg)_[0-9a-f]{32}$/;
/** Deliveries that are deleted in one statement. */
const DELETED_AT_ONCE_MAX = 2_000;

const COLUMNS = `
  id, url, events, labels, authorization_header IS NOT NULL AS "hasAuthorization", replay_after IS NOT NULL AS replaying,
  created_at AS "createdAt",
  CASE WHEN previous_secret_until > clock_now() THEN previous_secret_until END AS "previousSecretUntil",
  failing_since AS "failingSince", disabled_at AS "disabledAt", disabled_reason AS "disabledReason"`;

/**
 * What the audit trail has of a webhook, without the path of its URL, which can be a secret. The hash is that of the encrypted header:
 * it tells that another one was set.
 */
const audited = (webhook: string): string => `jsonb_build_object(
  'url', substring((${webhook}).url FROM '^[a-z]+://[^/?]+'), 'events', (${webhook}).events, 'labels', (${webhook}).labels,
  'authorization', left(encode(sha256((${webhook}).authorization_header), 'hex'), 8))`;

/**
 * $10 hours for which a repeated request returns the secret. Only what was created by this request is audited, which PostgreSQL
 * would leave out without the condition at the end.
 */
const CREATE = `
  WITH created AS MATERIALIZED (SELECT * FROM webhook_create($1, $2, $3, $4, $5, $6, $7, $8, $9)),
  audited AS MATERIALIZED (
    SELECT audit_record($11, 'webhook.created', $2, $1, NULL, ${audited('created')}) FROM created WHERE secret = $7
  )
  SELECT ${COLUMNS}, secret, request_mac AS "requestMac",
         created_at <= clock_now() - make_interval(hours => $10) AS "isOld"
    FROM created LEFT JOIN audited ON true`;

const LIST = `SELECT ${COLUMNS} FROM webhooks WHERE organization_id = $1 ORDER BY created_at, id`;

/** $3 as `webhook_change` has them, $4 the encrypted header. */
const CHANGE = `
  WITH changed AS MATERIALIZED (SELECT * FROM webhook_change($1, $2, $3, $4)),
  audited AS MATERIALIZED (
    SELECT audit_record($5, 'webhook.changed', $2, $1, ${audited('former')}, ${audited('webhook')}) FROM changed
  )
  SELECT ${COLUMNS} FROM changed JOIN audited ON true, LATERAL (SELECT (webhook).*) webhooks`;

/** Without the lock of the webhook, for which events wait. */
const DELETE_DELIVERIES = `
  WITH deleted AS (
    DELETE FROM webhook_deliveries WHERE id = ANY (ARRAY(
      SELECT id FROM webhook_deliveries
        WHERE webhook_id = (SELECT id FROM webhooks WHERE id = $1 AND organization_id = $2) LIMIT ${DELETED_AT_ONCE_MAX}))
      RETURNING 1
  ) SELECT count(*)::integer AS count FROM deleted`;

const DELETE = `
  SELECT audit_record($3, 'webhook.deleted', $2, $1, ${audited('webhook')}, NULL) FROM webhook_delete($1, $2) webhook`;

/** $3 new stored secret, $4 hours for which the old one signs too, $6 the stored header, $7 the same under the current key. */
const ROTATE = `
  WITH rotated AS (
    UPDATE webhooks
      SET previous_secret = secret, previous_secret_until = clock_now() + make_interval(hours => $4), secret = $3,
        authorization_header = CASE WHEN authorization_header = $6 THEN $7 ELSE authorization_header END
      WHERE id = $1 AND organization_id = $2 RETURNING *, audit_record($5, 'webhook.rotated', $2, $1, NULL, ${audited('webhooks')})
  ) SELECT ${COLUMNS} FROM rotated`;

const TARGET = `
  SELECT url, secret, CASE WHEN previous_secret_until > clock_now() THEN previous_secret END AS previous_secret, authorization_header
    FROM webhooks WHERE id = $1 AND organization_id = $2`;

/** $3 the number of the entry. */
const REPLAY = `SELECT ${COLUMNS} FROM webhook_replay($1, $2, $3)`;

const DELIVERY_COLUMNS = `
  id, coalesce(event_id, id) AS "eventId", data->>'jobId' AS "jobId", data->>'subscriptionId' AS "subscriptionId",
  data->>'videoId' AS "videoId", type, state, created_at AS "createdAt", attempts, last_attempt_at AS "lastAttemptAt",
  next_attempt_at AS "nextAttemptAt", response_status AS "responseStatus", error, duration_ms AS "durationMs"`;

/** $3 delivery. */
const RETRY = `
  SELECT refusal, ${DELIVERY_COLUMNS} FROM (SELECT refusal, (delivery).* FROM webhook_retry($1, $2, $3)) retried`;

/** $1 webhook, $2 count, $3 the delivery before the page; null for the first page. */
const LIST_DELIVERIES = `
  SELECT ${DELIVERY_COLUMNS} FROM webhook_deliveries
    WHERE webhook_id = $1 AND ($3::text IS NULL
      OR (created_at, id) < (SELECT created_at, id FROM webhook_deliveries WHERE id = $3 AND webhook_id = $1))
    ORDER BY created_at DESC, id DESC LIMIT $2`;

type CreatedRow = WebhookDto & { secret: Buffer; requestMac: Buffer | null; isOld: boolean };

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

/** A request to create a webhook as it is compared with a repeated one. */
const requestOf = (
  url: string,
  events: readonly string[] | null,
  { labels = {}, authorization }: Pick<CreateWebhookDto, 'labels' | 'authorization'> = {},
): string => JSON.stringify([url, events, Object.entries(labels).sort(), authorization ?? null]);

/** Why a delivery is not sent again. */
const NOT_RETRIED = {
  no_webhook: WebhookNotFoundError,
  no_delivery: DeliveryNotFoundError,
  turned_off: WebhookTurnedOffError,
  waiting: DeliveryWaitingError,
  full: QueueFullError,
};

@Injectable()
export class WebhooksService {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly secrets: WebhookSecrets,
    private readonly resolver: WebhookResolver,
    private readonly sender: WebhookSender,
    private readonly feed: FeedService,
  ) {}

  /**
   * Creates a webhook, or finds the one that was created with the same idempotency key: its ID follows from the key.
   *
   * @throws InvalidUrlError, WebhooksDisabledError, TooManyWebhooksError, IdempotencyConflictError, UnreadableSecretError
   */
  async create(
    organizationId: string,
    { url: text, ...body }: CreateWebhookDto,
    actor: Actor,
    idempotencyKey?: string,
  ): Promise<WebhookWithSecretDto> {
    const id = newId(organizationId, idempotencyKey);
    const newSecret = this.secrets.encrypt(id, generateSecret());
    const url = await this.checkedUrl(organizationId, text);
    const events = body.events ? [...new Set(body.events)] : null;
    const request = requestOf(url, events, body);
    const values = [
      ...[id, organizationId, url, events, body.labels ?? {}, this.encrypted(id, body.authorization), newSecret],
      ...[this.secrets.mac(request), WEBHOOKS_MAX, REPEATED_HOURS, actor],
    ];
    const [row] = await queryWithDeadline<CreatedRow[]>(this.database, CREATE, values, organizationId);
    if (!row) throw new TooManyWebhooksError();
    const { secret, requestMac, isOld, ...webhook } = row;
    const isSame =
      requestMac === null
        ? request === requestOf(webhook.url, webhook.events)
        : this.secrets.isMacOf(requestMac, request);
    if (!isSame) throw new IdempotencyConflictError();
    if (isOld) throw new IdempotencyConflictError(secretNotShown(id));
    return { ...webhook, secret: secretText(this.secrets.current(id, secret)) };
  }

  /** Changes what the request has. @throws WebhookNotFoundError, InvalidUrlError, WebhooksDisabledError */
  async change(organizationId: string, id: string, body: ChangeWebhookDto, actor: Actor): Promise<WebhookDto> {
    const { url, events, labels, authorization } = body;
    const changes = {
      ...(url !== undefined && { url: await this.checkedUrl(organizationId, url) }),
      ...(events !== undefined && { events: events && [...new Set(events)] }),
      ...(labels !== undefined && { labels: labels ?? {} }),
      ...(authorization !== undefined && { authorization: true }),
    };
    const values = [changes, this.encrypted(id, authorization), actor];
    const [webhook] = await this.query<WebhookDto[]>(CHANGE, organizationId, id, ...values);
    if (!webhook) throw new WebhookNotFoundError();
    return webhook;
  }

  /** Oldest first. */
  list(organizationId: string): Promise<WebhookDto[]> {
    return queryWithDeadline(this.database, LIST, [organizationId]);
  }

  /** With its deliveries. @throws WebhookNotFoundError */
  async delete(organizationId: string, id: string, actor: Actor): Promise<void> {
    for (let count = DELETED_AT_ONCE_MAX; count === DELETED_AT_ONCE_MAX;)
      [{ count }] = await this.query<[{ count: number }]>(DELETE_DELIVERIES, organizationId, id);
    const deleted = await this.query<unknown[]>(DELETE, organizationId, id, actor);
    if (deleted.length === 0) throw new WebhookNotFoundError();
  }

  /**
   * Replaces the secret; for a day the old one signs too. The header is encrypted with the current key of the service, so that
   * an old one can be removed.
   *
   * @throws WebhookNotFoundError, WebhooksDisabledError, UnreadableSecretError
   */
  async rotate(organizationId: string, id: string, actor: Actor): Promise<WebhookWithSecretDto> {
    const secret = generateSecret();
    const stored = this.secrets.encrypt(id, secret);
    const { authorization_header: header } = await this.find(organizationId, id);
    const renewed = this.encrypted(id, header && this.secrets.authorization(id, header));
    const values = [stored, ROTATION_HOURS, actor, header, renewed];
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
    const body = messageBody(TEST_EVENT, new Date(), { webhookId: id });
    const message = { id: `msg_${randomBytes(16).toString('hex')}`, body };
    return this.sender.send(target.url, organizationId, message, this.secrets.credentials(id, target));
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

  /**
   * Sends a delivery that has ended again.
   *
   * @throws WebhookNotFoundError, DeliveryNotFoundError, WebhookTurnedOffError, DeliveryWaitingError, QueueFullError
   */
  async retry(organizationId: string, id: string, deliveryId: string): Promise<DeliveryDto> {
    if (!DELIVERY_ID.test(deliveryId)) throw new DeliveryNotFoundError();
    const [{ refusal, ...delivery }] = await this.query<[DeliveryDto & { refusal: keyof typeof NOT_RETRIED | null }]>(
      ...([RETRY, organizationId, id, deliveryId] as const),
    );
    if (refusal !== null) throw new NOT_RETRIED[refusal]();
    return delivery;
  }

  /**
   * Sends the entries of the feed after a cursor again, as new deliveries with the IDs of their events.
   *
   * @throws WebhookNotFoundError, WebhookTurnedOffError, CursorExpiredError, CursorUnknownError, InvalidRequestError
   */
  async replay(organizationId: string, id: string, after: string): Promise<WebhookDto> {
    await this.find(organizationId, id);
    // Checks the cursor.
    await this.feed.read(organizationId, { limit: 1, after });
    const { sequence } = readResultCursor(after);
    const [webhook] = await this.query<WebhookDto[]>(REPLAY, organizationId, id, sequence);
    if (!webhook) throw new WebhookNotFoundError();
    if (webhook.disabledAt) throw new WebhookTurnedOffError();
    return webhook;
  }

  /** A URL in the form in which it is stored. @throws InvalidUrlError */
  private async checkedUrl(organizationId: string, text: string): Promise<string> {
    const url = parseWebhookUrl(text, this.environment.WEBHOOK_ALLOW_PRIVATE);
    const host = hostOf(url);
    if (isIP(host) === 0) await this.resolver.addressesOf(host, organizationId);
    return url.href;
  }

  /** The stored form of a header; null for none. @throws WebhooksDisabledError */
  private encrypted(id: string, authorization: string | null | undefined): Buffer | null {
    return authorization ? this.secrets.encryptAuthorization(id, authorization) : null;
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
