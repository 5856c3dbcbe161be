import { Injectable } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import { createCounter } from '../observability/metrics-registry.js';

/** Metrics of the reservations and settlements that this process made. */
@Injectable()
export class QuotaMetrics {
  readonly reservations: Counter<'outcome'>;
  readonly settlements: Counter<'outcome'>;
  readonly settlementRetries: Counter;
  readonly settlementsForfeited: Counter;
  readonly chargedTranscripts: Counter;

  constructor(registry: Registry) {
    this.reservations = createCounter(
      registry,
      'ct_quota_reservations_total',
      'Quota reservations, granted or refused.',
      { outcome: ['granted', 'refused'] },
    );
    this.settlements = createCounter(
      registry,
      'ct_quota_settlements_total',
      'Reservations that were settled, or given up without a charge.',
      { outcome: ['settled', 'given_up'] },
    );
    this.settlementRetries = createCounter(registry, 'ct_quota_settlement_retries_total', 'Retried settlements.');
    this.settlementsForfeited = createCounter(
      registry,
      'ct_quota_settlements_forfeited_total',
      'Settlements that charged less than was fetched.',
    );
    this.chargedTranscripts = createCounter(registry, 'ct_quota_charged_transcripts_total', 'Transcripts charged.');
  }
}
