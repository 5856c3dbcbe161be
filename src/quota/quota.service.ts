import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { wasRolledBack } from '../database/database-unavailable.js';
import { inOrganizationTurn } from '../database/organization-turns.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { retryConflicts } from '../database/retry-conflicts.js';
import type { QuotaState } from '../domain/errors.js';
import { UnknownOrganizationError } from '../organizations/organization-errors.js';
import { inSpan } from '../observability/tracing/tracer.js';
import {
  CANCEL,
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

/** An attempt to end a reservation, for the log. */
interface Ending {
  reservationId: string;
  fetched: number;
}

/**
 * Reserves and settles quota. Both are one statement, a function in the database that locks the organization first, so
 * they are exact with any number of processes.
 */
@Injectable()
export class QuotaService implements OnApplicationShutdown {
  private readonly logger = new Logger(QuotaService.name);
  private readonly settling = new Set<Promise<boolean>>();
  private readonly closing = new AbortController();
  /** The organization of each reservation that this process has made and not yet ended, for its turn. */
  private readonly organizationOf = new Map<string, string>();

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly events: QuotaEvents,
  ) {}

  /**
   * Holds `required` transcripts of this month's quota, or refuses when they would pass the limit in force. A call that
   * requires none is always granted. When it throws, nothing is held: a reservation of which nobody knows whether it was
   * made is cancelled, also when it is made later.
   *
   * @throws UnknownOrganizationError, and the driver's errors when the database is unavailable
   */
  async reserve(request: ReservationRequest): Promise<Reservation> {
    const id = randomUUID();
    const { organizationId, keyId, requestId, channelId, required, leaseSeconds } = request;
    const leaseEndsAtMs = performance.now() + leaseSeconds * 1000;
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const names = [id, organizationId, keyId, requestId, channelId];
    const values = [...names, required, leaseSeconds, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY];
    const pending = (result: Promise<ReserveRow[]>): void => {
      void this.untilSettled(this.cancelUnlessRefused(names, result, leaseEndsAtMs));
    };
    const [row] = await queryWithDeadline<ReserveRow[]>(this.database, RESERVE, values, { organizationId, pending });
    if (!row) throw new UnknownOrganizationError(organizationId);
    const quota = quotaState(row);
    this.events.count(row.reservation_id === null ? 'refused' : 'granted');
    if (row.reservation_id === null) return { granted: false, quota };
    this.organizationOf.set(id, organizationId);
    return { granted: true, id, quota };
  }

  /**
   * Ends a reservation: charges `fetched`, releases the rest. Only the first settlement of a reservation counts. One that
   * comes after the lease charges what still fits under the limit and forfeits the rest.
   *
   * @throws UnknownReservationError, and the driver's errors when the database is unavailable
   */
  async settle(reservationId: string, fetched: number): Promise<void> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const values = [reservationId, fetched, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY];
    // A reservation of another process has a turn of its own.
    const turn = this.organizationOf.get(reservationId) ?? reservationId;
    const [row] = await this.inTurn<SettleRow[]>(turn, SETTLE, values);
    this.organizationOf.delete(reservationId);
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
    const settle = (): Promise<void> => this.settle(reservationId, fetched);
    return this.untilSettled(
      this.settleUntil({ reservationId, fetched }, settle, leaseEndsAtMs).finally(() =>
        this.organizationOf.delete(reservationId),
      ),
    );
  }

  /** What `reserve` would answer, for a call that has nothing to reserve. @throws UnknownOrganizationError */
  async state(organizationId: string): Promise<QuotaState> {
    return quotaState(await this.usageRow(organizationId, false));
  }

  /**
   * This month's figures, all of one moment.
   *
   * @param options.deleted whether to answer for an organization that was deleted too
   * @throws UnknownOrganizationError
   */
  async usage(organizationId: string, { deleted = false } = {}): Promise<Usage> {
    const row = await this.usageRow(organizationId, deleted);
    const remaining = Math.max(0, row.limit_in_force - row.used_count - row.reserved_count);
    return {
      organization: row.id,
      plan: row.plan,
      period: { start: row.period_start.toISOString(), end: row.period_end.toISOString() },
      limit: row.limit_in_force,
      used: row.used_count,
      reserved: row.reserved_count,
      remaining: row.deleted_at === null ? remaining : 0,
      ...(row.deleted_at && { deletedAt: row.deleted_at.toISOString() }),
    };
  }

  /** Recomputes `used` of every stored month from the settled calls, also of an organization that was deleted. */
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

  private async usageRow(organizationId: string, deleted: boolean): Promise<UsageRow> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const values = [organizationId, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY, deleted];
    const [row] = await queryWithDeadline<UsageRow[]>(this.database, USAGE, values);
    if (!row) throw new UnknownOrganizationError(organizationId);
    return row;
  }

  /** Runs a statement that takes the organization's lock. */
  private inTurn<Rows>(organizationId: string, statement: string, values: readonly unknown[]): Promise<Rows> {
    return inOrganizationTurn(this.database, organizationId, () =>
      retryConflicts(() => this.database.query<Rows>(statement, [...values])),
    );
  }

  /**
   * Ends a reservation whose answer came too late or not at all. Its call was refused, so it must not wait for its lease.
   *
   * @param names the reservation, its organization, key, request and channel
   */
  private async cancelUnlessRefused(
    names: readonly string[],
    result: Promise<ReserveRow[]>,
    leaseEndsAtMs: number,
  ): Promise<boolean> {
    const [reservationId = '', organizationId = ''] = names;
    try {
      const [row] = await result;
      if (!row || row.reservation_id === null) return true;
    } catch (error) {
      if (wasRolledBack(error)) return true;
    }
    const cancel = async (): Promise<void> => void (await this.inTurn(organizationId, CANCEL, names));
    return this.settleUntil({ reservationId, fetched: 0 }, cancel, leaseEndsAtMs);
  }

  /** Makes shutdown wait for it. */
  private untilSettled(work: Promise<boolean>): Promise<boolean> {
    const settling = work.finally(() => this.settling.delete(settling));
    this.settling.add(settling);
    return settling;
  }

  private async settleUntil(ending: Ending, settle: () => Promise<void>, leaseEndsAtMs: number): Promise<boolean> {
    let maybeCharged = false;
    for (let attempt = 1; ; attempt += 1) {
      const last = this.closing.signal.aborted;
      try {
        await inSpan('quota.settle', { 'quota.fetched': ending.fetched, 'quota.attempt': attempt }, settle);
        return true;
      } catch (error) {
        maybeCharged ||= ending.fetched > 0 && mayHaveBeenCarriedOut(error);
        const remainingMs = leaseEndsAtMs - performance.now();
        const giveUp = last || remainingMs <= 0 || error instanceof UnknownReservationError;
        const facts = { ...ending, attempt, cause: String(error) };
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
        const delayMs = Math.min(retryDelayMs(attempt), Math.ceil(remainingMs));
        this.logger.warn({ event: 'settlement_retried', ...facts, delayMs });
        await sleep(delayMs, undefined, { signal: this.closing.signal }).catch(() => undefined);
      }
    }
  }
}

function quotaState(row: ReserveRow | UsageRow): QuotaState {
  return {
    limit: row.limit_in_force,
    used: row.used_count,
    reserved: row.reserved_count,
    resetAt: row.period_end,
    asOf: row.decided_at,
  };
}
