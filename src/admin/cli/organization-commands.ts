import { Argument, type Command, Option } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import { PLANS } from '../../domain/plan.js';
import type { Organization } from '../../organizations/organization.entity.js';
import { toDeletedOrganizationDto, toOrganizationDto } from '../to-dto.js';
import { allItems, wholeNumber } from './input.js';
import { labelled, table, type CommandResult, type RunWork } from './output.js';

/** Adds `org create`, `org list`, `org set-plan`, `org set-limit` and `org delete`. */
export function addOrganizationCommands(program: Command, run: RunWork): void {
  const org = program.command('org').description('create, list, update and delete organizations');

  org
    .command('create')
    .description('create an organization')
    .requiredOption('--name <name>', 'name of the organization')
    .addOption(new Option('--plan <plan>', 'plan of the organization').choices(PLANS).makeOptionMandatory())
    .option('--monthly-limit <count>', 'transcripts per month, instead of the limit of the plan', wholeNumber)
    .action((options: { name: string; plan: string; monthlyLimit?: number }) =>
      run(async ({ organizations }) => organizationResult(await organizations.create(options, CLI_ACTOR))),
    );

  org
    .command('list')
    .description('list all organizations, oldest first')
    .action(() =>
      run(async ({ organizations }) => organizationsResult(await allItems((page) => organizations.list(page)))),
    );

  org
    .command('set-plan')
    .description('change the plan of an organization')
    .argument('<org>', 'ID or name')
    .addArgument(new Argument('<plan>').choices(PLANS))
    .action((idOrName: string, plan: string) =>
      run(async ({ organizations }) => organizationResult(await organizations.setPlan(idOrName, plan, CLI_ACTOR))),
    );

  org
    .command('set-limit')
    .description('change the monthly limit of an organization')
    .argument('<org>', 'ID or name')
    .argument('<count>', 'transcripts per month, or "default" for the limit of the plan', (text) =>
      text === 'default' ? null : wholeNumber(text),
    )
    .action((idOrName: string, limit: number | null) =>
      run(async ({ organizations }) => organizationResult(await organizations.setLimit(idOrName, limit, CLI_ACTOR))),
    );

  org
    .command('delete')
    .description('delete an organization and revoke its keys; its usage remains available')
    .argument('<org>', 'ID or name')
    .action((idOrName: string) =>
      run(async ({ organizations }) => {
        const { id } = await organizations.find(idOrName);
        const json = toDeletedOrganizationDto(await organizations.delete(id, CLI_ACTOR));
        const { name, deletedAt, revokedKeys } = json;
        return { json, text: `Deleted organization ${id} (${name}) at ${deletedAt}. Keys revoked: ${revokedKeys}.` };
      }),
    );
}

function organizationResult(organization: Organization): CommandResult {
  const json = toOrganizationDto(organization);
  return {
    json,
    text: labelled([
      ['id', json.id],
      ['name', json.name],
      ['plan', json.plan],
      ['monthly limit', json.monthlyLimit ?? 'plan default'],
      ['created', json.createdAt],
    ]),
  };
}

function organizationsResult(organizations: readonly Organization[]): CommandResult {
  const json = organizations.map(toOrganizationDto);
  return {
    json,
    text: table(
      ['ID', 'NAME', 'PLAN', 'MONTHLY LIMIT', 'CREATED'],
      json.map(({ id, name, plan, monthlyLimit, createdAt }) => [
        id,
        name,
        plan,
        monthlyLimit ?? 'plan default',
        createdAt,
      ]),
    ),
  };
}
