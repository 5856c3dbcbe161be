import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { mayHaveBeenExecuted } from '../database/database-errors.js';
import { inTurn, queryWithDeadline } from '../database/query-with-deadline.js';
import { InvalidApiKeyError, remainingQuota, type QuotaCounts, type QuotaState } from '../domain/errors.js';
import { UnknownOrganizationError } from '../organizations/organization-errors.js';
import { QuotaMetrics } from './quota-metrics.js';
import { SettlementRetries, type OpenReservation } from './settlement-retries.js';
import { QUOTA_STATE, QUOTA_USAGE, type QuotaRow, type QuotaStateRow, type UsageRow } from './quota-state.js';
import type { Usage } from './usage.dto.js';
import { verifyUsage, type Verification } from './usage-verification.js';

/** A row of `quota_reserve_within`; it returns none for an unknown organization. */
interface ReserveRow extends QuotaRow {
  /** Null when the reservation was refused. */
  reservation_id: string | null;
  /** Of the key; these are null when it has no limit. */
  key_limit: number | null;
  key_used_count: number | null;
  key_reserved_count: number | null;
}

const RESERVE = 'SELECT * FROM quota_reserve_within($1, $2, $3, $4)';
const CANCEL = 'SELECT quota_cancel($1)';

/** A row of `quota_settle`; it returns none for an unknown reservation. */
interface SettleRow {
  /** False when the reservation was already settled, with these counts. */
  first: boolean;
  charged_count: number;
  forfeited_count: number;
}

const SETTLE = 'SELECT * FROM quota_settle($1, $2, $3, $4)';

/** Who is charged for a call, and the id by which the caller knows it. */
export interface Payer {
  organizationId: string;
  keyId: string;
  /** Stored for support; the reservation has an id of its own. */
  requestId: string;
  /** Whether the library of the organization has texts. */
  keeps?: boolean | undefined;
}

export interface ReservationRequest extends Payer {
  /** What the call is about, e.g. the ID of a channel; stored for support, in the column `channel_id`. */
  resource: string;
  /** The most that the call can cost, in transcripts. */
  required: number;
  /** How long the reservation is valid, by the database's clock. */
  leaseSeconds: number;
}

export interface ReservationResult {
  /** Undefined when nothing was required or too little quota remains. */
  reservation: OpenReservation | undefined;
  /** The state of the quota after the decision, this reservation included. */
  quota: QuotaState;
}

/**
 * Reserves and settles quota. Each operation is one statement: a database function that locks the organization first, so
 * the quota is exact with any number of processes.
 */
