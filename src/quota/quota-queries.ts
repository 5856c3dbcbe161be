import type { Plan } from '../domain/plan.js';
import type { MonthUsed } from './usage.js';

/** A row of `quota_reserve_as`; it returns none for an unknown organization. */
export interface ReserveRow {
  /** Null when the reservation was refused. */
  reservation_id: string | null;
  limit_in_force: number;
  used_count: number;
  reserved_count: number;
  period_end: Date;
  decided_at: Date;
}

export const RESERVE = `
  SELECT reservation_id, limit_in_force, used_count, reserved_count, period_end, decided_at
    FROM quota_reserve_as($1, $2, $3, $4, $5, $6, $7, $8, $9)`;

/** Cancels a reservation with an unknown outcome, including one that is created later. */
export const CANCEL = 'SELECT quota_cancel($1, $2, $3, $4, $5)';

/** A row of `quota_settle`; it returns none for an unknown reservation. */
export interface SettleRow {
  /** False when the reservation was already settled, with these counts. */
  first: boolean;
  charged_count: number;
  forfeited_count: number;
}

export const SETTLE = 'SELECT first, charged_count, forfeited_count FROM quota_settle($1, $2, $3, $4)';

export interface UsageRow {
  id: string;
  plan: Plan;
  limit_in_force: number;
  period_start: Date;
  period_end: Date;
  decided_at: Date;
  deleted_at: Date | null;
  used_count: number;
  reserved_count: number;
  /** Null when it was not asked for. */
  history: MonthUsed[] | null;
}

// One statement, so that all values are from one snapshot. $4: include deleted organizations; $5: include the history.
export const USAGE = `
  WITH clock AS MATERIALIZED (SELECT quota_now() AS now)
  SELECT organization.id, organization.plan, organization.deleted_at, clock.now AS decided_at,
         quota_limit(organization.monthly_limit, organization.plan, $2, $3) AS limit_in_force,
         quota_period(clock.now)::timestamp AT TIME ZONE 'UTC' AS period_start,
         quota_period_end(quota_period(clock.now)) AS period_end,
         coalesce((SELECT used FROM quota_periods
           WHERE organization_id = organization.id AND period_start = quota_period(clock.now)), 0) AS used_count,
         coalesce((SELECT sum(required) FROM quota_reservations
           WHERE organization_id = organization.id AND period_start = quota_period(clock.now)
             AND settled_at IS NULL AND lapsed_at IS NULL AND leased_until > clock.now), 0)::integer AS reserved_count,
         CASE WHEN $5 THEN coalesce((
           SELECT json_agg(json_build_object('period', to_char(period_start, 'YYYY-MM'), 'used', used)
                           ORDER BY period_start DESC)
             FROM quota_periods WHERE organization_id = organization.id AND used > 0
               AND period_start > quota_period(clock.now) - interval '6 months'
               AND period_start <= quota_period(clock.now)), '[]') END AS history
    FROM organizations organization, clock
    WHERE organization.id = $1 AND (organization.deleted_at IS NULL OR $4)`;

export interface VerifyRow {
  period: string;
  used_count: number;
  recomputed_count: number;
  forfeited_count: number;
  settled_calls: number;
}

// One statement, so that a concurrent settlement is included in both sums or in neither.
export const VERIFY = `
  SELECT to_char(period_start, 'YYYY-MM') AS period, coalesce(counted.used, 0) AS used_count,
         coalesce(booked.charged, 0)::integer AS recomputed_count,
         coalesce(booked.forfeited, 0)::integer AS forfeited_count,
         coalesce(booked.calls, 0)::integer AS settled_calls
    FROM (SELECT period_start, used FROM quota_periods WHERE organization_id = $1) counted
    FULL JOIN (
      SELECT period_start, sum(charged) AS charged, sum(forfeited) AS forfeited, count(*) AS calls
        FROM quota_reservations WHERE organization_id = $1 AND settled_at IS NOT NULL GROUP BY period_start
    ) booked USING (period_start)
    ORDER BY period_start`;
