import type { Type } from '@nestjs/common';
import { Option, type Command } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import type { ApiKey, IssuedKey } from '../../organizations/api-key.js';
import type { Organization } from '../../organizations/organization.entity.js';
import { csvOf } from '../../quota/usage-report.js';
import {
  AuditQueryDto,
  CreateOrganizationDto,
  IssueKeyDto,
  RotateKeyDto,
  UpdateOrganizationDto,
  UsageQueryDto,
} from '../http/dto/requests.dto.js';
import { fieldArgument, fieldOptions, requestOf } from './field-options.js';
import type { Operations } from './local-service.js';
import { asText, refuseJson, type CommandResult, type RunWork } from './output.js';

/** The number of items to request when a command prints all. */
const ALL = Number.MAX_SAFE_INTEGER - 1;

/** What the groups of commands and the arguments are, in the help. */
const WORDS: Readonly<Record<string, string>> = {
  org: 'create, list, update and delete organizations',
  key: 'issue, list, rotate and revoke API keys',
  client: 'block and unblock clients of the identity provider under /admin',
  job: 'cancel archive jobs',
  '<org>': 'ID or name',
  '<client>': 'as tokens name it (azp or client_id)',
};

/** Adds the commands of the operations of `/admin`: what one takes and does is said by its controller and its request. */
export function addAdminCommands(program: Command, run: RunWork): void {
  addUsageCommand(program, run);
  const add = adder(program, run);

  add('org create', 'create an organization', CreateOrganizationDto, async (operations, _target, body) => {
    const { sameName, ...created } = await operations.organizations.createOrganization(body, CLI_ACTOR);
    const shown = asText(withLimit(operations, created));
    if (!sameName) return { json: created, text: shown };
    const others = `The name is taken: ${sameName.join(', ')} ${sameName.length === 1 ? 'has' : 'have'} it, too.`;
    const advice = `Commands need the ID, ${created.id}; "org delete ${created.id}" undoes this.`;
    return { json: { ...created, sameName }, text: `${shown}\n\n${others} ${advice}` };
  });
  add('org list', 'list all organizations, oldest first', Nothing, async (operations) => {
    const { organizations: json } = await operations.organizations.listOrganizations({ limit: ALL });
    return { json, text: asText(json.map((each) => withLimit(operations, each))) };
  });
  for (const [usage, description, field, nullWord] of [
    ['org set-plan <org>', 'change the plan of an organization', 'plan'],
    ['org set-limit <org>', 'change the monthly limit; "default" for that of the plan', 'monthlyLimit', 'default'],
    ['org set-external-id <org>', 'link it to that of the identity provider; "none" unlinks it', 'externalId'],
  ] as const) {
    const argument = fieldArgument(UpdateOrganizationDto, field, nullWord);
    const changing = add(usage, description, Nothing, async (operations, org) => {
      const id = await idOf(operations, org);
      const body = { [field]: changing.processedArgs[1] as unknown };
      const json = await operations.organizations.changeOrganization(id, body, CLI_ACTOR);
      return { json, text: asText(withLimit(operations, json)) };
    }).addArgument(argument);
  }
  const deletion = 'delete an organization and revoke its keys; its usage remains available';
  add('org delete <org>', deletion, Nothing, async (operations, org) => {
    return { json: await operations.organizations.deleteOrganization(await idOf(operations, org), CLI_ACTOR) };
  });

  add('key issue <org>', 'issue an API key, which is shown only once', IssueKeyDto, async (operations, org, body) => {
    return issuedResult(await operations.keys.issueKey(await idOf(operations, org), body, CLI_ACTOR));
  });
  const keys = 'list the keys of an organization and its clients with tokens, oldest first';
  add('key list <org>', keys, Nothing, async (operations, org) => {
    const { keys: json } = await operations.keys.listKeys(await idOf(operations, org), { limit: ALL });
    return { json, text: asText(json.map(withState)) };
  });
  const rotation = 'issue a key that replaces another, which stays valid for a grace period';
  add('key rotate <key-id>', rotation, RotateKeyDto, async (operations, id, body) => {
    return issuedResult(await operations.keys.rotateKey(id, body, CLI_ACTOR));
  });
  const revocation =
    'revoke a key or block a client; the next call is refused; lists rotated keys that are still valid';
  add('key revoke <key-id>', revocation, Nothing, async (operations, id) => {
    return { json: await operations.keys.revokeKey(id, CLI_ACTOR) };
  });
  const unblocking = 'let a client with tokens call again that was blocked by "key revoke"';
  add('key unblock <key-id>', unblocking, Nothing, async (operations, id) => {
    return { json: await operations.keys.unblockClient(id, CLI_ACTOR) };
  });
  for (const [usage, description, blocked] of [
    ['client block <client>', 'refuse the tokens of a client under /admin, also of an unused one', true],
    ['client unblock <client>', 'accept them again', false],
  ] as const)
    add(usage, description, Nothing, async (operations, client) => {
      return { json: await operations.keys.changeAdminClient({ client, blocked }, CLI_ACTOR) };
    });

  const pruning = 'remove the usage and the calls of months older than USAGE_RETENTION_MONTHS';
  add('usage prune', pruning, Nothing, async (operations) => {
    const total = await operations.work.pruneUsage({}, CLI_ACTOR);
    while (total.next !== null) {
      const { periods, calls, next } = await operations.work.pruneUsage({ after: total.next }, CLI_ACTOR);
      Object.assign(total, { periods: total.periods + periods, calls: total.calls + calls, next });
    }
    return { json: total };
  });
  const changes = 'list what operators and callers changed, newest first';
  add('audit', changes, AuditQueryDto, async (operations, _target, { organization, ...page }) => {
    const id = organization === undefined ? undefined : await idOf(operations, organization, { deleted: true });
    const { entries, next } = await operations.work.listAudit({
      ...page,
      ...(id !== undefined && { organization: id }),
    });
    const rows = entries.map(({ id: _id, requestId: _request, callId: _call, keyId, person, ...row }) => ({
      ...row,
      actor: [row.actor, keyId ?? person?.email ?? person?.sub].filter(Boolean).join(' '),
    }));
    return { json: { entries, next }, text: asText({ next, entries: rows }) };
  });
  const cancellation = 'cancel a job of any organization; what was fetched stays charged and available';
  add('job cancel <job-id>', cancellation, Nothing, async ({ jobs }, id) => {
    const { job, organizationId } = await jobs.cancel(null, id, CLI_ACTOR);
    const { state, summary } = job;
    const fetched = `${summary.fetched} of ${summary.total} videos were fetched and charged`;
    return { json: { ...job, organizationId }, text: `Job ${id} of ${organizationId} is ${state}: ${fetched}.` };
  });
}

