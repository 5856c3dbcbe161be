import { Argument, type Command, Option } from 'commander';
import { PLANS } from '../../domain/plan.js';
import type { Organization } from '../../organizations/organization.entity.js';
import type { OrganizationsPage } from '../../organizations/organizations.service.js';
import { deletedOrganizationDocument, organizationDocument } from '../admin-views.js';
import type { AdminServices } from './admin-services.js';
import { printResult, type CommandResult } from './print-result.js';
import { facts, table } from './table.js';
import { wholeNumber } from './whole-number.js';

const PAGE_COUNT = 500;

/** Adds `org create`, `org list`, `org set-plan`, `org set-limit` and `org delete`. */
export function addOrganizationCommands(program: Command): void {
  const org = program.command('org').description('make, change and delete organizations');

  org
    .command('create')
    .description('make an organization')
    .requiredOption('--name <name>', 'what it is called')
    .addOption(new Option('--plan <plan>', 'its plan').choices(PLANS).makeOptionMandatory())
    .option('--monthly-limit <count>', "transcripts a month, in place of the plan's", wholeNumber)
    .action((options: { name: string; plan: string; monthlyLimit?: number }, command: Command) =>
      printResult(command, async ({ organizations }) => shown(await organizations.create(options))),
    );

  org
    .command('list')
    .description('list all organizations, the oldest first')
    .action((_options: object, command: Command) => printResult(command, listAll));

  org
    .command('set-plan')
    .description('put an organization on another plan')
    .argument('<org>', 'id or name')
    .addArgument(new Argument('<plan>').choices(PLANS))
    .action((idOrName: string, plan: string, _options: object, command: Command) =>
      printResult(command, async ({ organizations }) => shown(await organizations.setPlan(idOrName, plan))),
    );

  org
    .command('set-limit')
    .description("give an organization a monthly limit of its own, or the plan's again")
    .argument('<org>', 'id or name')
    .argument('<count>', 'transcripts a month, or "default"', readLimit)
    .action((idOrName: string, limit: number | null, _options: object, command: Command) =>
      printResult(command, async ({ organizations }) => shown(await organizations.setLimit(idOrName, limit))),
    );

  org
    .command('delete')
    .description('delete an organization: revokes its keys and keeps its settled calls')
    .argument('<org>', 'id or name')
    .action((idOrName: string, _options: object, command: Command) =>
      printResult(command, async ({ organizations }) => {
        const { id } = await organizations.find(idOrName);
        const document = deletedOrganizationDocument(await organizations.delete(id));
        const { name, deletedAt, revokedKeys } = document;
        return {
          document,
          text: `Organization ${id} (${name}) was deleted at ${deletedAt}; keys revoked: ${revokedKeys}.`,
        };
      }),
    );
}

async function listAll({ organizations }: AdminServices): Promise<CommandResult> {
  const all: Organization[] = [];
  let after: string | null = null;
  do {
    const page: OrganizationsPage = await organizations.list({ count: PAGE_COUNT, after });
    all.push(...page.organizations);
    after = page.next;
  } while (after !== null);
  const documents = all.map(organizationDocument);
  return {
    document: documents,
    text: table(
      ['ID', 'NAME', 'PLAN', 'MONTHLY LIMIT', 'CREATED'],
      documents.map(({ id, name, plan, monthlyLimit, createdAt }) => [
        id,
        name,
        plan,
        monthlyLimit ?? 'of the plan',
        createdAt,
      ]),
    ),
  };
}

function shown(organization: Organization): CommandResult {
  const document = organizationDocument(organization);
  return {
    document,
    text: facts([
      ['id', document.id],
      ['name', document.name],
      ['plan', document.plan],
      ['monthly limit', document.monthlyLimit ?? 'of the plan'],
      ['created', document.createdAt],
    ]),
  };
}

function readLimit(text: string): number | null {
  return text === 'default' ? null : wholeNumber(text);
}
