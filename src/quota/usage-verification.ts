import { ApiProperty } from '@nestjs/swagger';
import type { DataSource } from 'typeorm';
import { countField } from '../http/response-docs.js';
import { ONE_SNAPSHOT, sumSettledCalls } from './usage-report.js';

export class VerifiedPeriod {
  @ApiProperty({ description: 'The month, such as `2026-05`.' })
  period: string;

  @ApiProperty(countField('The number of charged transcripts that the quota is based on.'))
  used: number;

  @ApiProperty(countField('The sum of the charges of all settled calls.'))
  recomputed: number;

  @ApiProperty(countField('Transcripts that were fetched but settled too late to be charged.'))
  forfeited: number;

  @ApiProperty(countField('The number of settled calls.'))
  settledCalls: number;
}

/** The stored count of each month compared with the sum of its settled calls. */
export class Verification {
  @ApiProperty({ description: 'Whether `used` equals `recomputed` in every month.' })
  exact: boolean;

  @ApiProperty({ type: [VerifiedPeriod], description: 'The months within the retention period, oldest first.' })
  periods: VerifiedPeriod[];
}

const COUNTS = `
  SELECT to_char(period_start, 'YYYY-MM') AS period, used FROM quota_periods WHERE organization_id = $1`;

/** Compares the stored count of every month of an organization with the sum of its settled calls. */
export async function verifyUsage(database: DataSource, organizationId: string): Promise<Verification> {
  const [counts, days] = await database.transaction(ONE_SNAPSHOT, async (manager) => [
    await manager.query<{ period: string; used: number }[]>(COUNTS, [organizationId]),
    await sumSettledCalls(manager, organizationId, '-infinity', 'infinity', 'day'),
  ]);
  const months = new Map<string, VerifiedPeriod>();
  const monthOf = (period: string): VerifiedPeriod => {
    const month = months.get(period) ?? { period, used: 0, recomputed: 0, forfeited: 0, settledCalls: 0 };
    months.set(period, month);
    return month;
  };
  for (const { period, used } of counts) monthOf(period).used = used;
  for (const { group: day, calls, charged, forfeited } of days) {
    const month = monthOf(day.slice(0, 7));
    month.recomputed += charged;
    month.forfeited += forfeited;
    month.settledCalls += calls;
  }
  const periods = [...months.values()].sort((one, other) => (one.period < other.period ? -1 : 1));
  return { exact: periods.every(({ used, recomputed }) => used === recomputed), periods };
}