class Nothing {}

/**
 * Returns a function that adds a command.
 *
 * @param usage its words and its argument
 * @param input the class of the request, whose fields are the options
 * @param work runs the operation for the argument
 */
function adder(program: Command, run: RunWork) {
  return <Input extends object>(
    usage: string,
    description: string,
    input: Type<Input>,
    work: (operations: Operations, target: string, request: Input) => Promise<CommandResult>,
  ): Command => {
    const [, words = '', target] = /^([^<]*[^< ])(?: (<.*>))?$/.exec(usage) ?? [];
    const [name = '', group] = words.split(' ').reverse();
    const known = program.commands.find((each) => each.name() === group);
    const parent = group === undefined ? program : (known ?? program.command(group).description(WORDS[group] ?? ''));
    const command = parent.command(name).description(description);
    if (target !== undefined) command.argument(target, WORDS[target]);
    for (const option of fieldOptions(input)) command.addOption(option);
    return command.action(() => {
      const request = requestOf(input, command.opts());
      return run((operations) => work(operations, String(command.processedArgs[0]), request));
    });
  };
}

async function idOf({ named }: Operations, idOrName: string, options?: { deleted: boolean }): Promise<string> {
  return (await named.find(idOrName, options)).id;
}

type UsageFlags = { all?: true; csv?: true; verify?: true } & Omit<UsageQueryDto, 'verify'>;

/** `--verify` exits with 1 when a count differs from its settled calls. */
function addUsageCommand(program: Command, run: RunWork): void {
  const usage = program
    .command('usage')
    .description('show the quota usage of an organization in the current month')
    .argument('[org]', 'ID or name; only the ID for a deleted organization')
    .addOption(new Option('--all', 'report what every organization was charged').conflicts(['verify', 'by']))
    .addOption(new Option('--csv', 'print the report alone, as CSV').conflicts('verify'));
  for (const option of fieldOptions(UsageQueryDto)) usage.addOption(option);
  usage.action((org: string | undefined, { all, csv, verify, ...range }: UsageFlags) => {
    if (csv === true) refuseJson(program, '--csv');
    if ((org === undefined) !== (all === true)) usage.error('name one organization, or use --all');
    return run(async (operations) => {
      if (org === undefined) {
        const json = await operations.reports.reportAll(range);
        const rows = json.rows.map(({ keys: _keys, ...row }) => row);
        return { json, text: csv === true ? csvOf(json) : asText({ ...json, rows }) };
      }
      const id = await idOf(operations, org, { deleted: true });
      const by = csv === true ? { by: 'day' as const } : {};
      const query = { ...by, ...range, ...(verify === true && { verify: 'true' }) };
      const json = await operations.work.getOrganizationUsage(id, query);
      const differs = new Error(`The usage of ${id} differs from the sum of its settled calls.`);
      return {
        json,
        ...(csv === true && json.report && { text: csvOf(json.report) }),
        ...(json.verification?.exact === false && { failure: differs }),
      };
    });
  });
}

function issuedResult(issued: IssuedKey): CommandResult {
  return {
    json: issued,
    text: `${asText(issued)}\n\nStore the key securely. This is the only time it is shown.`,
  };
}

function withState(key: ApiKey) {
  const { id, name, kind, prefix, monthlyLimit, scopes, createdAt, expiresAt, revokedAt, lastUsedAt } = key;
  const current = expiresAt && expiresAt <= new Date() ? 'expired' : key.replacedBy ? 'replaced' : 'active';
  const ended = kind === 'oidc' ? 'blocked' : 'revoked';
  const state = revokedAt ? ended : current;
  return { id, name, kind, prefix, state, scopes, monthlyLimit, createdAt, expiresAt, lastUsedAt };
}

/** The fields that are shown: where the limit is that of the plan, its number. */
function withLimit(
  { environment: { PLAN_FREE_MONTHLY: free, PLAN_PRO_MONTHLY: pro } }: Operations,
  { id, name, plan, monthlyLimit: own, externalId, createdAt }: Organization,
) {
  return { id, name, plan, monthlyLimit: own ?? `${{ free, pro }[plan]} (of the plan)`, externalId, createdAt };
}
