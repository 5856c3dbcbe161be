import type { QuotaCounts } from '../domain/errors.js';
import type { Plan } from '../domain/plan.js';
import type { MonthUsed } from './usage.dto.js';

/** A row of a quota's state, which `quota_reserve_within` returns as well. */
export interface QuotaRow {
  limit_in_force: number;
  used_count: number;
  reserved_count: number;
  period_end: Date;
  decided_at: Date;
}

export interface QuotaStateRow extends QuotaRow {
  id: string;
  plan: Plan;
  period_start: Date;
  deleted_at: Date | null;
  /** Null for a key without a limit. */
  key: QuotaCounts | null;
}

export interface UsageRow extends QuotaStateRow {
  history: MonthUsed[];
  library_videos: number;
  library_megabytes: number;
}

// One statement, so that all values are from one snapshot.
const stateWith = (more: string): string => `
  WITH clock AS MATERIALIZED (SELECT clock_now() AS now)
  SELECT organization.id, organization.plan, organization.deleted_at, clock.now AS decided_at,
         quota_limit(organization.monthly_limit, organization.plan, $2, $3) AS limit_in_force,
         quota_period(clock.now)::timestamp AT TIME ZONE 'UTC' AS period_start,
         quota_period_end(quota_period(clock.now)) AS period_end,
         coalesce((SELECT used FROM quota_periods
           WHERE organization_id = organization.id AND period_start = quota_period(clock.now)), 0) AS used_count,
         coalesce((SELECT sum(required) FROM quota_open_reservations
           WHERE organization_id = organization.id AND period_start = quota_period(clock.now)
             AND leased_until > clock.now), 0)::integer AS reserved_count,
         (SELECT json_build_object('limit', key.monthly_limit,
             'used', coalesce((SELECT used FROM quota_key_periods
               WHERE organization_id = organization.id AND period_start = quota_period(clock.now)
                 AND quota_key_id = key.quota_key_id), 0),
             'reserved', coalesce((SELECT sum(required) FROM quota_open_reservations
               WHERE organization_id = organization.id AND period_start = quota_period(clock.now)
                 AND leased_until > clock.now AND quota_key_id = key.quota_key_id), 0))
            FROM api_keys key WHERE key.id = $4 AND key.monthly_limit IS NOT NULL) AS key ${more}
    FROM organizations organization, clock
    WHERE organization.id = $1`;

/**
 * Rows are `QuotaStateRow`s, also of deleted organizations. Every call with nothing to fetch reads one. The fourth value is the ID
 * of a key of the organization, or null.
 */
export const QUOTA_STATE = stateWith('');

/** The same for `UsageRow`s. */
export const QUOTA_USAGE = stateWith(`, coalesce((
           SELECT json_agg(json_build_object('period', to_char(period_start, 'YYYY-MM'), 'used', used)
                           ORDER BY period_start DESC)
             FROM quota_periods WHERE organization_id = organization.id AND used > 0
               AND period_start > quota_period(clock.now) - interval '6 months'
               AND period_start <= quota_period(clock.now)), '[]') AS history,
         coalesce((SELECT videos FROM libraries WHERE organization_id = organization.id), 0) AS library_videos,
         coalesce((SELECT library_megabytes(bytes) FROM libraries WHERE organization_id = organization.id), 0) AS library_megabytes`);
