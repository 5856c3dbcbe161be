import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { type BackgroundLoop, BackgroundLoops } from '../background/background-loops.js';
import { createGauge } from '../observability/metrics-registry.js';
import { DELIVERY_RETENTION_DAYS, SUCCEEDED_RETENTION_DAYS } from './webhook.js';

const INTERVAL_MS = 60_000;
/** Deletes in a limited time what has accumulated. */
const REMOVED_AT_ONCE_MAX = 1_000;

/** $1 most rows. An array, because a join of so many rows may be planned as one of the whole table. */
const remove = (deliveries: string): string => `
  WITH removed AS (
    DELETE FROM webhook_deliveries WHERE id = ANY (ARRAY(SELECT id FROM webhook_deliveries ${deliveries} LIMIT $1)) RETURNING 1
  ) SELECT count(*)::integer AS count FROM removed`;

const removeOlder = (days: number, state: string): string =>
  remove(
    `WHERE state ${state} AND created_at < (SELECT clock_now() - make_interval(days => ${days})) ORDER BY created_at`,
  );

const OF_DELETED_ORGANIZATIONS = 'organization_id IN (SELECT id FROM organizations WHERE deleted_at IS NOT NULL)';

/** What is removed some rows at a time. */
export const REMOVALS = [
  removeOlder(SUCCEEDED_RETENTION_DAYS, `= 'succeeded'`),
  removeOlder(DELIVERY_RETENTION_DAYS, `= 'failed'`),
  remove(`WHERE webhook_id = ANY (ARRAY(SELECT id FROM webhooks WHERE ${OF_DELETED_ORGANIZATIONS}))`),
];

/** After their deliveries. */
const REMOVE_OF_DELETED_ORGANIZATIONS = `
  DELETE FROM webhooks WHERE ${OF_DELETED_ORGANIZATIONS}
    AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE webhook_id = webhooks.id)`;

const REMOVE_OLD_SECRETS = `
  UPDATE webhooks SET previous_secret = NULL, previous_secret_until = NULL
    WHERE previous_secret_until <= (SELECT clock_now())`;

/** What waits, counted up to 10,000. Overdue is what is due, since the pause after the last attempt. Each minimum is read from an index. */
const WAITING = `
  SELECT (SELECT count(*) FROM (SELECT FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL LIMIT 10000) waiting)::integer
           AS waiting,
         greatest(0, extract(epoch FROM clock_now() - least(
           (SELECT min(due_at) FROM webhooks WHERE healthy AND claim IS NULL AND due_at IS NOT NULL),
           (SELECT min(due_at) FROM webhooks WHERE NOT healthy AND claim IS NULL AND due_at IS NOT NULL),
           (SELECT min(due_at) FROM webhooks WHERE claim IS NOT NULL))))::double precision
           AS overdue_seconds,
         (SELECT last_value - 1 + is_called::integer FROM webhook_events_dropped)::double precision AS dropped`;

/** Removes old deliveries and secrets, and counts what waits. */
@Injectable()
export class WebhookHousekeeping implements OnApplicationBootstrap {
  private readonly logger = new Logger(WebhookHousekeeping.name);
  private figures = { waiting: 0, overdue_seconds: 0, dropped: 0 };
  /** In the last run. */
  private droppedBefore = Infinity;
  private readonly loop: BackgroundLoop;

  constructor(
    private readonly database: DataSource,
    loops: BackgroundLoops,
    registry: Registry,
  ) {
    this.loop = loops.create('webhook_housekeeping', INTERVAL_MS, () => this.clean());
    const waiting = 'Deliveries in the database that have neither succeeded nor been given up, counted up to 10,000.';
    createGauge(registry, 'ct_webhook_deliveries_waiting', waiting, () => this.figures.waiting);
    const overdue = 'Age of the oldest due delivery of a webhook to which nothing is being sent.';
    createGauge(registry, 'ct_webhook_deliveries_overdue_seconds', overdue, () => this.figures.overdue_seconds);
    const dropped = 'Events so far that were not sent to a webhook because it had too many waiting deliveries.';
    createGauge(registry, 'ct_webhook_events_dropped', dropped, () => this.figures.dropped);
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  /** Removes what is stored for long enough, and updates the metrics. */
  async clean(): Promise<'again' | undefined> {
    let isMore = false;
    for (const statement of REMOVALS) {
      const [removed] = await this.database.query<{ count: number }[]>(statement, [REMOVED_AT_ONCE_MAX]);
      isMore ||= removed?.count === REMOVED_AT_ONCE_MAX;
    }
    await this.database.query(REMOVE_OF_DELETED_ORGANIZATIONS);
    await this.database.query(REMOVE_OLD_SECRETS);
    const [row] = await this.database.query<(typeof this.figures)[]>(WAITING);
    if (!row) return undefined;
    this.figures = row;
    const events = row.dropped - this.droppedBefore;
    if (events > 0) this.logger.warn({ event: 'webhook_events_dropped', events });
    this.droppedBefore = row.dropped;
    return isMore ? 'again' : undefined;
  }
}
