import { Injectable } from '@nestjs/common';
import { RejectionCounts, type RejectionReason } from '../../rate-limit/rejection-counts.js';
import { CallsInFlight } from '../../rate-limit/calls-in-flight.js';
import { Environment } from '../../config/environment.js';
import { QuotaEvents } from '../../quota/quota-events.js';
import { CACHED_KINDS, TranscriptMetrics } from '../../transcripts/transcript-metrics.js';
import { MetricsRegistry, type Reading } from './metrics-registry.js';

const NOT_AUTHENTICATED = ['no_key', 'invalid_key'] as const satisfies RejectionReason[];
const REFUSED_BY_LIMITS = [
  'key_per_minute',
  'key_in_flight',
  'process_in_flight',
  'failing_address',
] as const satisfies RejectionReason[];

/** Shows what the service counts of its calls: at the gates, in the quota, in the answers and in the cache. */
@Injectable()
export class CallMetrics {
  constructor(
    private readonly metrics: MetricsRegistry,
    access: RejectionCounts,
    calls: CallsInFlight,
    quota: QuotaEvents,
    figures: TranscriptMetrics,
    { CALLS_PER_PROCESS }: Environment,
  ) {
    this.showGates(access);
    metrics.readGauge({ name: 'ct_calls_in_flight', help: 'Transcripts calls that run now.' }, () => [
      [{}, calls.count],
    ]);
    metrics.readGauge({ name: 'ct_calls_in_flight_max', help: 'CALLS_PER_PROCESS; 0 is no limit.' }, () => [
      [{}, CALLS_PER_PROCESS],
    ]);
    this.showQuota(quota);
    this.collectEntries(figures);
  }

  private showGates(access: RejectionCounts): void {
    const byReason = (reasons: readonly RejectionReason[]) => () =>
      reasons.map((reason): Reading => [{ reason }, access.of(reason)]);
    this.metrics.readCounter(
      {
        name: 'ct_failed_authentications_total',
        help: 'Requests without a valid API key.',
        labelNames: ['reason'],
      },
      byReason(NOT_AUTHENTICATED),
    );
    this.metrics.readCounter(
      {
        name: 'ct_limit_refusals_total',
        help: 'Requests that a limit refused: 429, or 503 when the process had enough.',
        labelNames: ['reason'],
      },
      byReason(REFUSED_BY_LIMITS),
    );
  }

  private showQuota(quota: QuotaEvents): void {
    const byOutcome = (outcomes: readonly (keyof ReturnType<QuotaEvents['snapshot']>)[]) => (): Reading[] => {
      const counts = quota.snapshot();
      return outcomes.map((outcome): Reading => [{ outcome }, counts[outcome]]);
    };
    this.metrics.readCounter(
      {
        name: 'ct_quota_reservations_total',
        help: 'Calls that had to reserve quota.',
        labelNames: ['outcome'],
      },
      byOutcome(['granted', 'refused']),
    );
    this.metrics.readCounter(
      {
        name: 'ct_quota_settlements_total',
        help: 'Reservations that were settled, or given up with their call uncharged.',
        labelNames: ['outcome'],
      },
      byOutcome(['settled', 'given_up']),
    );
    const single = (name: string, help: string, read: () => number): void =>
      this.metrics.readCounter({ name, help }, () => [[{}, read()]]);
    single('ct_quota_settlement_retries_total', 'Settlements tried again.', () => quota.snapshot().retried);
    single('ct_quota_settlements_forfeited_total', 'Settlements that charged less than was fetched.', () => {
      return quota.snapshot().forfeited;
    });
    single('ct_quota_charged_transcripts_total', 'Transcripts charged.', () => quota.chargedTranscripts);
  }

  private collectEntries(figures: TranscriptMetrics): void {
    this.metrics.readCounter(
      {
        name: 'ct_entries_total',
        help: 'Entries of answers: cached, fetched, or the code of their failure.',
        labelNames: ['outcome'],
      },
      () => Array.from(figures.entries(), ([outcome, count]): Reading => [{ outcome }, count]),
    );
    this.metrics.readCounter(
      {
        name: 'ct_cache_lookups_total',
        help: 'Lookups in the cache for calls, by what was looked for.',
        labelNames: ['kind', 'result'],
      },
      () =>
        CACHED_KINDS.flatMap((kind): Reading[] => [
          [{ kind, result: 'hit' }, figures.cache[kind].hits],
          [{ kind, result: 'miss' }, figures.cache[kind].misses],
        ]),
    );
    this.metrics.readCounter(
      {
        name: 'ct_cache_unreadable_entries_total',
        help: 'Stored entries that could not be read and counted as missing.',
        labelNames: ['kind'],
      },
      () => CACHED_KINDS.map((kind): Reading => [{ kind }, figures.cache[kind].unreadable]),
    );
  }
}
