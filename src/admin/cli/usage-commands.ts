import type { Command } from 'commander';
import type { Usage, Verification } from '../../quota/usage.js';
import { printResult } from './print-result.js';
import { facts, table } from './table.js';

/** The count and the settled calls disagree: the one thing that must never happen. */
export class InexactUsageError extends Error {
  constructor(organizationId: string, periods: readonly string[]) {
    super(`The usage of ${organizationId} differs from the sum of its settled calls in ${periods.join(', ')}.`);
    this.name = 'InexactUsageError';
  }
}

/** Adds `usage` and `usage prune`. With `--verify` it fails when a month's count is not the sum of its settled calls. */
export function addUsageCommands(program: Command): void {
  const usage = program
    .command('usage')
    .description("show an organization's quota in this month")
    .argument('<org>', 'id or name; of a deleted organization its id')
    .option('--verify', 'recompute every month from its settled calls')
    .action(async (idOrName: string, options: { verify?: boolean }, command: Command) => {
      let verification: Verification | undefined;
      let organizationId = '';
      await printResult(command, async ({ organizations, quota }) => {
        organizationId = (await organizations.findIncludingDeleted(idOrName)).id;
        const usage = await quota.usage(organizationId, { deleted: true });
        if (options.verify !== true) return { document: usage, text: usageText(usage) };
        verification = await quota.verify(organizationId);
        return {
          document: { ...usage, verification },
          text: `${usageText(usage)}\n\n${verificationText(verification)}`,
        };
      });
      const wrong = verification?.periods.filter(({ used, recomputed }) => used !== recomputed) ?? [];
      if (wrong.length > 0)
        throw new InexactUsageError(
          organizationId,
          wrong.map(({ period }) => period),
        );
    });

  usage
    .command('prune')
    .description('remove the months that are older than USAGE_RETENTION_MONTHS')
    .action((_options: object, command: Command) =>
      printResult(command, async ({ retention }) => {
        const document = await retention.prune();
        const { keptFrom, periods, calls } = document;
        return {
          document,
          text: `Kept from ${keptFrom} on; removed ${periods} months of organizations with ${calls} calls.`,
        };
      }),
    );
}

function usageText(usage: Usage): string {
  return facts([
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
  const rows = periods.map((of) => [of.period, of.used, of.recomputed, of.forfeited, of.settledCalls]);
  const verdict = exact ? 'Every month is the sum of its settled calls.' : 'The months do not add up.';
  return `${table(['MONTH', 'USED', 'RECOMPUTED', 'FORFEITED', 'CALLS'], rows)}\n${verdict}`;
}
