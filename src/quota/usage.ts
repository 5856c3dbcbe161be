import { ApiProperty } from '@nestjs/swagger';
import { PLANS, type Plan } from '../domain/plan.js';
import { count, dateTime } from '../http/response-docs.js';

// ISO 8601 throughout; a month is written as `2026-05`. Counts are transcripts.

export class UsagePeriod {
  @ApiProperty(dateTime('The start of the month (UTC).'))
  start: string;

  @ApiProperty(dateTime('The start of the next month (UTC), when the quota resets.'))
  end: string;
}

export class MonthUsed {
  @ApiProperty({ description: 'The calendar month (UTC).' })
  period: string;

  @ApiProperty(count('Transcripts charged in the month.'))
  used: number;
}

/** An organization's quota in the current calendar month (UTC). */
export class Usage {
  @ApiProperty({ description: 'The ID of the organization.' })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'The plan of the organization.' })
  plan: Plan;

  @ApiProperty({ description: 'The calendar month (UTC) that the counts apply to.' })
  period: UsagePeriod;

  @ApiProperty(count('The number of transcripts that the organization can fetch per month.'))
  limit: number;

  @ApiProperty(count('Transcripts charged this month.'))
  used: number;

  @ApiProperty(count('Transcripts reserved by requests in progress.'))
  reserved: number;

  @ApiProperty(count('Transcripts that can still be reserved this month.'))
  remaining: number;

  @ApiProperty({
    type: [MonthUsed],
    description:
      'The current month and the five before it, newest first. Months in which nothing was charged, and months whose usage ' +
      'was pruned, are absent.',
  })
  history: MonthUsed[];

  /** Only set for a deleted organization, whose usage operators can read. */
  deletedAt?: string;
}

export class VerifiedPeriod {
  @ApiProperty({ description: 'The month, such as `2026-05`.' })
  period: string;

  @ApiProperty(count('The number of charged transcripts that the quota is based on.'))
  used: number;

  @ApiProperty(count('The sum of the charges of all settled calls.'))
  recomputed: number;

  @ApiProperty(count('Transcripts that were fetched but settled too late to be charged.'))
  forfeited: number;

  @ApiProperty(count('The number of settled calls.'))
  settledCalls: number;
}

/** The stored count of each month compared with the sum of its settled calls. */
export class Verification {
  @ApiProperty({ description: 'Whether `used` equals `recomputed` in every month.' })
  exact: boolean;

  @ApiProperty({ type: [VerifiedPeriod], description: 'The months within the retention period, oldest first.' })
  periods: VerifiedPeriod[];
}

/** A row of a quota's state, which `quota_reserve_as` returns as well. */
export interface QuotaRow {
  limit_in_force: number;
  used_count: number;
  reserved_count: number;
  period_end: Date;
  decided_at: Date;
}

/** A row of `QUOTA_STATE`. */
export interface QuotaStateRow extends QuotaRow {
  id: string;
  plan: Plan;
  period_start: Date;
  deleted_at: Date | null;
}

/** A row of `USAGE`. */
export interface UsageRow extends QuotaStateRow {
  history: MonthUsed[];
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
             AND leased_until > clock.now), 0)::integer AS reserved_count ${more}
    FROM organizations organization, clock
    WHERE organization.id = $1`;

/** Rows are `QuotaStateRow`s, also of deleted organizations. Every call with nothing to fetch reads one. */
export const QUOTA_STATE = stateWith('');

/** Rows are `UsageRow`s, also of deleted organizations. */
export const USAGE = stateWith(`, coalesce((
           SELECT json_agg(json_build_object('period', to_char(period_start, 'YYYY-MM'), 'used', used)
                           ORDER BY period_start DESC)
             FROM quota_periods WHERE organization_id = organization.id AND used > 0
               AND period_start > quota_period(clock.now) - interval '6 months'
               AND period_start <= quota_period(clock.now)), '[]') AS history`);
