import type { DataSource } from 'typeorm';
import { ONE_SNAPSHOT, sumSettledCalls } from './usage-report.js';
import type { Verification, VerifiedPeriod } from './usage.js';

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
