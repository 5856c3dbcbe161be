import { type Command, Option } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import { REPORT_GROUPS, type ReportGroup, type UsageReport } from '../../quota/usage-report.js';
import type { Usage, Verification } from '../../quota/usage.js';
import { labelled, table, type RunWork } from './output.js';

/** A charged count differs from its settled calls, which must never happen. */
class InexactUsageError extends Error {
  constructor(organizationId: string, periods: readonly string[]) {
    super(`The usage of ${organizationId} differs from the sum of its settled calls in ${periods.join(', ')}.`);
    this.name = 'InexactUsageError';
  }
}

interface UsageOptions {
  verify?: boolean;
  csv?: boolean;
  from?: string;
  to?: string;
  by?: ReportGroup;
}

/** Adds `usage` and `usage prune`. `usage --verify` exits with 1 when a count differs from the sum of its settled calls. */
export function addUsageCommands(program: Command, run: RunWork): void {
  const usage = program
    .command('usage')
    .description('show the quota usage of an organization in the current month')
    .argument('<org>', 'ID or name; only the ID for a deleted organization')
    .option('--verify', 'compare the count of every month with the sum of its settled calls')
    .option('--from <date>', 'first day (UTC) of a report, such as 2026-10-01 (default: of this month)')
    .option('--to <date>', 'day (UTC) after the last day of a report (default: the first of the next month)')
    .addOption(new Option('--by <group>', 'report what was charged, a row for each').choices(REPORT_GROUPS))
    .addOption(new Option('--csv', 'print the report alone, as CSV').conflicts('verify'))
    .action((idOrName: string, { verify, csv, ...range }: UsageOptions) =>
      run(async ({ organizations, quota, reports }) => {
        const { id } = await organizations.findIncludingDeleted(idOrName);
        const usage = await quota.usage(id, { deleted: true });
        const reported = csv === true || Object.keys(range).length > 0;
        const report = reported ? await reports.report(id, range, usage.period) : undefined;
        const verification = verify === true ? await quota.verify(id) : undefined;
        const texts = [usageText(usage), report && reportText(report), verification && verificationText(verification)];
        return {
          json: { ...usage, ...(verification && { verification }), ...(report && { report }) },
          text: csv === true && report ? reportCsv(report) : texts.filter(Boolean).join('\n\n'),
          failure: verification && inexactUsage(id, verification),
        };
      }),
    );

  usage
    .command('prune')
    .description('remove the usage and the calls of months older than USAGE_RETENTION_MONTHS')
    .action(() =>
      run(async ({ retention }) => {
        const json = await retention.prune(CLI_ACTOR);
        const { keptFrom, periods, calls } = json;
        return {
          json,
          text: `Removed ${periods} months with ${calls} calls. The oldest remaining month is ${keptFrom}.`,
        };
      }),
    );
}

function inexactUsage(organizationId: string, { periods }: Verification): InexactUsageError | undefined {
  const inexact = periods.filter(({ used, recomputed }) => used !== recomputed).map(({ period }) => period);
  return inexact.length > 0 ? new InexactUsageError(organizationId, inexact) : undefined;
}

function usageText(usage: Usage): string {
  return labelled([
    ['organization', usage.organization],
    ['plan', usage.plan],
    ['period', `${usage.period.start} to ${usage.period.end}`],
    ['limit', usage.limit],
    ['used', usage.used],
    ['reserved', usage.reserved],
    ['remaining', usage.remaining],
    ...(usage.deletedAt === undefined ? [] : ([['deleted', usage.deletedAt]] as const)),
  ]);
}

function reportText({ from, to, by, charged, rows }: UsageReport): string {
  const lines = rows.map((row) => [row.group, row.calls, row.charged, row.forfeited]);
  const heading = [by.toUpperCase(), 'CALLS', 'CHARGED', 'FORFEITED'];
  return `${table(heading, lines)}\nCharged from ${from} until before ${to}: ${charged}.`;
}

/** IDs and dates contain no character that CSV quotes. */
function reportCsv({ by, rows }: UsageReport): string {
  const lines = rows.map(({ group, calls, charged, forfeited }) => [group, calls, charged, forfeited].join(','));
  return [`${by},calls,charged,forfeited`, ...lines].join('\n');
}

function verificationText({ exact, periods }: Verification): string {
  const rows = periods.map((month) => [
    month.period,
    month.used,
    month.recomputed,
    month.forfeited,
    month.settledCalls,
  ]);
  const verdict = exact
    ? 'Every count equals the sum of its settled calls.'
    : 'At least one count differs from the sum of its settled calls.';
  return `${table(['MONTH', 'USED', 'RECOMPUTED', 'FORFEITED', 'CALLS'], rows)}\n${verdict}`;
}
