import type { Command } from 'commander';
import { toAuditPageDto } from '../to-dto.js';
import { wholeNumber } from './input.js';
import { table, type RunWork } from './output.js';

const ENTRIES_DEFAULT = 50;

interface AuditOptions {
  organization?: string;
  limit: number;
  after?: string;
}

/** Adds `audit`. */
export function addAuditCommand(program: Command, run: RunWork): void {
  program
    .command('audit')
    .description('list what operators changed, newest first')
    .option('--organization <org>', 'ID or name; only the ID for a deleted organization (default: all)')
    .option('--limit <count>', 'maximum number of entries', wholeNumber, ENTRIES_DEFAULT)
    .option('--after <id>', 'the last entry of the previous page')
    .action(({ organization, limit: count, after }: AuditOptions) =>
      run(async ({ organizations, audit }) => {
        const id = organization === undefined ? null : (await organizations.findIncludingDeleted(organization)).id;
        const json = toAuditPageDto(await audit.list(id, { count, after }));
        const rows = json.entries.map(({ at, actor, action, target, before, after: values }) => [
          ...[at, actor, action, target],
          ...[before, values].map((facts) => facts && JSON.stringify(facts)),
        ]);
        const more = json.next === null ? '' : `\nMore: --after ${json.next}`;
        return { json, text: `${table(['AT', 'ACTOR', 'ACTION', 'TARGET', 'BEFORE', 'AFTER'], rows)}${more}` };
      }),
    );
}
