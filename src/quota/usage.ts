import type { Plan } from '../domain/plan.js';

/** An organization's quota in the current calendar month (UTC); counts are transcripts. */
export interface Usage {
  /** The organization's id. */
  organization: string;
  plan: Plan;
  /** ISO 8601; `end` is the first moment of the next month. */
  period: { start: string; end: string };
  limit: number;
  used: number;
  /** Reserved by running calls. */
  reserved: number;
  remaining: number;
  /** The current month and the five before, newest first, without those in which nothing was charged or that were pruned. */
  history: MonthUsed[];
  /** ISO 8601; only set for a deleted organization. */
  deletedAt?: string;
}

/** What was charged in a calendar month (UTC), in transcripts. */
export interface MonthUsed {
  /** `2026-05` */
  period: string;
  used: number;
}

/** The stored count of each month compared with the sum of its settled calls. */
export interface Verification {
  /** Whether both agree in every month. */
  exact: boolean;
  periods: VerifiedPeriod[];
}

export interface VerifiedPeriod {
  /** `2026-05` */
  period: string;
  used: number;
  recomputed: number;
  /** Transcripts that were fetched but settled too late to be charged. */
  forfeited: number;
  settledCalls: number;
}

/** A row of `USAGE`. */
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

/** Rows are `VerifiedPeriod`s. */
// One statement, so that a concurrent settlement is included in both sums or in neither.
export const VERIFY = `
  SELECT to_char(period_start, 'YYYY-MM') AS period, coalesce(counted.used, 0) AS used,
         coalesce(booked.charged, 0)::integer AS recomputed,
         coalesce(booked.forfeited, 0)::integer AS forfeited,
         coalesce(booked.calls, 0)::integer AS "settledCalls"
    FROM (SELECT period_start, used FROM quota_periods WHERE organization_id = $1) counted
    FULL JOIN (
      SELECT period_start, sum(charged) AS charged, sum(forfeited) AS forfeited, count(*) AS calls
        FROM quota_reservations WHERE organization_id = $1 AND settled_at IS NOT NULL GROUP BY period_start
    ) booked USING (period_start)
    ORDER BY period_start`;
