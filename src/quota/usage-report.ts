import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { z } from 'zod';
import { invalidField } from '../domain/errors.js';
import { count } from '../domain/schema-fields.js';

/** What the rows of a report stand for: a day (UTC), an API key, or the channel, playlist or video of the calls. */
export const REPORT_GROUPS = ['day', 'key', 'resource'] as const;
export type ReportGroup = (typeof REPORT_GROUPS)[number];

export const DATE_FORMAT = /^2[0-9]{3}-[0-9]{2}-[0-9]{2}$/;
export const REPORT_DAYS_MAX = 400;
const REPORT_ROWS_MAX = 10_000;
const MS_PER_DAY = 86_400_000;

/** Days in UTC, `2026-10-01`; absent ones are those of the current month. */
export interface ReportRange {
  from?: string | undefined;
  /** The day after the last one. */
  to?: string | undefined;
}

export interface ReportRequest extends ReportRange {
  /** By default `day`. */
  by?: ReportGroup | undefined;
}

const KeyRow = z.object({
  group: z
    .string()
    .describe('The day, or the ID of the API key, of the channel, playlist or video, or of the organization.'),
  name: z.string().exactOptional().describe('Of an API key or an organization: its name.'),
  calls: count('Settled calls. A part of an archive job that was settled is one call.'),
  charged: count('Transcripts charged.'),
  forfeited: count('Transcripts that were fetched but settled too late to be charged.'),
});

const UsageReportRow = KeyRow.extend({
  keys: z.array(KeyRow).exactOptional().describe('Of an organization: the same by API key.'),
}).meta({ id: 'UsageReportRow' });
export type UsageReportRow = z.infer<typeof UsageReportRow>;

