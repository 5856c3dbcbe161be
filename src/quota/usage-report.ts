import { Injectable } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { DataSource, type EntityManager } from 'typeorm';
import { invalidField } from '../domain/errors.js';
import { countField } from '../http/response-docs.js';
import type { Usage } from './usage.dto.js';

/** What the rows of a report stand for: a day (UTC), an API key, or the channel, playlist or video of the calls. */
export const REPORT_GROUPS = ['day', 'key', 'resource'] as const;
export type ReportGroup = (typeof REPORT_GROUPS)[number];

export const DATE_FORMAT = /^2[0-9]{3}-[0-9]{2}-[0-9]{2}$/;
export const REPORT_DAYS_MAX = 400;
const REPORT_ROWS_MAX = 10_000;
const MS_PER_DAY = 86_400_000;

/** Which usage to report. Dates are days in UTC, `2026-10-01`; absent ones are those of the current month. */
export interface ReportRequest {
  from?: string | undefined;
  /** The day after the last one. */
  to?: string | undefined;
  /** By default `day`. */
  by?: ReportGroup | undefined;
}

export class UsageReportRow {
  @ApiProperty({ description: 'The day, the ID of the API key, or the ID of the channel, playlist or video.' })
  group: string;

  @ApiProperty(countField('Settled calls. A part of an archive job that was settled is one call.'))
  calls: number;

  @ApiProperty(countField('Transcripts charged.'))
  charged: number;

  @ApiProperty(countField('Transcripts that were fetched but settled too late to be charged.'))
  forfeited: number;
}

/** What was charged within some days, to write an invoice from. */
export class UsageReport {
  @ApiProperty({ type: String, format: 'date', description: 'The first day (UTC).' })
  from: string;

  @ApiProperty({ type: String, format: 'date', description: 'The day (UTC) after the last one.' })
  to: string;

  @ApiProperty({ enum: REPORT_GROUPS, description: 'What the rows stand for.' })
  by: ReportGroup;

  @ApiProperty(countField('The sum of all rows: the transcripts charged within these days.'))
  charged: number;

  @ApiProperty({
    type: [UsageReportRow],
    description: 'Sorted by `group`. A call belongs to the day on which it began. Days without calls are absent.',
  })
  rows: UsageReportRow[];
}

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

type DayRow = { readonly dayAfter: string } & (UsageReportRow | { readonly group: null });

/** Reports what an organization, deleted or not, was charged for. */
@Injectable()
export class UsageReports {
  constructor(private readonly database: DataSource) {}

  /**
   * Adds up the settled calls.
   *
   * @param month the current month, for dates that the request leaves out
   * @throws InvalidRequestError for a date that does not exist, a wrong range, or too many rows
   */
  async report(organizationId: string, request: ReportRequest, month: Usage['period']): Promise<UsageReport> {
    const from = checkDate('from', request.from ?? month.start.slice(0, 10));
    const to = checkDate('to', request.to ?? month.end.slice(0, 10));
    const by = request.by ?? 'day';
    const days = (Date.parse(to) - Date.parse(from)) / MS_PER_DAY;
    if (days < 1) throw invalidField('to', `to must be a day after from (${from}); it is the day after the last one.`);
    if (days > REPORT_DAYS_MAX) {
      throw invalidField('to', `from and to must be at most ${REPORT_DAYS_MAX} days apart, not ${days}.`);
    }
    const rows = await this.database.transaction(ONE_SNAPSHOT, (manager) =>
      sumSettledCalls(manager, organizationId, { from, to, by, rowsMax: REPORT_ROWS_MAX }),
    );
    if (rows.length > REPORT_ROWS_MAX) {
      throw invalidField('by', `The report has more than ${REPORT_ROWS_MAX} rows. Ask for fewer days or another "by".`);
    }
    return { from, to, by, charged: rows.reduce((sum, { charged }) => sum + charged, 0), rows };
  }
}

/**
 * Adds up the settled calls that began on some days, sorted by group. Each day is a statement of its own: those of a whole
 * history take longer than the statement timeout. It stops early when there are more than `rowsMax` groups.
 *
 * @param range.from the first day, such as `2026-10-01`
 * @param range.to the day after the last one
 */
export async function sumSettledCalls(
  manager: EntityManager,
  organizationId: string,
  { from, to, by, rowsMax }: { from: string; to: string; by: ReportGroup | 'month and key'; rowsMax?: number },
): Promise<UsageReportRow[]> {
  // PostgreSQL takes null for no limit.
  const rowsOfDay = rowsMax === undefined ? null : rowsMax + 1;
  const sums = new Map<string, UsageReportRow>();
  for (let day: string | undefined = from; day !== undefined && sums.size <= (rowsMax ?? Infinity);) {
    const rows: DayRow[] = await manager.query<DayRow[]>(NEXT_DAY, [organizationId, day, to, by, rowsOfDay]);
    for (const row of rows) {
      if (row.group === null) continue;
      const { group, calls, charged, forfeited } = row;
      const sum = sums.get(group) ?? { group, calls: 0, charged: 0, forfeited: 0 };
      sum.calls += calls;
      sum.charged += charged;
      sum.forfeited += forfeited;
      sums.set(group, sum);
    }
    day = rows[0]?.dayAfter;
  }
  return [...sums.values()].sort((one, other) => (one.group < other.group ? -1 : 1));
}

/** @throws InvalidRequestError unless the text is a day of the calendar */
function checkDate(field: 'from' | 'to', text: string): string {
  const date = DATE_FORMAT.test(text) ? new Date(text) : undefined;
  if (date && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)) return text;
  throw invalidField(field, `${field} must be a day such as 2026-10-31.`);
}
