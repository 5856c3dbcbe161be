import { type Command, Option } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import { csvOf, REPORT_GROUPS, type ReportGroup } from '../../quota/usage-report.js';
import { asText, refuseJson, wholeNumberArgument, type RunWork } from './output.js';

const AUDIT_ENTRIES_DEFAULT = 50;

interface UsageOptions {
  all?: boolean;
  verify?: boolean;
  csv?: boolean;
  from?: string;
  to?: string;
  by?: ReportGroup;
}

interface AuditOptions {
  organization?: string;
  limit: number;
  after?: string;
}

/** Adds `usage`, `usage prune` and `audit`. `usage --verify` exits with 1 when a count differs from its settled calls. */
export function addUsageCommands(program: Command, run: RunWork): void {
  const usage = program
    .command('usage')
    .description('show the quota usage of an organization in the current month')
    .argument('[org]', 'ID or name; only the ID for a deleted organization')
    .addOption(new Option('--all', 'report what every organization was charged').conflicts(['verify', 'by']))
    .option('--verify', 'compare the count of every month with the sum of its settled calls')
    .option('--from <date>', 'first day (UTC) of a report, such as 2026-10-01 (default: of this month)')
    .option('--to <date>', 'day (UTC) after the last day of a report (default: the first of the next month)')
    .addOption(new Option('--by <group>', 'report what was charged, a row for each').choices(REPORT_GROUPS))
    .addOption(new Option('--csv', 'print the report alone, as CSV').conflicts('verify'))
    .action((idOrName: string | undefined, { all, verify, csv, ...range }: UsageOptions) => {
      if (csv === true) refuseJson(program, '--csv');
      if ((idOrName === undefined) !== (all === true)) usage.error('name one organization, or use --all');
      if (idOrName === undefined)
        return run(async ({ reports }) => {
          const report = await reports.reportAll(range);
          const rows = report.rows.map(({ keys: _keys, ...row }) => row);
          return { json: report, text: csv === true ? csvOf(report).trimEnd() : asText({ ...report, rows }) };
        });
      return run(async ({ organizations, quota, reports }) => {
        const { id } = await organizations.find(idOrName, { deleted: true });
        const usage = await quota.usage(id);
        const reported = csv === true || Object.keys(range).length > 0;
        const report = reported ? await reports.report(id, range) : undefined;
        const verification = verify === true ? await quota.verify(id) : undefined;
        return {
          json: { ...usage, ...(verification && { verification }), ...(report && { report }) },
          ...(csv === true && report && { text: csvOf(report).trimEnd() }),
          ...(verification?.exact === false && {
            failure: new Error(`The usage of ${id} differs from the sum of its settled calls.`),
          }),
        };
      });
    });

  usage
    .command('prune')
    .description('remove the usage and the calls of months older than USAGE_RETENTION_MONTHS')
    .action(() =>
      run(async ({ retention }) => {
        const total = await retention.prune(CLI_ACTOR);
        while (total.next !== null) {
          const { periods, calls, next } = await retention.prune(CLI_ACTOR, total.next);
          Object.assign(total, { periods: total.periods + periods, calls: total.calls + calls, next });
        }
        return { json: total };
      }),
    );

  program
    .command('audit')
    .description('list what operators and callers changed, newest first')
    .option('--organization <org>', 'ID or name; only the ID for a deleted organization (default: all)')
    .option('--limit <count>', 'maximum number of entries', wholeNumberArgument(1), AUDIT_ENTRIES_DEFAULT)
    .option('--after <id>', 'the "next" of the previous page')
    .action(({ organization, limit, after }: AuditOptions) =>
      run(async ({ organizations, audit }) => {
        const { id = null } =
          organization === undefined ? {} : await organizations.find(organization, { deleted: true });
        const { items: entries, next } = await audit.list(id, { limit, after });
        const rows = entries.map(({ id: _id, requestId: _request, callId: _call, keyId, person, ...row }) => ({
          ...row,
          actor: [row.actor, keyId ?? person?.email ?? person?.sub].filter(Boolean).join(' '),
        }));
        return { json: { entries, next }, text: asText({ next, entries: rows }) };
      }),
    );
}