/** What was charged within some days, to write an invoice from. */
export const UsageReport = z
  .object({
    from: z.string().meta({ format: 'date', description: 'The first day (UTC).' }),
    to: z.string().meta({ format: 'date', description: 'The day (UTC) after the last one.' }),
    by: z.enum([...REPORT_GROUPS, 'organization']).describe('What the rows stand for.'),
    charged: count('The sum of all rows: the transcripts charged within these days.'),
    rows: z
      .array(UsageReportRow)
      .describe(
        'Sorted by `group`; organizations, all of them, by age. A call belongs to the day on which it began. Days without calls are absent.',
      ),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof UsageReport>;

/** The isolation level at which the statements of a transaction see the calls and counts as they are at the first one. */
export const ONE_SNAPSHOT = 'REPEATABLE READ';

/** As in the index `quota_reservations_day`. A call belongs to the day (UTC) and the month in which it began. */
const DAY = "(created_at AT TIME ZONE 'UTC')::date";

// The sums of the next day with calls. Without a group when none of them was settled.
const NEXT_DAY = `
  SELECT to_char(next.day + 1, 'YYYY-MM-DD') AS "dayAfter", sums.*
    FROM (SELECT min(${DAY}) AS day FROM quota_reservations
            WHERE organization_id = $1 AND ${DAY} >= $2::date AND ${DAY} < $3::date) next
    LEFT JOIN LATERAL (
      SELECT CASE $4::text WHEN 'day' THEN to_char(next.day, 'YYYY-MM-DD') WHEN 'key' THEN key_id
             WHEN 'month and key' THEN to_char(next.day, 'YYYY-MM ') || key_id ELSE channel_id END AS "group",
             count(*)::double precision AS calls, sum(charged)::double precision AS charged,
             sum(forfeited)::double precision AS forfeited
        FROM quota_reservations WHERE organization_id = $1 AND ${DAY} = next.day AND settled_at IS NOT NULL
        GROUP BY 1 LIMIT $5
    ) sums ON true
    WHERE next.day IS NOT NULL`;

// The sums of a week by key, of every organization: the index begins with it. Only calls that fetched something have a row.
const WEEK_OF_ALL = `
  SELECT to_char($1::date + 7, 'YYYY-MM-DD') AS "dayAfter", sums.*
    FROM (SELECT WHERE $1::date < $2::date) given LEFT JOIN (
      SELECT key_id AS "group", count(*)::double precision AS calls, sum(charged)::double precision AS charged,
             sum(forfeited)::double precision AS forfeited
        FROM organizations JOIN LATERAL (
          SELECT * FROM quota_reservations
            WHERE organization_id = organizations.id AND settled_at IS NOT NULL
              AND ${DAY} >= $1::date AND ${DAY} < least($1::date + 7, $2::date)
        ) calls ON true GROUP BY 1
    ) sums ON true`;

const MONTH = `
  SELECT to_char(month, 'YYYY-MM-DD') AS "from", to_char(month + interval '1 month', 'YYYY-MM-DD') AS "to"
    FROM quota_period(clock_now()) AS month`;

// Also deleted ones.
const ORGANIZATIONS = 'SELECT id, name FROM organizations ORDER BY created_at, id';
const KEYS = 'SELECT id, name, organization_id FROM api_keys WHERE id = ANY ($1)';

type DayRow = { readonly dayAfter: string } & (UsageReportRow | { readonly group: null });

/** Reports what organizations, deleted or not, were charged for. */
@Injectable()
export class UsageReports {
  constructor(private readonly database: DataSource) {}

  /**
   * Adds up the settled calls of an organization.
   *
   * @throws InvalidRequestError for a date that does not exist, a wrong range, or too many rows
   */
  async report(organizationId: string, { by = 'day', ...request }: ReportRequest): Promise<UsageReport> {
    const range = await this.rangeOf(request);
    const rows = await this.database.transaction(ONE_SNAPSHOT, async (manager) => {
      const sums = await sumSettledCalls(manager, organizationId, { ...range, by, rowsMax: REPORT_ROWS_MAX });
      return by === 'key' ? (await ofKeys(manager, sums)).map(({ row }) => row) : sums;
    });
    if (rows.length > REPORT_ROWS_MAX) {
      throw invalidField('by', `The report has more than ${REPORT_ROWS_MAX} rows. Ask for fewer days or another "by".`);
    }
    return { ...range, by, charged: sumOf(rows).charged, rows };
  }

  /**
   * Adds up the settled calls of each organization, oldest first.
   *
   * @throws InvalidRequestError for a date that does not exist or a wrong range
   */
  async reportAll(request: ReportRange): Promise<UsageReport> {
    const range = await this.rangeOf(request);
    const rows = await this.database.transaction(ONE_SNAPSHOT, async (manager) => {
      const all = await manager.query<{ id: string; name: string }[]>(ORGANIZATIONS);
      const keys = new Map(all.map(({ id }) => [id, [] as UsageReportRow[]]));
      const sums = await sumSettledCalls(manager, null, { ...range, by: 'key' });
      for (const { organization, row } of await ofKeys(manager, sums)) keys.get(organization)?.push(row);
      return all.map(({ id, name }) => ({ group: id, name, ...sumOf(keys.get(id)), keys: keys.get(id) ?? [] }));
    });
    return { ...range, by: 'organization', charged: sumOf(rows).charged, rows };
  }

  private async rangeOf(request: ReportRange): Promise<Pick<UsageReport, 'from' | 'to'>> {
    const [month] = await this.database.query<Pick<UsageReport, 'from' | 'to'>[]>(MONTH);
    const from = checkDate('from', request.from ?? month?.from);
    const to = checkDate('to', request.to ?? month?.to);
    const days = (Date.parse(to) - Date.parse(from)) / MS_PER_DAY;
    if (days < 1) throw invalidField('to', `to must be a day after from (${from}); it is the day after the last one.`);
    if (days > REPORT_DAYS_MAX) {
      throw invalidField('to', `from and to must be at most ${REPORT_DAYS_MAX} days apart, not ${days}.`);
    }
    return { from, to };
  }
}

type Sums = Pick<UsageReportRow, 'calls' | 'charged' | 'forfeited'>;

function sumOf(rows: readonly Sums[] = []): Sums {
  const sum = { calls: 0, charged: 0, forfeited: 0 };
  for (const row of rows) add(sum, row);
  return sum;
}

function add(sum: Sums, { calls, charged, forfeited }: Sums): void {
  sum.calls += calls;
  sum.charged += charged;
  sum.forfeited += forfeited;
}

/** The rows of API keys with their names, and the organization of each. */
async function ofKeys(manager: EntityManager, sums: UsageReportRow[]) {
  const keys = await manager.query<{ id: string; name: string; organization_id: string }[]>(KEYS, [
    sums.map(({ group }) => group),
  ]);
  const names = new Map(keys.map(({ id, ...key }) => [id, key]));
  return sums.map(({ group, ...calls }) => {
    const { name = '', organization_id: organization = '' } = names.get(group) ?? {};
    return { organization, row: { group, name, ...calls } };
  });
}

/**
 * Adds up the settled calls that began on some days, sorted by group. Each day is a statement of its own: those of a whole
 * history take longer than the statement timeout. It stops early when there are more than `rowsMax` groups.
 *
 * @param organizationId null for all organizations, by key
 * @param range.from the first day, such as `2026-10-01`
 * @param range.to the day after the last one
 */
export async function sumSettledCalls(
  manager: EntityManager,
  organizationId: string | null,
  { from, to, by, rowsMax }: { from: string; to: string; by: ReportGroup | 'month and key'; rowsMax?: number },
): Promise<UsageReportRow[]> {
  // PostgreSQL takes null for no limit.
  const rowsOfDay = rowsMax === undefined ? null : rowsMax + 1;
  const sums = new Map<string, UsageReportRow>();
  for (let day: string | undefined = from; day !== undefined && sums.size <= (rowsMax ?? Infinity);) {
    const rows: DayRow[] = await (organizationId === null
      ? manager.query<DayRow[]>(WEEK_OF_ALL, [day, to])
      : manager.query<DayRow[]>(NEXT_DAY, [organizationId, day, to, by, rowsOfDay]));
    for (const row of rows) {
      if (row.group === null) continue;
      const sum = sums.get(row.group) ?? { group: row.group, ...sumOf() };
      add(sum, row);
      sums.set(row.group, sum);
    }
    day = rows[0]?.dayAfter;
  }
  return [...sums.values()].sort((one, other) => (one.group < other.group ? -1 : 1));
}

/** @throws InvalidRequestError unless the text is a day of the calendar */
function checkDate(field: 'from' | 'to', text = ''): string {
  const date = DATE_FORMAT.test(text) ? new Date(text) : undefined;
  if (date && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)) return text;
  throw invalidField(field, `${field} must be a day such as 2026-10-31.`);
}

/** A report as CSV (RFC 4180). A name that a spreadsheet would take for a formula begins with an apostrophe. */
export function csvOf({ by, rows }: UsageReport): string {
  const line = (group: string, name: string, counts: readonly unknown[], keys: string): string => {
    const last = by === 'key' ? [name] : [];
    const cells = by === 'organization' ? [group, name, ...counts, keys] : [group, ...counts, ...last];
    return `${cells.map(csvCell).join(',')}\n`;
  };
  const lines = rows.map(({ group, name = '', calls, charged, forfeited, keys = [] }) => {
    const ofKeys = keys.map((key) => `${key.group} (${key.name}): ${key.charged}`).join('; ');
    return line(group, name, [calls, charged, forfeited], ofKeys);
  });
  return line(by, 'name', ['calls', 'charged', 'forfeited'], 'keys') + lines.join('');
}

function csvCell(value: unknown): string {
  const text = String(value).replace(/^[=+\-@]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
