import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { InvalidApiKeyError, WebhookNotFoundError } from '../domain/errors.js';
import { withTimeout } from '../domain/with-timeout.js';
import { UnknownCursorError } from '../organizations/organization-errors.js';
import { toPage, type Page, type PageRequest } from '../organizations/page.js';
import {
  CREATE,
  DELETE,
  DELIVERIES,
  DELIVERY_EXISTS,
  FIND,
  LIST,
  ROTATE,
  type CreatedRow,
  type DeliveryRow,
  type WebhookRow,
} from './webhook-queries.js';
import {
  type Delivery,
  InvalidUrlError,
  ROTATION_HOURS,
  TEST_EVENT,
  TooManyWebhooksError,
  UnreadableSecretError,
  type Webhook,
  type WebhookEvent,
  WEBHOOKS_MAX,
  type WebhookWithSecret,
} from './webhook.js';
import { HostResolutionError, PrivateAddressError, WebhookSender, type Attempt } from './webhook-sender.js';
import { generateSecret, messageBody, secretText, WebhookSecrets } from './webhook-secrets.js';
import { hostOf, parseWebhookUrl } from './webhook-url.js';

interface NewWebhook {
  url: string;
  /** Every event by default. */
  events?: readonly WebhookEvent[] | undefined;
}

/** How long the creation of a webhook waits for the name servers of its host. */
const RESOLUTION_TIMEOUT_MS = 3_000;
export const WEBHOOK_ID = /^whk_[0-9a-f]{24}$/;
const DELIVERY_ID = /^msg_[0-9a-f]{32}$/;

/** Creates, lists, rotates, tests and deletes the webhooks of organizations. */
@Injectable()
export class WebhooksService {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly secrets: WebhookSecrets,
    private readonly sender: WebhookSender,
  ) {}

  /** @throws InvalidUrlError, WebhooksDisabledError, TooManyWebhooksError; InvalidApiKeyError when the organization was deleted */
  async create(organizationId: string, { url: text, events }: NewWebhook): Promise<WebhookWithSecret> {
    const url = parseWebhookUrl(text, this.environment.WEBHOOK_ALLOW_PRIVATE);
    const id = `whk_${randomBytes(12).toString('hex')}`;
    const secret = generateSecret();
    const stored = this.secrets.encrypt(id, secret);
    await this.checkHost(url);
    const values = [id, organizationId, url.href, events ? [...new Set(events)] : null, stored, WEBHOOKS_MAX];
    const [row] = await queryWithDeadline<CreatedRow[]>(this.database, CREATE, values);
    if (!row) throw new InvalidApiKeyError();
    if (row.outcome === 'too_many') throw new TooManyWebhooksError();
    return { ...toWebhook(row), secret: secretText(secret) };
  }

  /** Oldest first. */
  async list(organizationId: string): Promise<Webhook[]> {
    const rows = await queryWithDeadline<WebhookRow[]>(this.database, LIST, [organizationId]);
    return rows.map(toWebhook);
  }

  /** Also ends its deliveries. @throws WebhookNotFoundError */
  async delete(organizationId: string, id: string): Promise<void> {
    const [deleted = []] = await this.query<[unknown[], number]>(DELETE, organizationId, id);
    if (deleted.length === 0) throw new WebhookNotFoundError();
  }

  /** Replaces the secret; for a day the old one signs too. @throws WebhookNotFoundError, WebhooksDisabledError */
  async rotate(organizationId: string, id: string): Promise<WebhookWithSecret> {
    // An unknown webhook is reported before a key that is not set.
    await this.find(organizationId, id);
    const secret = generateSecret();
    const stored = this.secrets.encrypt(id, secret);
    const values = [stored, ROTATION_HOURS, this.secrets.keyIds];
    const [[row] = []] = await this.query<[WebhookRow[], number]>(ROTATE, organizationId, id, ...values);
    if (!row) throw new WebhookNotFoundError();
    return { ...toWebhook(row), secret: secretText(secret) };
  }

  /**
   * Sends a test event now, once, also to a webhook that is turned off.
   *
   * @throws WebhookNotFoundError, UnreadableSecretError
   */
  async test(organizationId: string, id: string): Promise<Attempt> {
    const { url, ...row } = await this.find(organizationId, id);
    const secret = this.secrets.decrypt(id, row.secret);
    if (!secret) throw new UnreadableSecretError();
    const previous = row.previous_secret && this.secrets.decrypt(id, row.previous_secret);
    const body = messageBody(TEST_EVENT, new Date(), JSON.stringify({ webhookId: id }));
    const message = { id: `msg_${randomBytes(16).toString('hex')}`, body };
    return this.sender.send(url, message, previous ? [secret, previous] : [secret]);
  }

  /** Newest first. @throws WebhookNotFoundError, UnknownCursorError */
  async deliveries(organizationId: string, id: string, { count, after = null }: PageRequest): Promise<Page<Delivery>> {
    await this.find(organizationId, id);
    if (after !== null && !(await this.isDelivery(id, after))) throw new UnknownCursorError(after);
    const rows = await queryWithDeadline<DeliveryRow[]>(this.database, DELIVERIES, [id, count + 1, after]);
    return toPage(rows.map(toDelivery), count);
  }

  private async isDelivery(webhookId: string, id: string): Promise<boolean> {
    if (!DELIVERY_ID.test(id)) return false;
    return (await queryWithDeadline<unknown[]>(this.database, DELIVERY_EXISTS, [id, webhookId])).length > 0;
  }

  private async find(organizationId: string, id: string): Promise<WebhookRow> {
    const [row] = await this.query<WebhookRow[]>(FIND, organizationId, id);
    if (!row) throw new WebhookNotFoundError();
    return row;
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

  /** Name servers that do not respond are no reason to refuse a webhook: each delivery resolves the host again. */
  private async checkHost(url: URL): Promise<void> {
    try {
      await withTimeout(this.sender.addressesOf(hostOf(url)), RESOLUTION_TIMEOUT_MS);
    } catch (error) {
      if (error instanceof PrivateAddressError)
        throw new InvalidUrlError('The host of url must have public addresses only.');
      if (!(error instanceof HostResolutionError)) throw error;
      if (error.doesNotExist) throw new InvalidUrlError('The host of url has no address.');
    }
  }
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    createdAt: row.created_at.toISOString(),
    previousSecretUntil: row.previous_secret_until?.toISOString() ?? null,
    failingSince: row.failing_since?.toISOString() ?? null,
    disabledAt: row.disabled_at?.toISOString() ?? null,
    disabledReason: row.disabled_reason,
  };
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    type: row.type,
    state: row.state,
    createdAt: row.created_at.toISOString(),
    attempts: row.attempts,
    lastAttemptAt: row.last_attempt_at?.toISOString() ?? null,
    nextAttemptAt: row.next_attempt_at?.toISOString() ?? null,
    responseStatus: row.response_status,
    error: row.error,
    durationMs: row.duration_ms,
  };
}
