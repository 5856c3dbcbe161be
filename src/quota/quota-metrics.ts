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
    const registers = [registry];
    this.reservations = new Counter({
      name: 'ct_quota_reservations_total',
      help: 'Quota reservations, granted or refused.',
      labelNames: ['outcome'],
      registers,
    });
    this.settlements = new Counter({
      name: 'ct_quota_settlements_total',
      help: 'Reservations that were settled, or given up without a charge.',
      labelNames: ['outcome'],
      registers,
    });
    this.settlementRetries = new Counter({
      name: 'ct_quota_settlement_retries_total',
      help: 'Retried settlements.',
      registers,
    });
    this.settlementsForfeited = new Counter({
      name: 'ct_quota_settlements_forfeited_total',
      help: 'Settlements that charged less than was fetched.',
      registers,
    });
    this.chargedTranscripts = new Counter({
      name: 'ct_quota_charged_transcripts_total',
      help: 'Transcripts charged.',
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const outcome of ['granted', 'refused']) this.reservations.inc({ outcome }, 0);
    for (const outcome of ['settled', 'given_up']) this.settlements.inc({ outcome }, 0);
  }
}
