import type { Command } from 'commander';
import type { ApiKey } from '../../organizations/api-key.entity.js';
import type { IssuedKey, KeysPage } from '../../organizations/api-keys.service.js';
import { GRACE_HOURS_DEFAULT } from '../../organizations/key-lifetime.js';
import {
  issuedKeyDocument,
  keyDocument,
  revokedKeyDocument,
  rotatedKeyDocument,
  type KeyDocument,
  type RevokedKeyDocument,
} from '../admin-views.js';
import type { AdminServices } from './admin-services.js';
import { printResult } from './print-result.js';
import { facts, table } from './table.js';
import { wholeNumber } from './whole-number.js';

const PAGE_COUNT = 500;
const SHOWN_ONCE = 'This is the only time the key is shown. Keep it somewhere safe.';

/** Adds `key issue`, `key list`, `key rotate` and `key revoke`. */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('issue, list, rotate and revoke API keys');

  key
    .command('issue')
    .description('issue a key; it is shown once')
    .argument('<org>', 'id or name')
    .option('--name <name>', 'what the key is for')
    .option('--expires-in-days <count>', 'when it ends; never by default', wholeNumber)
    .action((idOrName: string, options: { name?: string; expiresInDays?: number }, command: Command) =>
      printResult(command, async ({ organizations, keys }) => {
        const { id: organizationId } = await organizations.find(idOrName);
        const issued = await keys.issue({ organizationId, ...options });
        return { document: issuedKeyDocument(issued), text: issuedText(issued) };
      }),
    );

  key
    .command('list')
    .description('list the keys of an organization, the oldest first')
    .argument('<org>', 'id or name')
    .action((idOrName: string, _options: object, command: Command) =>
      printResult(command, async (services) => {
        const { id } = await services.organizations.find(idOrName);
        const documents = (await listAll(services, id)).map(keyDocument);
        return { document: documents, text: keysText(documents) };
      }),
    );

  key
    .command('rotate')
    .description('issue a key in place of another, which lives on for a grace period')
    .argument('<key-id>')
    .option('--grace-hours <count>', 'how long the old key lives on', wholeNumber, GRACE_HOURS_DEFAULT)
    .action((keyId: string, options: { graceHours: number }, command: Command) =>
      printResult(command, async ({ keys }) => {
        const rotated = await keys.rotate(keyId, options.graceHours);
        const document = rotatedKeyDocument(rotated);
        return { document, text: `${issuedText(rotated)}\n${replacedText(document.replaced)}` };
      }),
    );

  key
    .command('revoke')
    .description('revoke a key; it is refused from the next call on')
    .argument('<key-id>')
    .action((keyId: string, _options: object, command: Command) =>
      printResult(command, async ({ keys }) => {
        const document = revokedKeyDocument(await keys.revoke(keyId));
        return { document, text: revokedText(document) };
      }),
    );
}

async function listAll({ keys }: AdminServices, organizationId: string): Promise<ApiKey[]> {
  const all: ApiKey[] = [];
  let after: string | null = null;
  do {
    const page: KeysPage = await keys.list(organizationId, { count: PAGE_COUNT, after });
    all.push(...page.keys);
    after = page.next;
  } while (after !== null);
  return all;
}

function issuedText({ key, apiKey }: IssuedKey): string {
  const pairs = facts([
    ['id', apiKey.id],
    ['name', apiKey.name],
    ['organization', apiKey.organizationId],
    ['expires', apiKey.expiresAt?.toISOString() ?? 'never'],
    ['key', key],
  ]);
  return `${pairs}\n${SHOWN_ONCE}`;
}

function replacedText({ id, expiresAt, revokedAt }: KeyDocument): string {
  return revokedAt === null ? `The old key ${id} ends at ${expiresAt}.` : `The old key ${id} is revoked.`;
}

function revokedText({ id, name, revokedAt, stillValid }: RevokedKeyDocument): string {
  const warnings = stillValid.map(
    (key) =>
      `Warning: key ${key.id} (${key.name}), which was rotated, is still valid until ${key.expiresAt}. ` +
      `Revoke it with: npm run cli -- key revoke ${key.id}`,
  );
  return [`Key ${id} (${name}) was revoked at ${revokedAt}.`, ...warnings].join('\n');
}

function keysText(keys: readonly KeyDocument[]): string {
  return table(
    ['ID', 'NAME', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'],
    keys.map((key) => [key.id, key.name, key.prefix, state(key), key.createdAt, key.expiresAt, key.lastUsedAt]),
  );
}

function state({ revokedAt, expiresAt, replacedBy }: KeyDocument): string {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) return 'expired';
  return replacedBy === null ? 'active' : 'replaced';
}
