import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { promptQuery } from '../database/prompt-query.js';
import type { QuotaState } from '../domain/errors.js';
import { UnknownOrganizationError } from '../organizations/organization-errors.js';
import { inSpan } from '../tracing/tracer.js';
import {
  RESERVE,
  SETTLE,
  USAGE,
  VERIFY,
  type ReserveRow,
  type SettleRow,
  type UsageRow,
  type VerifyRow,
} from './ledger-queries.js';
import { QuotaEvents } from './quota-events.js';
import { retryDelayMs } from './retry-delay.js';
import { mayHaveBeenCarriedOut } from './statement-outcome.js';
import { UnknownReservationError } from './unknown-reservation-error.js';
import type { Usage, Verification } from './usage.js';

export interface ReservationRequest {
  organizationId: string;
  keyId: string;
  /** What the caller calls the call; kept for people to find it by, and identifies nothing here. */
  requestId: string;
  channelId: string;
  /** The most that the call can cost, in transcripts. */
  required: number;
  /** How long the reservation holds, by the database's clock. */
  leaseSeconds: number;
}

/** `quota` is how it stands after the decision: a granted reservation counts in `reserved`. */
export type Reservation = { granted: true; id: string; quota: QuotaState } | { granted: false; quota: QuotaState };

/**
 * Reserves and settles quota. Both are one round trip to a function in the database that locks the organization first,
 * so they are exact with any number of processes.
 */
