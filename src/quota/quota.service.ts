import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { mayHaveBeenExecuted } from '../database/database-errors.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { QuotaState } from '../domain/errors.js';
import { inSpan } from '../observability/tracing/tracer.js';
import { UnknownOrganizationError } from '../organizations/organization-errors.js';
import { QuotaMetrics } from './quota-metrics.js';
import { USAGE, VERIFY, type Usage, type UsageRow, type Verification, type VerifiedPeriod } from './usage.js';

const RETRY_DELAY_FIRST_MS = 100;
const RETRY_DELAY_MAX_MS = 5_000;

/** A row of `quota_reserve_as`; it returns none for an unknown organization. */
interface ReserveRow {
  /** Null when the reservation was refused. */
  reservation_id: string | null;
  limit_in_force: number;
  used_count: number;
  reserved_count: number;
  period_end: Date;
  decided_at: Date;
}

const RESERVE = 'SELECT * FROM quota_reserve_as($1, $2, $3, $4, $5, $6, $7, $8, $9)';
const CANCEL = 'SELECT quota_cancel($1, $2, $3, $4, $5)';

/** A row of `quota_settle`; it returns none for an unknown reservation. */
interface SettleRow {
  /** False when the reservation was already settled, with these counts. */
  first: boolean;
  charged_count: number;
  forfeited_count: number;
}

const SETTLE = 'SELECT * FROM quota_settle($1, $2, $3, $4)';

/** The reservation to settle does not exist. A bug of the caller, so a retry cannot succeed. */
export class UnknownReservationError extends Error {
  constructor(reservationId: string) {
    super(`Reservation ${reservationId} does not exist.`);
    this.name = 'UnknownReservationError';
  }
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

export interface ReservationRequest {
  organizationId: string;
  keyId: string;
  /** The caller's request id, stored for support; the reservation has an id of its own. */
  requestId: string;
  /** What the call is about, e.g. the ID of a channel; stored for support, in the column `channel_id`. */
  resource: string;
  /** The most that the call can cost, in transcripts. */
  required: number;
  /** How long the reservation is valid, by the database's clock. */
  leaseSeconds: number;
}

/** `quota` is the state after the decision: a granted reservation is included in `reserved`. */
export type Reservation = { granted: true; id: string; quota: QuotaState } | { granted: false; quota: QuotaState };

/**
 * Reserves and settles quota. Each operation is one statement: a database function that locks the organization first, so
 * the quota is exact with any number of processes.
 */
@Injectable()
export class QuotaService implements OnApplicationShutdown {
  private readonly logger = new Logger(QuotaService.name);
  private readonly settling = new Set<Promise<boolean>>();
  private readonly closing = new AbortController();

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly metrics: QuotaMetrics,
  ) {}

  /**
   * Reserves `required` transcripts of this month's quota, or refuses when they would exceed the limit in force. A call
   * that requires none is always granted. When this throws, nothing stays reserved: a reservation with an unknown outcome
   * is cancelled, even if the database creates it later.
   *
   * @throws UnknownOrganizationError, and the driver's errors when the database is unavailable
   */
  async reserve(request: ReservationRequest): Promise<Reservation> {
    const id = randomUUID();
    const { organizationId, keyId, requestId, resource, required, leaseSeconds } = request;
    const leaseEndsAtMs = performance.now() + leaseSeconds * 1000;
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const names = [id, organizationId, keyId, requestId, resource] as const;
    const values = [...names, required, leaseSeconds, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY];
    const [row] = await queryWithDeadline<ReserveRow[]>(this.database, RESERVE, values).catch((error: unknown) => {
      if (mayHaveBeenExecuted(error)) void this.cancel(names, leaseEndsAtMs);
      throw error;
    });
    if (!row) throw new UnknownOrganizationError(organizationId);
    const quota = quotaState(row);
    this.metrics.reservations.inc({ outcome: row.reservation_id === null ? 'refused' : 'granted' });
    return row.reservation_id === null ? { granted: false, quota } : { granted: true, id, quota };
  }

