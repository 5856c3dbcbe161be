import { type Command, Option } from 'commander';
import { CLI_ACTOR, SCOPES } from '../../domain/caller.js';
import type { ApiKey, IssuedKey } from '../../organizations/api-key.js';
import {
  GRACE_HOURS_DEFAULT,
  GRACE_HOURS_MAX,
  KEY_LIFETIME_DAYS_MAX,
  MONTHLY_LIMIT_MAX,
} from '../../organizations/limits.js';
import { ALL, asText, wholeNumberArgument, type CommandResult, type RunWork } from './output.js';

/** The scopes are separated by commas. */
type IssueOptions = { name?: string; expiresInDays?: number; monthlyLimit?: number; scopes?: string };

/** Adds `key issue`, `key list`, `key rotate`, `key revoke`, `key unblock`, `client block` and `client unblock`. */
export function addKeyCommands(program: Command, run: RunWork): void {
  const key = program.command('key').description('issue, list, rotate and revoke API keys');

  key
    .command('issue')
    .description('issue an API key, which is shown only once')
    .argument('<org>', 'ID or name')
    .option('--name <name>', 'label for the purpose of the key')
    .option(
      '--expires-in-days <count>',
      'days until the key expires (default: never)',
      wholeNumberArgument(1, KEY_LIFETIME_DAYS_MAX),
    )
    .option(
      '--monthly-limit <count>',
      "transcripts per month that the key may use of the organization's quota (default: all of it)",
      wholeNumberArgument(0, MONTHLY_LIMIT_MAX),
    )
    .addOption(
      new Option(
        '--scopes <scopes>',
        'what the key may do; write changes jobs, subscriptions and webhooks (default: both)',
      ).choices([...SCOPES, SCOPES.join()]),
    )
    .action((idOrName: string, { scopes, ...options }: IssueOptions) =>
      run(async ({ organizations, keys }) => {
        const { id: organizationId } = await organizations.find(idOrName);
        const allowed = SCOPES.filter((scope) => scopes === undefined || scopes.split(',').includes(scope));
        return issuedResult(await keys.issue({ organizationId, ...options, scopes: allowed }, CLI_ACTOR));
      }),
    );

  key
    .command('list')
    .description('list the keys of an organization and its clients with tokens, oldest first')
    .argument('<org>', 'ID or name')
    .action((idOrName: string) =>
      run(async ({ organizations, keys }) => {
        const { id } = await organizations.find(idOrName);
        const { items } = await keys.list(id, { limit: ALL });
        return { json: items, text: asText(items.map(withState)) };
      }),
    );

  key
    .command('rotate')
    .description('issue a key that replaces another, which stays valid for a grace period')
    .argument('<key-id>')
    .option(
      '--grace-hours <count>',
      'hours that the old key stays valid',
      wholeNumberArgument(0, GRACE_HOURS_MAX),
      GRACE_HOURS_DEFAULT,
    )
    .action((keyId: string, { graceHours }: { graceHours: number }) =>
      run(async ({ keys }) => issuedResult(await keys.rotate(keyId, graceHours, CLI_ACTOR))),
    );

  key
    .command('revoke')
    .description('revoke a key or block a client; the next call is refused; lists rotated keys that are still valid')
    .argument('<key-id>')
    .action((keyId: string) => run(async ({ keys }) => ({ json: await keys.revoke(keyId, CLI_ACTOR) })));

  key
    .command('unblock')
    .description('let a client with tokens call again that was blocked by "key revoke"')
    .argument('<key-id>')
    .action((keyId: string) => run(async ({ keys }) => ({ json: await keys.unblock(keyId, CLI_ACTOR) })));

  const admin = program
    .command('client')
    .description('block and unblock clients of the identity provider under /admin');
  for (const [name, blocked] of Object.entries({ block: true, unblock: false }))
    admin
      .command(name)
      .description(blocked ? 'refuse the tokens of a client under /admin, also of an unused one' : 'accept them again')
      .argument('<client>', 'as tokens name it (azp or client_id)')
      .action((client: string) =>
        run(async ({ clients }) => ({ json: await clients.setAdminAccess({ client, blocked }, CLI_ACTOR) })),
      );
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
