import { Injectable } from '@nestjs/common';

/** What became of a settlement: done at last or at once, tried again, given up, or only partly charged. */
export type SettlementOutcome = 'settled' | 'retried' | 'given_up' | 'forfeited';

/** Counts what happened to settlements in this process, for metrics. */
@Injectable()
export class QuotaEvents {
  private readonly counts: Record<SettlementOutcome, number> = { settled: 0, retried: 0, given_up: 0, forfeited: 0 };

  count(outcome: SettlementOutcome): void {
    this.counts[outcome] += 1;
  }

  snapshot(): Readonly<Record<SettlementOutcome, number>> {
    return { ...this.counts };
  }
}