@Injectable()
export class QuotaService implements OnApplicationShutdown {
  private readonly logger = new Logger(QuotaService.name);
  private readonly settling = new Set<Promise<boolean>>();
  private readonly closing = new AbortController();

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly events: QuotaEvents,
  ) {}

  /**
   * Holds `required` transcripts of this month's quota, or refuses when they would pass the limit in force. A call that
   * requires none is always granted.
   *
   * @throws UnknownOrganizationError, and the driver's errors when the database is away
   */
  async reserve(request: ReservationRequest): Promise<Reservation> {
    const leaseEndsAtMs = performance.now() + request.leaseSeconds * 1000;
    const values = [
      request.organizationId,
      request.keyId,
      request.requestId,
      request.channelId,
      request.required,
      request.leaseSeconds,
      this.environment.PLAN_FREE_MONTHLY,
      this.environment.PLAN_PRO_MONTHLY,
    ];
    // Its call was refused meanwhile: what it holds is given back, and does not wait for its lease.
    const giveBack = ([late]: ReserveRow[]): void => {
      if (late && late.reservation_id !== null) void this.settleWithRetry(late.reservation_id, 0, leaseEndsAtMs);
    };
    const [row] = await promptQuery<ReserveRow[]>(this.database, RESERVE, values, giveBack);
    if (!row) throw new UnknownOrganizationError(request.organizationId);
    const quota = {
      limit: row.limit_in_force,
      used: row.used_count,
      reserved: row.reserved_count,
      resetAt: row.period_end,
    };
    this.events.count(row.reservation_id === null ? 'refused' : 'granted');
    return row.reservation_id === null ? { granted: false, quota } : { granted: true, id: row.reservation_id, quota };
  }

  /**
   * Ends a reservation: charges `fetched`, releases the rest. Only the first settlement of a reservation counts. One that
   * comes after the lease charges what still fits under the limit and forfeits the rest.
   *
   * @throws UnknownReservationError, and the driver's errors when the database is away
   */
  async settle(reservationId: string, fetched: number): Promise<void> {
    const [row] = await this.database.query<SettleRow[]>(SETTLE, [
      reservationId,
      fetched,
      this.environment.PLAN_FREE_MONTHLY,
      this.environment.PLAN_PRO_MONTHLY,
    ]);
    if (!row) throw new UnknownReservationError(reservationId);
    if (!row.first) return;
    this.events.count('settled');
    this.events.charge(row.charged_count);
    if (row.forfeited_count === 0) return;
    this.events.count('forfeited');
    this.logger.warn({
      event: 'settlement_forfeited',
      message: 'Settled after its lease, or fetched more than was reserved.',
      reservationId,
      charged: row.charged_count,
      forfeited: row.forfeited_count,
    });
  }

  /**
   * Settles, and tries again with growing pauses while the lease lives. Never rejects: false when it was given up.
   *
   * @param leaseEndsAtMs when to give up, in milliseconds of `performance.now()`
   */
  settleWithRetry(reservationId: string, fetched: number, leaseEndsAtMs: number): Promise<boolean> {
    const settling = this.settleUntil(reservationId, fetched, leaseEndsAtMs).finally(() =>
      this.settling.delete(settling),
    );
    this.settling.add(settling);
    return settling;
  }

  /** What `reserve` would tell, for a call that has nothing to reserve. @throws UnknownOrganizationError */
  async state(organizationId: string): Promise<QuotaState> {
    const row = await this.usageRow(organizationId);
    return {
      limit: row.limit_in_force,
      used: row.used_count,
      reserved: row.reserved_count,
      resetAt: row.period_end,
    };
  }

  /** This month's figures, all of one moment. @throws UnknownOrganizationError */
  async usage(organizationId: string): Promise<Usage> {
    const row = await this.usageRow(organizationId);
    return {
      organization: row.id,
      plan: row.plan,
      period: { start: row.period_start.toISOString(), end: row.period_end.toISOString() },
      limit: row.limit_in_force,
      used: row.used_count,
      reserved: row.reserved_count,
      remaining: Math.max(0, row.limit_in_force - row.used_count - row.reserved_count),
    };
  }

  /** Recomputes `used` of every month that is kept from the settled calls. */
  async verify(organizationId: string): Promise<Verification> {
    const rows = await this.database.query<VerifyRow[]>(VERIFY, [organizationId]);
    return {
      exact: rows.every((row) => row.used_count === row.recomputed_count),
      periods: rows.map((row) => ({
        period: row.period,
        used: row.used_count,
        recomputed: row.recomputed_count,
        forfeited: row.forfeited_count,
        settledCalls: row.settled_calls,
      })),
    };
  }

  /** Settlements that wait for the database get one last try each, before the database is closed. */
  async onApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.settling);
  }

  private async usageRow(organizationId: string): Promise<UsageRow> {
    const [row] = await promptQuery<UsageRow[]>(this.database, USAGE, [
      organizationId,
      this.environment.PLAN_FREE_MONTHLY,
      this.environment.PLAN_PRO_MONTHLY,
    ]);
    if (!row) throw new UnknownOrganizationError(organizationId);
    return row;
  }

  private async settleUntil(reservationId: string, fetched: number, leaseEndsAtMs: number): Promise<boolean> {
    let maybeCharged = false;
    for (let attempt = 1; ; attempt += 1) {
      const last = this.closing.signal.aborted;
      try {
        await inSpan('quota.settle', { 'quota.fetched': fetched, 'quota.attempt': attempt }, () =>
          this.settle(reservationId, fetched),
        );
        return true;
      } catch (error) {
        maybeCharged ||= mayHaveBeenCarriedOut(error);
        const leftMs = leaseEndsAtMs - performance.now();
        const giveUp = last || leftMs <= 0 || error instanceof UnknownReservationError;
        const facts = { reservationId, fetched, attempt, cause: String(error) };
        if (giveUp) {
          this.events.count('given_up');
          this.logger.error({
            event: 'settlement_given_up',
            message: maybeCharged
              ? 'The database did not answer in time. It may still charge the customer: see the row of the reservation.'
              : 'The customer is not charged for what was fetched.',
            ...facts,
            charged: maybeCharged ? 'unknown' : 'no',
          });
          return false;
        }
        this.events.count('retried');
        const delayMs = Math.min(retryDelayMs(attempt), Math.ceil(leftMs));
        this.logger.warn({ event: 'settlement_retried', ...facts, delayMs });
        await sleep(delayMs, undefined, { signal: this.closing.signal }).catch(() => undefined);
      }
    }
  }
}
