import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { DISABLED_REASONS } from './webhook.js';

/** Results of attempts: `retried` failed and is repeated later, `given_up` failed for the last time. */
const RESULTS = ['succeeded', 'retried', 'given_up'] as const;

/** Metrics of the deliveries that this process sent, and of those that wait in the database. */
@Injectable()
export class WebhookMetrics {
  readonly deliveries: Counter<'result'>;
  readonly disabled: Counter<'reason'>;
  readonly waiting: Gauge;
  readonly overdueSeconds: Gauge;
  readonly dropped: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.deliveries = new Counter({
      name: 'ct_webhook_deliveries_total',
      help: 'Attempts to deliver an event to a webhook.',
      labelNames: ['result'],
      registers,
    });
    this.disabled = new Counter({
      name: 'ct_webhooks_disabled_total',
      help: 'Webhooks that were turned off.',
      labelNames: ['reason'],
      registers,
    });
    this.waiting = new Gauge({
      name: 'ct_webhook_deliveries_waiting',
      help: 'Deliveries in the database that have neither succeeded nor been given up.',
      registers,
    });
    this.overdueSeconds = new Gauge({
      name: 'ct_webhook_deliveries_overdue_seconds',
      help: 'Age of the oldest due delivery of a webhook to which nothing is being sent.',
      registers,
    });
    this.dropped = new Gauge({
      name: 'ct_webhook_deliveries_dropped',
      help: 'Events that were not sent because their webhook had too many waiting deliveries, since the database was created.',
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const result of RESULTS) this.deliveries.inc({ result }, 0);
    for (const reason of DISABLED_REASONS) this.disabled.inc({ reason }, 0);
  }
}
