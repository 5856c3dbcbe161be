import { Injectable } from '@nestjs/common';

/** What became of a wish for a reservation. */
export type ReservationOutcome = 'granted' | 'refused';

/** What became of a settlement: done at last or at once, tried again, given up, or only partly charged. */
export type SettlementOutcome = 'settled' | 'retried' | 'given_up' | 'forfeited';

export type QuotaEvent = ReservationOutcome | SettlementOutcome;

/** Counts what happened to reservations and settlements in this process, for metrics. */
@Injectable()
export class QuotaEvents {
  private readonly counts: Record<QuotaEvent, number> = {
    granted: 0,
    refused: 0,
    settled: 0,
    retried: 0,
    given_up: 0,
    forfeited: 0,
  };
  private charged = 0;

  count(outcome: QuotaEvent): void {
    this.counts[outcome] += 1;
  }

  /** Transcripts that a settlement charged. */
  charge(transcripts: number): void {
    this.charged += transcripts;
  }

  get chargedTranscripts(): number {
    return this.charged;
  }

  snapshot(): Readonly<Record<QuotaEvent, number>> {
    return { ...this.counts };
  }
}
