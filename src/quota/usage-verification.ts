import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { DataSource, EntityManager } from 'typeorm';
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

/** Keys that were rotated are counted together. */
export class VerifiedKeyPeriod {
  @ApiProperty({ description: 'The ID of an API key with a limit of its own: of the first one, when it was rotated.' })
  key: string;

  @ApiProperty({ description: 'The month, such as `2026-05`.' })
  period: string;

  @ApiProperty(countField('The number of charged transcripts that the limit is compared with.'))
  used: number;

  @ApiProperty(countField('The sum of the charges of all settled calls of the key.'))
  recomputed: number;
}

/** The stored count of each month compared with the sum of its settled calls. */
export class Verification {
  @ApiProperty({ description: 'Whether `used` equals `recomputed` in every month, also of each key with a limit.' })
  exact: boolean;

  @ApiProperty({ type: [VerifiedPeriod], description: 'The months within the retention period, oldest first.' })
  periods: VerifiedPeriod[];

  @ApiPropertyOptional({
    type: [VerifiedKeyPeriod],
    description: 'The same for the API keys with a limit of their own. Absent when the organization has none.',
  })
  keys?: VerifiedKeyPeriod[];
}

const COUNTS = `
  SELECT to_char(period_start, 'YYYY-MM') AS period, used FROM quota_periods WHERE organization_id = $1`;

const KEY_COUNTS = `
  SELECT to_char(period_start, 'YYYY-MM') AS period, quota_key_id AS key, used
    FROM quota_key_periods WHERE organization_id = $1`;

const LIMITED_KEYS = 'SELECT id, quota_key_id FROM api_keys WHERE organization_id = $1 AND quota_key_id IS NOT NULL';

/**
 * Compares the stored counts of every month, of an organization and of its keys with a limit, with the sums of the settled
 * calls.
 */
export async function verifyUsage(database: DataSource, organizationId: string): Promise<Verification> {
  return database.transaction(ONE_SNAPSHOT, async (manager) => {
    const periods = await verifyPeriods(manager, organizationId);
    const keys = await verifyKeys(manager, organizationId, periods);
    const exact = [...periods, ...(keys ?? [])].every(({ used, recomputed }) => used === recomputed);
    return { exact, periods, ...(keys && { keys }) };
  });
}

async function verifyPeriods(manager: EntityManager, organizationId: string): Promise<VerifiedPeriod[]> {
  const counts = await manager.query<{ period: string; used: number }[]>(COUNTS, [organizationId]);
  const days = await sumSettledCalls(manager, organizationId, { from: '-infinity', to: 'infinity', by: 'day' });
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
  return [...months.values()].sort((one, other) => (one.period < other.period ? -1 : 1));
}

/** Undefined without a key that has a limit. */
async function verifyKeys(
  manager: EntityManager,
  organizationId: string,
  months: readonly VerifiedPeriod[],
): Promise<VerifiedKeyPeriod[] | undefined> {
  const limited = await manager.query<{ id: string; quota_key_id: string }[]>(LIMITED_KEYS, [organizationId]);
  if (limited.length === 0) return undefined;
  const countedAs = new Map(limited.map(({ id, quota_key_id: quotaKeyId }) => [id, quotaKeyId]));
  const verified = new Map<string, VerifiedKeyPeriod>();
  const entryOf = (period: string, key: string): VerifiedKeyPeriod => {
    const entry = verified.get(`${period} ${key}`) ?? { key, period, used: 0, recomputed: 0 };
    verified.set(`${period} ${key}`, entry);
    return entry;
  };
  const counts = await manager.query<{ period: string; key: string; used: number }[]>(KEY_COUNTS, [organizationId]);
  for (const { period, key, used } of counts) entryOf(period, key).used = used;
  for (const { period } of months) {
    const [from, to] = [`${period}-01`, firstDayAfter(period)];
    for (const { group, charged } of await sumSettledCalls(manager, organizationId, { from, to, by: 'key' })) {
      const key = countedAs.get(group);
      if (key !== undefined) entryOf(period, key).recomputed += charged;
    }
  }
  return [...verified.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, entry]) => entry);
}

/** @param month such as `2026-05` */
function firstDayAfter(month: string): string {
  const date = new Date(`${month}-01T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + 1);
  return date.toISOString().slice(0, 10);
}
