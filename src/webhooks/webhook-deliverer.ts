import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type BeforeApplicationShutdown, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { retryConflicts } from '../database/query-with-deadline.js';
import { withTimeout } from '../domain/with-timeout.js';
import { WebhookMetrics } from './webhook-metrics.js';
import { CLAIM, type ClaimedRow, RECORD, type RecordedRow, RELEASE } from './webhook-queries.js';
import { messageBody, WebhookSecrets } from './webhook-secrets.js';
import { type Attempt, WebhookSender } from './webhook-sender.js';
import { FAILING_DAYS } from './webhook.js';

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The pauses after the first, second, … failed attempt; together about a day. */
const PAUSES_SECONDS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 7 * HOUR, 9 * HOUR] as const;

/** The share of a pause that is random, so that deliveries that failed together are not repeated together. */
const JITTER = 0.2;

/** The attempts of a delivery until it is given up. */
export const ATTEMPTS_MAX = PAUSES_SECONDS.length + 1;

/**
 * Seconds until the next attempt, 10% less or more than the schedule; undefined when the delivery is given up.
 *
 * @param attempts the attempts so far, from 1
 */
export function pauseSeconds(attempts: number, random: () => number = Math.random): number | undefined {
  const pause = PAUSES_SECONDS[attempts - 1];
  return pause === undefined ? undefined : pause * (1 - JITTER / 2 + JITTER * random());
}

const LOOK_INTERVAL_MS = 2_000;
/** Over all webhooks of this process; one webhook has one delivery at a time. */
const DELIVERIES_AT_ONCE_MAX = 50;
/** Longer than an attempt and the statement that records it, so that it only ends when the process has stopped. */
const LEASE_SECONDS = 60;
const FAILING_SECONDS = FAILING_DAYS * 86_400;
/** How long the end of the process waits for receivers, and for the database. */
const SHUTDOWN_WAIT_MS = 2_000;

/**
 * Sends the deliveries that are due. Every process looks for them every two seconds and claims what it can send; a
 * delivery whose process was killed is claimed again when its lease has ended. So each is sent at least once, with the
 * same ID.
 */
@Injectable()
export class WebhookDeliverer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(WebhookDeliverer.name);
  private readonly sending = new Set<Promise<void>>();
  private readonly closing = new AbortController();
  private readonly aborting = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private lookAgain = false;
  private isDatabaseUnavailable = false;

  constructor(
    private readonly database: DataSource,
    private readonly sender: WebhookSender,
    private readonly secrets: WebhookSecrets,
    private readonly metrics: WebhookMetrics,
  ) {
    // Each delivery adds a listener.
    setMaxListeners(DELIVERIES_AT_ONCE_MAX, this.aborting.signal);
  }

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.look(), LOOK_INTERVAL_MS);
  }

  /** Gives receivers a moment to respond; what they have not responded to is sent again by another process. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.closing.abort();
    if (this.looking) await withTimeout(this.looking, SHUTDOWN_WAIT_MS);
    await withTimeout(Promise.all(this.sending), SHUTDOWN_WAIT_MS);
    this.aborting.abort();
    // A database that does not respond: what is not given back is sent after its lease.
    await withTimeout(Promise.all(this.sending), SHUTDOWN_WAIT_MS);
  }

  /** Starts sending the deliveries that are due, as many as may be sent at once. Never rejects. */
  look(): Promise<void> {
    this.lookAgain = true;
    this.looking ??= this.claimDue().finally(() => {
      this.looking = undefined;
      if (this.lookAgain) void this.look();
    });
    return this.looking;
  }

  private async claimDue(): Promise<void> {
    while (this.lookAgain) {
      this.lookAgain = false;
      const free = DELIVERIES_AT_ONCE_MAX - this.sending.size;
      if (free === 0 || this.closing.signal.aborted) return;
      try {
        await this.claim(free);
        this.isDatabaseUnavailable = false;
      } catch (error) {
        this.lookAgain = false;
        if (!this.isDatabaseUnavailable) {
          this.logger.warn({ event: 'webhook_deliveries_delayed', cause: String(error) });
        }
        this.isDatabaseUnavailable = true;
      }
    }
  }

  private async claim(count: number): Promise<void> {
    const claim = randomUUID();
    const values = [claim, count, LEASE_SECONDS, this.secrets.keyIds];
    for (const row of await this.database.query<ClaimedRow[]>(CLAIM, values)) this.start(row, claim);
  }

  private start(row: ClaimedRow, claim: string): void {
    const sending = this.deliver(row, claim).finally(() => {
      this.sending.delete(sending);
      // The same webhook may have another delivery that is due.
      if (!this.closing.signal.aborted) void this.look();
    });
    this.sending.add(sending);
  }

  /** Attempts a delivery once and records the result. Never rejects: what is not recorded is sent again after the lease. */
  private async deliver(row: ClaimedRow, claim: string): Promise<void> {
    const facts = { deliveryId: row.delivery_id, webhookId: row.webhook_id, organizationId: row.organization_id };
    try {
      const attempt = await this.attempt(row);
      if (attempt) await this.record(row, claim, attempt, facts);
      else await this.database.query(RELEASE, [row.delivery_id, claim]);
    } catch (error) {
      this.logger.warn({ event: 'webhook_attempt_not_recorded', ...facts, cause: String(error) });
    }
  }

  /** @returns undefined when the process is ending */
  private async attempt(row: ClaimedRow): Promise<Attempt | undefined> {
    const { delivery_id: id, webhook_id: webhookId, type, data, created_at: createdAt } = row;
    const secrets = [row.secret, row.previous_secret].flatMap((stored) => {
      const secret = stored && this.secrets.decrypt(webhookId, stored);
      return secret ? [secret] : [];
    });
    if (secrets.length === 0) {
      return { outcome: 'failed', status: null, error: 'The secret of the webhook cannot be read.', durationMs: 0 };
    }
    const { signal } = this.aborting;
    try {
      return await this.sender.send(row.url, { id, body: messageBody(type, createdAt, data) }, secrets, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  private async record(row: ClaimedRow, claim: string, attempt: Attempt, facts: object): Promise<void> {
    const { outcome, status, error, durationMs } = attempt;
    const attempts = row.attempts + 1;
    const pause = outcome === 'failed' ? pauseSeconds(attempts) : undefined;
    const values = [row.delivery_id, claim, outcome, status, error, durationMs, pause ?? null, FAILING_SECONDS];
    const [recorded] = await retryConflicts(() => this.database.query<RecordedRow[]>(RECORD, values));
    if (!recorded?.recorded) return;
    const result = outcome === 'succeeded' ? 'succeeded' : pause === undefined ? 'given_up' : 'retried';
    this.metrics.deliveries.inc({ result });
    const line = { ...facts, type: row.type, attempts, status, error };
    if (result === 'given_up') this.logger.log({ event: 'webhook_delivery_given_up', ...line });
    else this.logger.debug({ event: 'webhook_delivery', result, ...line });
    if (recorded.disabled === null) return;
    this.metrics.disabled.inc({ reason: recorded.disabled });
    this.logger.warn({ event: 'webhook_disabled', ...facts, reason: recorded.disabled, host: new URL(row.url).host });
  }
}
