import { Argument, type Command, Option } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import { PLANS, type Plan } from '../../domain/plan.js';
import { MONTHLY_LIMIT_MAX } from '../../organizations/organization-errors.js';
import { ALL, wholeNumber, type RunWork } from './output.js';

const monthlyLimit = wholeNumber(0, MONTHLY_LIMIT_MAX);

/** Adds `org create`, `org list`, `org set-plan`, `org set-limit` and `org delete`. */
export function addOrganizationCommands(program: Command, run: RunWork): void {
  const org = program.command('org').description('create, list, update and delete organizations');

  org
    .command('create')
    .description('create an organization')
    .requiredOption('--name <name>', 'name of the organization')
    .addOption(new Option('--plan <plan>', 'plan of the organization').choices(PLANS).makeOptionMandatory())
    .option('--monthly-limit <count>', 'transcripts per month, instead of the limit of the plan', monthlyLimit)
    .action((options: { name: string; plan: Plan; monthlyLimit?: number }) =>
      run(async ({ organizations }) => ({ json: await organizations.create(options, CLI_ACTOR) })),
    );

  org
    .command('list')
    .description('list all organizations, oldest first')
    .action(() => run(async ({ organizations }) => ({ json: (await organizations.list({ limit: ALL })).items })));

  org
    .command('set-plan')
    .description('change the plan of an organization')
    .argument('<org>', 'ID or name')
    .addArgument(new Argument('<plan>').choices(PLANS))
    .action((idOrName: string, plan: Plan) =>
      run(async ({ organizations }) => {
        const { id } = await organizations.find(idOrName);
        return { json: await organizations.change(id, { plan }, CLI_ACTOR) };
      }),
    );

  org
    .command('set-limit')
    .description('change the monthly limit of an organization')
    .argument('<org>', 'ID or name')
    .argument('<count>', 'transcripts per month, or "default" for the limit of the plan', (text) =>
      text === 'default' ? null : monthlyLimit(text),
    )
    .action((idOrName: string, limit: number | null) =>
      run(async ({ organizations }) => {
        const { id } = await organizations.find(idOrName);
        return { json: await organizations.change(id, { monthlyLimit: limit }, CLI_ACTOR) };
      }),
    );

  org
    .command('delete')
    .description('delete an organization and revoke its keys; its usage remains available')
    .argument('<org>', 'ID or name')
    .action((idOrName: string) =>
      run(async ({ organizations }) => {
        const { id } = await organizations.find(idOrName);
        return { json: await organizations.delete(id, CLI_ACTOR) };
      }),
    );
}
