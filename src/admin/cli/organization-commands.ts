import { Argument, type Command, Option } from 'commander';
import type { Environment } from '../../config/environment.js';
import { CLI_ACTOR } from '../../domain/caller.js';
import { PLANS, type Plan } from '../../domain/plan.js';
import type { Organization } from '../../organizations/organization.entity.js';
import { MONTHLY_LIMIT_MAX } from '../../organizations/limits.js';
import type { OrganizationsService } from '../../organizations/organizations.service.js';
import { ALL, asText, wholeNumberArgument, type RunWork } from './output.js';

const monthlyLimit = wholeNumberArgument(0, MONTHLY_LIMIT_MAX);
const orNone = (id: string | undefined): string | null | undefined => (id === 'none' ? null : id);

/** Adds `org create`, `org list`, `org set-plan`, `org set-limit`, `org set-external-id` and `org delete`. */
export function addOrganizationCommands(program: Command, run: RunWork): void {
  const org = program.command('org').description('create, list, update and delete organizations');

  const change = (idOrName: string, changed: Parameters<OrganizationsService['change']>[1]): Promise<void> =>
    run(async ({ organizations, environment }) => {
      const { id } = await organizations.find(idOrName);
      const json = await organizations.change(id, changed, CLI_ACTOR);
      return { json, text: asText(withLimit(json, environment)) };
    });

  org
    .command('create')
    .description('create an organization')
    .requiredOption('--name <name>', 'name of the organization')
    .addOption(new Option('--plan <plan>', 'plan of the organization').choices(PLANS).makeOptionMandatory())
    .option('--monthly-limit <count>', 'transcripts per month, instead of the limit of the plan', monthlyLimit)
    .option('--external-id <id>', 'what tokens of the identity provider call it, or "none"')
    .action(({ externalId, ...options }: { name: string; plan: Plan; monthlyLimit?: number; externalId?: string }) =>
      run(async ({ organizations, environment }) => {
        const given = { ...options, externalId: orNone(externalId) };
        const { sameName, ...created } = await organizations.create(given, CLI_ACTOR);
        const shown = asText(withLimit(created, environment));
        if (!sameName) return { json: created, text: shown };
        const others = `The name is taken: ${sameName.join(', ')} ${sameName.length === 1 ? 'has' : 'have'} it, too.`;
        const advice = `Commands need the ID, ${created.id}; "org delete ${created.id}" undoes this.`;
        return { json: { ...created, sameName }, text: `${shown}\n\n${others} ${advice}` };
      }),
    );

  org
    .command('list')
    .description('list all organizations, oldest first')
    .action(() =>
      run(async ({ organizations, environment }) => {
        const { items } = await organizations.list({ limit: ALL });
        return { json: items, text: asText(items.map((item) => withLimit(item, environment))) };
      }),
    );

  org
    .command('set-plan')
    .description('change the plan of an organization')
    .argument('<org>', 'ID or name')
    .addArgument(new Argument('<plan>').choices(PLANS))
    .action((idOrName: string, plan: Plan) => change(idOrName, { plan }));

  org
    .command('set-limit')
    .description('change the monthly limit of an organization')
    .argument('<org>', 'ID or name')
    .argument('<count>', 'transcripts per month, or "default" for the limit of the plan', (text) =>
      text === 'default' ? null : monthlyLimit(text),
    )
    .action((idOrName: string, limit: number | null) => change(idOrName, { monthlyLimit: limit }));

  org
    .command('set-external-id')
    .description('link an organization to that of the identity provider')
    .argument('<org>', 'ID or name')
    .argument('<id>', 'what tokens call it, or "none"')
    .action((idOrName: string, id: string) => change(idOrName, { externalId: orNone(id) }));

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

/** The fields that are shown: where the limit is that of the plan, its number. */
function withLimit(
  { id, name, plan, monthlyLimit: own, externalId, createdAt }: Organization,
  { PLAN_FREE_MONTHLY: free, PLAN_PRO_MONTHLY: pro }: Environment,
) {
  return { id, name, plan, monthlyLimit: own ?? `${{ free, pro }[plan]} (of the plan)`, externalId, createdAt };
}
