import type { Command } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import type { ApiKey } from '../../organizations/api-key.entity.js';
import type { IssuedKey, RevokedKey, RotatedKey } from '../../organizations/api-keys.service.js';
import { GRACE_HOURS_DEFAULT } from '../../organizations/organization-errors.js';
import type { IssuedKeyDto, KeyDto } from '../http/dto/responses.dto.js';
import { toIssuedKeyDto, toKeyDto, toRevokedKeyDto, toRotatedKeyDto } from '../to-dto.js';
import { allItems, wholeNumber } from './input.js';
import { labelled, table, type CommandResult, type RunWork } from './output.js';

/** Adds `key issue`, `key list`, `key rotate` and `key revoke`. */
export function addKeyCommands(program: Command, run: RunWork): void {
  const key = program.command('key').description('issue, list, rotate and revoke API keys');

  key
    .command('issue')
    .description('issue an API key, which is shown only once')
    .argument('<org>', 'ID or name')
    .option('--name <name>', 'label for the purpose of the key')
    .option('--expires-in-days <count>', 'days until the key expires (default: never)', wholeNumber)
    .action((idOrName: string, options: { name?: string; expiresInDays?: number }) =>
      run(async ({ organizations, keys }) => {
        const { id: organizationId } = await organizations.find(idOrName);
        return issuedResult(await keys.issue({ organizationId, ...options }, CLI_ACTOR));
      }),
    );

  key
    .command('list')
    .description('list the keys of an organization, oldest first')
    .argument('<org>', 'ID or name')
    .action((idOrName: string) =>
      run(async ({ organizations, keys }) => {
        const { id } = await organizations.find(idOrName);
        return listResult(await allItems((page) => keys.list(id, page)));
      }),
    );

  key
    .command('rotate')
    .description('issue a key that replaces another, which stays valid for a grace period')
    .argument('<key-id>')
    .option('--grace-hours <count>', 'hours that the old key stays valid', wholeNumber, GRACE_HOURS_DEFAULT)
    .action((keyId: string, { graceHours }: { graceHours: number }) =>
      run(async ({ keys }) => rotatedResult(await keys.rotate(keyId, graceHours, CLI_ACTOR))),
    );

  key
    .command('revoke')
    .description('revoke a key; the next call with it is refused')
    .argument('<key-id>')
    .action((keyId: string) => run(async ({ keys }) => revokedResult(await keys.revoke(keyId, CLI_ACTOR))));
}

function issuedResult(issued: IssuedKey): CommandResult {
  const json = toIssuedKeyDto(issued);
  return { json, text: issuedText(json) };
}

function issuedText({ id, name, organizationId, expiresAt, key }: IssuedKeyDto): string {
  const values = labelled([
    ['id', id],
    ['name', name],
    ['organization', organizationId],
    ['expires', expiresAt ?? 'never'],
    ['key', key],
  ]);
  return `${values}\nStore the key securely. This is the only time it is shown.`;
}

function listResult(keys: readonly ApiKey[]): CommandResult {
  const json = keys.map(toKeyDto);
  return {
    json,
    text: table(
      ['ID', 'NAME', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'],
      json.map((key) => [key.id, key.name, key.prefix, state(key), key.createdAt, key.expiresAt, key.lastUsedAt]),
    ),
  };
}

function state({ revokedAt, expiresAt, replacedBy }: KeyDto): string {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) return 'expired';
  return replacedBy === null ? 'active' : 'replaced';
}

function rotatedResult(rotated: RotatedKey): CommandResult {
  const json = toRotatedKeyDto(rotated);
  const { id, expiresAt, revokedAt } = json.replaced;
  const end = revokedAt === null ? `expires at ${expiresAt}` : 'is revoked';
  return { json, text: `${issuedText(json)}\nThe old key ${id} ${end}.` };
}

function revokedResult(revoked: RevokedKey): CommandResult {
  const json = toRevokedKeyDto(revoked);
  const { id, name, revokedAt, stillValid } = json;
  const warnings = stillValid.map(
    (key) =>
      `Warning: the rotated key ${key.id} (${key.name}) is still valid until ${key.expiresAt}. ` +
      `Revoke it with: npm run cli -- key revoke ${key.id}`,
  );
  return { json, text: [`Key ${id} (${name}) was revoked at ${revokedAt}.`, ...warnings].join('\n') };
}
