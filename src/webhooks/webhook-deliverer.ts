import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import { DataSource } from 'typeorm';
import { type BackgroundLoop, BackgroundLoops } from '../background/background-loops.js';
import { withTimeout } from '../domain/waiting.js';
import { createCounter } from '../observability/metrics-registry.js';
import { messageBody, WebhookSecrets, type StoredSecrets } from './webhook-secrets.js';
import { WebhookSender } from './webhook-sender.js';
import { DISABLED_REASONS, type DisabledReason, FAILING_DAYS } from './webhook.js';

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The pauses after the first, second, … failed attempt; together about a day. */
const PAUSES_SECONDS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 7 * HOUR, 9 * HOUR] as const;

/** The share of a pause that is random, so that deliveries that failed together are not repeated together. */
const JITTER = 0.2;

/** The attempts of a delivery until it is given up. */
export const ATTEMPTS_MAX = PAUSES_SECONDS.length + 1;

/** Seconds until the next attempt, up to 10% less or more than the schedule; undefined when the delivery is given up. */
function pauseSeconds(attempts: number): number | undefined {
  const pause = PAUSES_SECONDS[attempts - 1];
  return pause === undefined ? undefined : pause * (1 - JITTER / 2 + JITTER * Math.random());
}

/**
 * Deliveries at a time, of this process and of one organization; one webhook has one. Webhooks whose last attempt failed, and
 * those that were never sent to, have slots of their own: receivers that hang hold up none that respond.
 */
const SLOTS = [
  { isHealthy: true, max: 50, ofOrganizationMax: 5 },
  { isHealthy: false, max: 25, ofOrganizationMax: 2 },
] as const;
/** Longer than an attempt and the statement that records it, so that it only ends when the process has stopped. */
const LEASE_SECONDS = 60;
const LOOK_INTERVAL_MS = 2_000;
/** How long the end of the process waits for receivers; what they have not responded to is sent again after its lease. */
const SHUTDOWN_WAIT_MS = 2_000;

interface ClaimedDelivery extends StoredSecrets {
  delivery_id: string;
  /** Receivers handle each once: a replay sends the events again. */
  event_id: string;
  webhook_id: string;
  organization_id: string;
  url: string;
  type: string;
  /** JSON. */
  data: string;
  occurred_at: Date;
  attempts: number;
}

/** $1 claim, $2 whether the last attempt succeeded, $3 most webhooks, $4 most of an organization, $5 seconds of the lease. */
const CLAIM = 'SELECT * FROM webhook_claim($1, $2, $3, $4, $5)';

/** $1 delivery, $2 claim, $3 outcome, $4 status, $5 error, $6 ms, $7 seconds until the next attempt, $8 seconds of failing. */
const RECORD = 'SELECT * FROM webhook_record($1, $2, $3, $4, $5, $6, $7, $8)';

/** Results of attempts: `retried` failed and is repeated later, `given_up` failed for the last time. */
const RESULTS = ['succeeded', 'retried', 'given_up'] as const;

/**
 * Sends the deliveries that are due. Every process looks for them every two seconds and claims what it can send; a
 * delivery whose process has ended is claimed again when the lease has. So each is sent at least once, with the same event ID.
 */
@Injectable()
export class WebhookDeliverer implements OnApplicationBootstrap {
  /** Looks for due deliveries. */
  readonly looks: BackgroundLoop;
  private readonly logger = new Logger(WebhookDeliverer.name);
  /** By whether the last attempt at the webhook succeeded. */
  private readonly sending = new Map<Promise<void>, boolean>();
  private readonly results: Counter<'result'>;
  private readonly disabled: Counter<'reason'>;

  constructor(
    private readonly database: DataSource,
    private readonly sender: WebhookSender,
    private readonly secrets: WebhookSecrets,
    loops: BackgroundLoops,
    registry: Registry,
  ) {
    this.looks = loops.create(
      'webhook_deliveries',
      LOOK_INTERVAL_MS,
      () => this.claim(),
      () => withTimeout(Promise.all(this.sending.keys()), SHUTDOWN_WAIT_MS),
    );
    const attempts = 'Attempts to deliver an event to a webhook.';
    this.results = createCounter(registry, 'ct_webhook_deliveries_total', attempts, { result: RESULTS });
    const disabled = 'Webhooks that were turned off.';
    this.disabled = createCounter(registry, 'ct_webhooks_disabled_total', disabled, { reason: DISABLED_REASONS });
  }

  onApplicationBootstrap(): void {
    if (this.secrets.enabled) this.looks.start();
  }

  /** Claims as many deliveries as may be sent at once, and starts to send them. */
  private async claim(): Promise<'again' | undefined> {
    const claim = randomUUID();
    let count = 0;
    for (const { isHealthy, max, ofOrganizationMax } of SLOTS) {
      const free = max - [...this.sending.values()].filter((each) => each === isHealthy).length;
      if (free === 0) continue;
      const values = [claim, isHealthy, free, ofOrganizationMax, LEASE_SECONDS];
      const claimed = await this.database.query<ClaimedDelivery[]>(CLAIM, values);
      for (const delivery of claimed) this.start(delivery, claim, isHealthy);
      count += claimed.length;
    }
    return count > 0 ? 'again' : undefined;
  }

  private start(delivery: ClaimedDelivery, claim: string, isHealthy: boolean): void {
    const sending = this.deliver(delivery, claim).finally(() => {
      this.sending.delete(sending);
      // The same webhook may have another delivery that is due.
      this.looks.wake();
    });
    this.sending.set(sending, isHealthy);
  }

  /** Attempts a delivery once and records the result. Never rejects: what is not recorded is sent again after the lease. */
  private async deliver(delivery: ClaimedDelivery, claim: string): Promise<void> {
    const { delivery_id: id, webhook_id: webhookId, organization_id: organizationId, type, url } = delivery;
    const facts = { deliveryId: id, webhookId, organizationId };
    try {
      const message = {
        id: delivery.event_id,
        body: messageBody(type, delivery.occurred_at, JSON.parse(delivery.data)),
      };
      const credentials = this.secrets.credentials(webhookId, delivery);
      const { outcome, status, error, durationMs } = await this.sender.send(url, organizationId, message, credentials);
      const attempts = delivery.attempts + 1;
      const pause = outcome === 'failed' ? pauseSeconds(attempts) : undefined;
      const values = [id, claim, outcome, status, error, durationMs, pause ?? null, FAILING_DAYS * DAY];
      const [recorded] = await this.database.query<{ disabled: DisabledReason | null }[]>(RECORD, values);
      if (!recorded) return;
      const result = outcome === 'succeeded' ? 'succeeded' : pause === undefined ? 'given_up' : 'retried';
      this.results.inc({ result });
      const line = { ...facts, type, attempts, status, error };
      if (result === 'given_up') this.logger.log({ event: 'webhook_delivery_given_up', ...line });
      else this.logger.debug({ event: 'webhook_delivery', result, ...line });
      const { disabled: reason } = recorded;
      if (reason === null) return;
      this.disabled.inc({ reason });
      this.logger.warn({ event: 'webhook_disabled', ...facts, reason, host: new URL(url).host });
    } catch (error) {
      this.logger.warn({ event: 'webhook_attempt_not_recorded', ...facts, cause: String(error) });
    }
  }
}
