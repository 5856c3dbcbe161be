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
    const reservations = 'Quota reservations, granted or refused.';
    const decisions = { outcome: ['granted', 'refused'] };
    this.reservations = createCounter(registry, 'ct_quota_reservations_total', reservations, decisions);
    const settlements = 'Reservations that were settled, or given up without a charge.';
    const ends = { outcome: ['settled', 'given_up'] };
    this.settlements = createCounter(registry, 'ct_quota_settlements_total', settlements, ends);
    this.settlementRetries = createCounter(registry, 'ct_quota_settlement_retries_total', 'Retried settlements.');
    const forfeited = 'Settlements that charged less than was fetched.';
    this.settlementsForfeited = createCounter(registry, 'ct_quota_settlements_forfeited_total', forfeited);
    this.chargedTranscripts = createCounter(registry, 'ct_quota_charged_transcripts_total', 'Transcripts charged.');
  }
}