  /**
   * Settles a reservation: charges `fetched` and releases the rest. Only the first settlement of a reservation counts.
   * After the lease has expired, it charges what still fits under the limit and forfeits the rest.
   *
   * @throws UnknownReservationError, and the driver's errors when the database is unavailable
   */
  async settle(reservationId: string, fetched: number): Promise<void> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const values = [reservationId, fetched, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY];
    const [row] = await this.database.query<SettleRow[]>(SETTLE, values);
    if (!row) throw new UnknownReservationError(reservationId);
    if (!row.first) return;
    this.metrics.settlements.inc({ outcome: 'settled' });
    this.metrics.chargedTranscripts.inc(row.charged_count);
    if (row.forfeited_count === 0) return;
    this.metrics.settlementsForfeited.inc();
    this.logger.warn({
      event: 'settlement_forfeited',
      message: 'The reservation was settled after its lease expired, or more was fetched than reserved.',
      reservationId,
      charged: row.charged_count,
      forfeited: row.forfeited_count,
    });
  }

  /**
   * Settles a reservation, with retries until the lease ends. Never rejects.
   *
   * @param leaseEndsAtMs when to give up, in milliseconds of `performance.now()`
   * @returns false when it gave up
   */
  settleWithRetry(reservationId: string, fetched: number, leaseEndsAtMs: number): Promise<boolean> {
    return this.untilSettled({ reservationId, fetched }, leaseEndsAtMs, () => this.settle(reservationId, fetched));
  }

  /**
   * Counts reservations that a statement of another feature settled, together with its own changes.
   *
   * @param charged the transcripts that were charged for all of them
   */
  settledElsewhere(reservationIds: readonly string[], charged: number): void {
    this.metrics.settlements.inc({ outcome: 'settled' }, reservationIds.length);
    this.metrics.chargedTranscripts.inc(charged);
  }

  /** The state of the quota, for a call that reserves nothing. @throws UnknownOrganizationError */
  async state(organizationId: string): Promise<QuotaState> {
    return quotaState(await this.usageRow(organizationId));
  }

  /**
   * This month's usage and that of the months before, read in one statement.
   *
   * @param options.deleted whether to include deleted organizations
   * @throws UnknownOrganizationError
   */
  async usage(organizationId: string, { deleted = false } = {}): Promise<Usage> {
    const row = await this.usageRow(organizationId, { deleted, history: true });
    const remaining = Math.max(0, row.limit_in_force - row.used_count - row.reserved_count);
    return {
      organization: row.id,
      plan: row.plan,
      period: { start: row.period_start.toISOString(), end: row.period_end.toISOString() },
      limit: row.limit_in_force,
      used: row.used_count,
      reserved: row.reserved_count,
      remaining: row.deleted_at === null ? remaining : 0,
      history: row.history ?? [],
      ...(row.deleted_at && { deletedAt: row.deleted_at.toISOString() }),
    };
  }

  /** Recomputes `used` of every stored month from the settled calls; includes deleted organizations. */
  async verify(organizationId: string): Promise<Verification> {
    const periods = await this.database.query<VerifiedPeriod[]>(VERIFY, [organizationId]);
    return { exact: periods.every(({ used, recomputed }) => used === recomputed), periods };
  }

  /** Pending settlements are attempted once more before the database closes. */
  async onApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.settling);
  }

  /** @throws UnknownOrganizationError */
  private async usageRow(organizationId: string, { deleted = false, history = false } = {}): Promise<UsageRow> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const values = [organizationId, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY, deleted, history];
    const [row] = await queryWithDeadline<UsageRow[]>(this.database, USAGE, values);
    if (!row) throw new UnknownOrganizationError(organizationId);
    return row;
  }

  /**
   * Cancels a reservation with an unknown outcome: its call was refused, so the quota is released before the lease ends.
   * Should the database execute the reservation later, it finds the cancellation and reserves nothing.
   */
  private cancel(names: readonly [reservationId: string, ...string[]], leaseEndsAtMs: number): Promise<boolean> {
    return this.untilSettled({ reservationId: names[0], fetched: 0 }, leaseEndsAtMs, async () => {
      await this.database.query(CANCEL, [...names]);
    });
  }

  /** Repeats a settlement until it succeeds or the lease ends. Shutdown waits for it. */
  private untilSettled(
    ending: { reservationId: string; fetched: number },
    leaseEndsAtMs: number,
    settle: () => Promise<void>,
  ): Promise<boolean> {
    const settling = this.attempt(ending, leaseEndsAtMs, settle).finally(() => this.settling.delete(settling));
    this.settling.add(settling);
    return settling;
  }

  private async attempt(
    ending: { reservationId: string; fetched: number },
    leaseEndsAtMs: number,
    settle: () => Promise<void>,
  ): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const last = this.closing.signal.aborted;
      try {
        await inSpan('quota.settle', { 'quota.fetched': ending.fetched, 'quota.attempt': attempt }, settle);
        return true;
      } catch (error) {
        const remainingMs = leaseEndsAtMs - performance.now();
        const facts = { ...ending, attempt, cause: String(error) };
        if (last || remainingMs <= 0 || error instanceof UnknownReservationError) {
          this.metrics.settlements.inc({ outcome: 'given_up' });
          this.logger.error({
            event: 'settlement_given_up',
            message: 'The fetched transcripts may not be charged to the customer. Check the row of the reservation.',
            ...facts,
          });
          return false;
        }
        this.metrics.settlementRetries.inc();
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
