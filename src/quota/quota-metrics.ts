import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';

/** Metrics of the reservations and settlements that this process made. */
@Injectable()
export class QuotaMetrics {
  readonly reservations: Counter<'outcome'>;
  readonly settlements: Counter<'outcome'>;
  readonly settlementRetries: Counter;
  readonly settlementsForfeited: Counter;
  readonly chargedTranscripts: Counter;

  constructor(registry: Registry) {
    const counter = (name: string, help: string, labelNames: 'outcome'[] = []): Counter<'outcome'> =>
      new Counter({ name, help, labelNames, registers: [registry] });
    this.reservations = counter('ct_quota_reservations_total', 'Quota reservations, granted or refused.', ['outcome']);
    this.settlements = counter(
      'ct_quota_settlements_total',
      'Reservations that were settled, or given up without a charge.',
      ['outcome'],
    );
    this.settlementRetries = counter('ct_quota_settlement_retries_total', 'Retried settlements.');
    this.settlementsForfeited = counter(
      'ct_quota_settlements_forfeited_total',
      'Settlements that charged less than was fetched.',
    );
    this.chargedTranscripts = counter('ct_quota_charged_transcripts_total', 'Transcripts charged.');
    // A series that starts with its first increment hides that increment from rate().
    for (const outcome of ['granted', 'refused']) this.reservations.inc({ outcome }, 0);
    for (const outcome of ['settled', 'given_up']) this.settlements.inc({ outcome }, 0);
  }
}
