import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { retryConflicts } from '../database/query-with-deadline.js';
import { withTimeout } from '../domain/with-timeout.js';
import { WebhookMetrics } from './webhook-metrics.js';
import {
  DELETE_OF_DELETED_ORGANIZATIONS,
  END_OF_DISABLED_WEBHOOKS,
  REMOVE_DELETED,
  REMOVE_OF_DELETED_WEBHOOKS,
  REMOVE_OLD,
  REMOVE_OLD_SECRETS,
  UNREADABLE_SECRETS,
  WAITING,
  type WaitingRow,
} from './webhook-queries.js';
import { WebhookSecrets } from './webhook-secrets.js';
import { DELIVERY_RETENTION_DAYS } from './webhook.js';

const COUNT_INTERVAL_MS = 15_000;
const CLEAN_INTERVAL_MS = 3_600_000;
/** After a step failed. */
const CLEAN_AGAIN_MS = 60_000;
const BATCH_DELIVERIES = 1_000;
const SHUTDOWN_WAIT_MS = 2_000;

/** Removes old deliveries and secrets, and counts what waits. */
@Injectable()
export class WebhookHousekeeping implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(WebhookHousekeeping.name);
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private closing = false;
  private cleanAtMs = 0;

  constructor(
    private readonly database: DataSource,
    private readonly secrets: WebhookSecrets,
    private readonly metrics: WebhookMetrics,
  ) {}

  onApplicationBootstrap(): void {
    this.start();
    this.timer = setInterval(() => this.start(), COUNT_INTERVAL_MS);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.closing = true;
    clearInterval(this.timer);
    if (this.running) await withTimeout(this.running, SHUTDOWN_WAIT_MS);
  }

  /**
   * Removes what is stored for long enough, and deleted webhooks. A step that fails is logged and does not keep the others
   * from running.
   *
   * @returns whether every step succeeded
   */
  async clean(): Promise<boolean> {
    const steps = {
      old_deliveries: () => this.removeInBatches(REMOVE_OLD, [DELIVERY_RETENTION_DAYS, BATCH_DELIVERIES]),
      old_secrets: () => this.query(REMOVE_OLD_SECRETS, []),
      unreadable_secrets: () => this.reportUnreadable(),
      deliveries_of_disabled_webhooks: () => this.query(END_OF_DISABLED_WEBHOOKS, []),
      deleted_organizations: () => this.query(DELETE_OF_DELETED_ORGANIZATIONS, []),
      deliveries_of_deleted_webhooks: () => this.removeInBatches(REMOVE_OF_DELETED_WEBHOOKS, [BATCH_DELIVERIES]),
      deleted_webhooks: () => this.query(REMOVE_DELETED, []),
    };
    let succeeded = true;
    for (const [step, run] of Object.entries(steps)) {
      if (this.closing) return false;
      try {
        await run();
      } catch (error) {
        succeeded = false;
        this.logger.warn({ event: 'webhook_cleanup_failed', step, cause: String(error) });
      }
    }
    return succeeded;
  }

  /** Updates the metrics of the waiting deliveries. */
  async count(): Promise<void> {
    const [row] = await this.query<WaitingRow[]>(WAITING, []);
    this.metrics.waiting.set(row?.waiting ?? 0);
    this.metrics.overdueSeconds.set(row?.overdue_seconds ?? 0);
    this.metrics.dropped.set(row?.dropped ?? 0);
  }

  private start(): void {
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  private async run(): Promise<void> {
    if (performance.now() >= this.cleanAtMs) {
      const pauseMs = (await this.clean()) ? CLEAN_INTERVAL_MS : CLEAN_AGAIN_MS;
      this.cleanAtMs = performance.now() + pauseMs;
    }
    try {
      await this.count();
    } catch (error) {
      // When the database is unavailable, the deliverer has logged it.
      this.logger.debug(`The waiting deliveries were not counted: ${String(error)}`);
    }
  }

  private async removeInBatches(statement: string, values: readonly unknown[]): Promise<void> {
    let removed: number;
    do {
      [, removed] = await this.query<[unknown[], number]>(statement, values);
    } while (removed === BATCH_DELIVERIES && !this.closing);
  }

  /** Nothing is sent to webhooks whose secret cannot be read, and their deliveries wait. */
  private async reportUnreadable(): Promise<void> {
    const [row] = await this.query<{ webhooks: number }[]>(UNREADABLE_SECRETS, [this.secrets.keyIds]);
    if (!row || row.webhooks === 0) return;
    this.logger.warn({
      event: 'webhook_secrets_unreadable',
      message:
        'The secrets of webhooks are encrypted with a key that this process does not have, so nothing is sent to them. ' +
        'Add the key to WEBHOOK_SECRET_KEY, or rotate the webhooks.',
      webhooks: row.webhooks,
    });
  }

  private query<Result>(statement: string, values: readonly unknown[]): Promise<Result> {
    return retryConflicts(() => this.database.query<Result>(statement, [...values]));
  }
}