@Injectable()
export class QuotaService {
  private readonly logger = new Logger(QuotaService.name);

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly metrics: QuotaMetrics,
    private readonly retries: SettlementRetries,
  ) {}

  /**
   * Reserves `required` transcripts of this month's quota, or refuses when they would exceed the limit in force or that of the
   * key. When this throws, nothing stays reserved: a reservation with an unknown outcome is cancelled, even if the database
   * creates it later.
   *
   * @throws InvalidApiKeyError, and the driver's errors when the database is unavailable
   */
  async reserve(request: ReservationRequest): Promise<ReservationResult> {
    const { organizationId, keyId, requestId, resource, required, leaseSeconds } = request;
    // Reading the state neither waits for the organization's lock nor leaves a row.
    if (required === 0) {
      const row = await this.read<QuotaStateRow>(QUOTA_STATE, organizationId, keyId);
      const quota = quotaState(row?.deleted_at ? undefined : row);
      return { reservation: undefined, quota: { ...quota, ...(row?.key && { key: row.key }) } };
    }
    const leaseEndsAtMs = performance.now() + leaseSeconds * 1000;
    const reservation = { id: newReservationId(), organizationId, leaseEndsAtMs };
    const ids = { id: reservation.id, organization_id: organizationId, key_id: keyId };
    const row = JSON.stringify({ ...ids, request_id: requestId, channel_id: resource, required });
    const values = [row, leaseSeconds, ...this.planLimits];
    const reserving = queryWithDeadline<ReserveRow[]>(this.database, RESERVE, values, organizationId);
    const [reserved] = await reserving.catch((error: unknown) => {
      if (mayHaveBeenExecuted(error)) void this.cancel(reservation, row);
      throw error;
    });
    const quota = { ...quotaState(reserved), key: keyCounts(reserved) };
    const granted = reserved?.reservation_id === reservation.id;
    this.metrics.reservations.inc({ outcome: granted ? 'granted' : 'refused' });
    return { reservation: granted ? reservation : undefined, quota };
  }

  /**
   * Settles a reservation: charges `fetched` and releases the rest. Only the first settlement of a reservation counts.
   * After the lease has expired, it charges what still fits under the limits and forfeits the rest.
   *
   * @throws the driver's errors when the database is unavailable
   */
  async settle(reservationId: string, fetched: number): Promise<void> {
    const values = [reservationId, fetched, ...this.planLimits];
    const [row] = await this.database.query<SettleRow[]>(SETTLE, values);
    if (!row) throw new Error(`Reservation ${reservationId} does not exist.`);
    if (!row.first) return;
    this.countSettlement(row.charged_count);
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

  /** Settles a reservation, with retries until its lease ends. Never rejects. */
  settleWithRetry(reservation: OpenReservation, fetched: number): Promise<void> {
    return this.retries.untilSettled(reservation, fetched, () =>
      inTurn(this.database, reservation.organizationId, () => this.settle(reservation.id, fetched)),
    );
  }

  /** Counts a settlement; another feature can settle in a statement together with changes of its own. */
  countSettlement(charged: number): void {
    this.metrics.settlements.inc({ outcome: 'settled' });
    this.metrics.chargedTranscripts.inc(charged);
  }

  /**
   * This month's usage of an organization, deleted or not, and that of the months before.
   *
   * @param keyId the key of the organization whose own limit is to be shown
   * @throws UnknownOrganizationError
   */
  async usage(organizationId: string, keyId: string | null = null): Promise<Usage> {
    const row = await this.read<UsageRow>(QUOTA_USAGE, organizationId, keyId);
    if (!row) throw new UnknownOrganizationError(organizationId);
    const counts = countsOf(row);
    const remaining = row.deleted_at ? 0 : remainingQuota(counts);
    return {
      organization: row.id,
      plan: row.plan,
      period: { start: row.period_start.toISOString(), end: row.period_end.toISOString() },
      ...counts,
      remaining,
      history: row.history,
      library: {
        videos: row.library_videos,
        megabytes: row.library_megabytes,
        limitMegabytes: this.environment.LIBRARY_MAX_MEGABYTES,
      },
      ...(row.key && { key: { ...row.key, remaining: Math.min(remaining, remainingQuota(row.key)) } }),
      ...(row.deleted_at && { deletedAt: row.deleted_at.toISOString() }),
    };
  }

  /** Recomputes `used` of every stored month from the settled calls; includes deleted organizations. */
  verify(organizationId: string): Promise<Verification> {
    return verifyUsage(this.database, organizationId);
  }

  private get planLimits(): readonly [free: number, pro: number] {
    return [this.environment.PLAN_FREE_MONTHLY, this.environment.PLAN_PRO_MONTHLY];
  }

  private async read<Row>(statement: string, organizationId: string, ...more: unknown[]): Promise<Row | undefined> {
    const values = [organizationId, ...this.planLimits, ...more];
    const [row] = await queryWithDeadline<Row[]>(this.database, statement, values);
    return row;
  }

  /**
   * Cancels a reservation with an unknown outcome: its call was refused, so the quota is released before the lease ends.
   * Should the database execute the reservation later, it finds the cancellation and reserves nothing.
   */
  private cancel(reservation: OpenReservation, row: string): Promise<void> {
    return this.retries.untilSettled(reservation, 0, async () => {
      await inTurn(this.database, reservation.organizationId, () => this.database.query(CANCEL, [row]));
    });
  }
}

/** A UUID of version 7. It begins with the time, so that the newest ones share the last pages of their index. */
function newReservationId(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** @throws InvalidApiKeyError without a row: the organization was deleted after its key was checked */
function quotaState(row: QuotaRow | undefined): QuotaState {
  if (!row) throw new InvalidApiKeyError('revoked');
  return { ...countsOf(row), resetAt: row.period_end, asOf: row.decided_at };
}

function countsOf(row: QuotaRow): QuotaCounts {
  return { limit: row.limit_in_force, used: row.used_count, reserved: row.reserved_count };
}

function keyCounts(row: ReserveRow | undefined): QuotaCounts | undefined {
  if (!row || row.key_limit === null) return undefined;
  return { limit: row.key_limit, used: row.key_used_count ?? 0, reserved: row.key_reserved_count ?? 0 };
}
