import type { Command } from 'commander';
import type { Usage, Verification } from '../../quota/usage.js';
import { labelled, table, type RunWork } from './output.js';

/** A charged count differs from its settled calls, which must never happen. */
class InexactUsageError extends Error {
  constructor(organizationId: string, periods: readonly string[]) {
    super(`The usage of ${organizationId} differs from the sum of its settled calls in ${periods.join(', ')}.`);
    this.name = 'InexactUsageError';
  }
}

/** Adds `usage` and `usage prune`. `usage --verify` exits with 1 when a count differs from the sum of its settled calls. */
export function addUsageCommands(program: Command, run: RunWork): void {
  const usage = program
    .command('usage')
    .description('show the quota usage of an organization in the current month')
    .argument('<org>', 'ID or name; only the ID for a deleted organization')
    .option('--verify', 'compare the count of every month with the sum of its settled calls')
    .action((idOrName: string, { verify }: { verify?: boolean }) =>
      run(async ({ organizations, quota }) => {
        const { id } = await organizations.findIncludingDeleted(idOrName);
        const usage = await quota.usage(id, { deleted: true });
        if (verify !== true) return { json: usage, text: usageText(usage) };
        const verification = await quota.verify(id);
        return {
          json: { ...usage, verification },
          text: `${usageText(usage)}\n\n${verificationText(verification)}`,
          failure: inexactUsage(id, verification),
        };
      }),
    );

  usage
    .command('prune')
    .description('remove the usage and the calls of months older than USAGE_RETENTION_MONTHS')
    .action(() =>
      run(async ({ retention }) => {
        const json = await retention.prune();
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
