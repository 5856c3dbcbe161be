import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';

/** What a pruning removed. */
export interface Pruned {
  /** Whole months that are kept beside the current one. */
  retentionMonths: number;
  /** The oldest month that is kept, `2024-11`. */
  keptFrom: string;
  /** Months of an organization, each with its count and its calls. */
  periods: number;
  /** Rows of calls. */
  calls: number;
}

interface OldPeriod {
  organization_id: string;
  period_start: string;
}

const KEPT_FROM = `
  SELECT to_char(quota_period(quota_now()) - make_interval(months => $1), 'YYYY-MM-DD') AS kept_from`;

// By organization, so that the index leads to the old rows alone.
const OLD_PERIODS = `
  SELECT organization.id AS organization_id, old.period_start::text AS period_start
    FROM organizations organization CROSS JOIN LATERAL (
      SELECT period_start FROM quota_periods
        WHERE organization_id = organization.id AND period_start < $1::date
      UNION
      SELECT period_start FROM quota_reservations
        WHERE organization_id = organization.id AND period_start < $1::date
    ) old
    ORDER BY old.period_start, organization.id`;

const PRUNE = 'SELECT * FROM quota_prune($1, $2::date)';

/** Removes the usage that is older than the retention. */
@Injectable()
export class UsageRetention {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /**
   * Removes the months before the retention, each with its calls in one transaction, so that what is left adds up at any
   * moment, also when this is cut off in the middle.
   */
  async prune(): Promise<Pruned> {
    const retentionMonths = this.environment.USAGE_RETENTION_MONTHS;
    const [row] = await this.database.query<{ kept_from: string }[]>(KEPT_FROM, [retentionMonths]);
    if (!row) throw new Error('The database did not tell the time.');
    const pruned = { retentionMonths, keptFrom: row.kept_from.slice(0, 7), periods: 0, calls: 0 };
    for (const old of await this.database.query<OldPeriod[]>(OLD_PERIODS, [row.kept_from])) {
      const [removed] = await this.database.query<{ periods: number; calls: number }[]>(PRUNE, [
        old.organization_id,
        old.period_start,
      ]);
      pruned.periods += removed?.periods ?? 0;
      pruned.calls += removed?.calls ?? 0;
    }
    return pruned;
  }
}
