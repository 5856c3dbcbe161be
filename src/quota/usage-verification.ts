import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { count } from '../domain/schema-fields.js';
import { ONE_SNAPSHOT, sumSettledCalls } from './usage-report.js';

const VerifiedPeriod = z
  .object({
    period: z.string().describe('The month, such as `2026-05`.'),
    used: count('The number of charged transcripts that the quota is based on.'),
    recomputed: count('The sum of the charges of all settled calls.'),
    forfeited: count('Transcripts that were fetched but settled too late to be charged.'),
    settledCalls: count('The number of settled calls.'),
  })
  .meta({ id: 'VerifiedPeriod' });
export type VerifiedPeriod = z.infer<typeof VerifiedPeriod>;

/** Keys that were rotated are counted together. */
const VerifiedKeyPeriod = VerifiedPeriod.extend({
  key: z.string().describe('The ID of an API key with a limit of its own: of the first one, when it was rotated.'),
}).meta({ id: 'VerifiedKeyPeriod' });
export type VerifiedKeyPeriod = z.infer<typeof VerifiedKeyPeriod>;

/** The stored count of each month compared with the sum of its settled calls. */
export const Verification = z
  .object({
    exact: z.boolean().describe('Whether `used` equals `recomputed` in every month, also of each key with a limit.'),
    periods: z.array(VerifiedPeriod).describe('The months within the retention period, oldest first.'),
    keys: z
      .array(VerifiedKeyPeriod)
      .exactOptional()
      .describe('The same for the API keys with a limit of their own. Absent when the organization has none.'),
  })
  .meta({ id: 'Verification' });
export type Verification = z.infer<typeof Verification>;

const COUNTS = `
  SELECT to_char(period_start, 'YYYY-MM') AS period, NULL AS key, used FROM quota_periods WHERE organization_id = $1
  UNION ALL
  SELECT to_char(period_start, 'YYYY-MM'), quota_key_id, used FROM quota_key_periods WHERE organization_id = $1`;

const LIMITED_KEYS = 'SELECT id, quota_key_id FROM api_keys WHERE organization_id = $1 AND quota_key_id IS NOT NULL';

/**
 * Compares the stored counts of every month, of an organization and of its keys with a limit, with the sums of the settled
 * calls.
 */
export async function verifyUsage(database: DataSource, organizationId: string): Promise<Verification> {
  const [limited, counts, sums] = await database.transaction(ONE_SNAPSHOT, async (manager) => [
    await manager.query<{ id: string; quota_key_id: string }[]>(LIMITED_KEYS, [organizationId]),
    await manager.query<{ period: string; key: string | null; used: number }[]>(COUNTS, [organizationId]),
    await sumSettledCalls(manager, organizationId, { from: '-infinity', to: 'infinity', by: 'month and key' }),
  ]);
  const countedAs = new Map(limited.map(({ id, quota_key_id: key }) => [id, key]));
  const entries = new Map<string, VerifiedPeriod & { key: string | null }>();
  const entryOf = (period: string, key: string | null) => {
    const name = `${period} ${key ?? ''}`;
    const entry = entries.get(name) ?? { key, period, used: 0, recomputed: 0, forfeited: 0, settledCalls: 0 };
    entries.set(name, entry);
    return entry;
  };
  for (const { period, key, used } of counts) entryOf(period, key).used = used;
  for (const { group, calls, charged, forfeited } of sums) {
    const [period = '', keyId = ''] = group.split(' ');
    const key = countedAs.get(keyId);
    for (const entry of [entryOf(period, null), ...(key === undefined ? [] : [entryOf(period, key)])]) {
      entry.recomputed += charged;
      entry.forfeited += forfeited;
      entry.settledCalls += calls;
    }
  }
  const verified = [...entries].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, entry]) => entry);
  const periods = verified.filter(({ key }) => key === null).map(({ key: _none, ...period }) => period);
  const keys = verified.flatMap(({ key, ...period }) => (key === null ? [] : { key, ...period }));
  const exact = verified.every(({ used, recomputed }) => used === recomputed);
  return { exact, periods, ...(limited.length > 0 && { keys }) };
}
