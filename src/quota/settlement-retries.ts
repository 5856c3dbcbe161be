import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { inSpan } from '../observability/tracing/tracer.js';
import { QuotaMetrics } from './quota-metrics.js';

const RETRY_DELAY_FIRST_MS = 100;
const RETRY_DELAY_MAX_MS = 5_000;

/** Reserved quota. It has to be settled before its lease ends, in milliseconds of `performance.now()`. */
export interface OpenReservation {
  id: string;
  organizationId: string;
  leaseEndsAtMs: number;
}

/**
 * The delay before the next attempt, in milliseconds: exponential backoff up to 5 seconds, half of it random.
 *
 * @param attempt the number of attempts so far, from 1
 */
export function retryDelayMs(attempt: number, random: () => number = Math.random): number {
  const fullMs = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_FIRST_MS * 2 ** (attempt - 1));
  return Math.round(fullMs / 2 + (fullMs / 2) * random());
}

/** Repeats settlements that the database does not accept. */
@Injectable()
export class SettlementRetries implements OnApplicationShutdown {
  private readonly logger = new Logger(SettlementRetries.name);
  private readonly settling = new Set<Promise<void>>();
  private readonly closing = new AbortController();

  constructor(private readonly metrics: QuotaMetrics) {
    // Each settlement that waits for its next attempt has a listener, so that many listeners are no leak.
    setMaxListeners(0, this.closing.signal);
  }

  /** Repeats a settlement until it succeeds or the lease ends. Never rejects. */
  untilSettled(reservation: OpenReservation, fetched: number, settle: () => Promise<void>): Promise<void> {
    const settling = this.attempt(reservation, fetched, settle).finally(() => this.settling.delete(settling));
    this.settling.add(settling);
    return settling;
  }

  /** Pending settlements are attempted once more before the database closes. */
  async onApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.settling);
  }

  private async attempt(
    { id: reservationId, leaseEndsAtMs }: OpenReservation,
    fetched: number,
    settle: () => Promise<void>,
  ): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const last = this.closing.signal.aborted;
      try {
        return await inSpan('quota.settle', { 'quota.fetched': fetched, 'quota.attempt': attempt }, settle);
      } catch (error) {
        const remainingMs = leaseEndsAtMs - performance.now();
        const facts = { reservationId, fetched, attempt, cause: String(error) };
        if (last || remainingMs <= 0) {
          if (fetched === 0) {
            const message =
              'Nothing was fetched and nothing is charged: the reserved quota is released with its lease.';
            this.logger.warn({ event: 'reservation_expired', message, ...facts });
            return;
          }
          this.metrics.settlements.inc({ outcome: 'given_up' });
          this.logger.error({
            event: 'settlement_given_up',
            message: 'The fetched transcripts may not be charged to the customer. Check the row of the reservation.',
            ...facts,
          });
          return;
        }
        this.metrics.settlementRetries.inc();
        const delayMs = Math.min(retryDelayMs(attempt), Math.ceil(remainingMs));
        this.logger.warn({ event: 'settlement_retried', ...facts, delayMs });
        await sleep(delayMs, undefined, { signal: this.closing.signal }).catch(() => undefined);
      }
    }
  }
}
