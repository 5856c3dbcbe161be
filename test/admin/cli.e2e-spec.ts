import { chmodSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { VERSION } from '../../src/config/package.js';
import { createTestDatabase } from '../database/test-database.js';
import { temporaryFolder } from '../process/program.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { type CliResult, CliSession, runCli } from './run-cli.js';

const KEY = /ctk_[0-9A-Za-z]{49}/;

let database: QuotaDatabase;
let session: CliSession;
beforeAll(async () => {
  session = new CliSession();
  database = await QuotaDatabase.open();
});
afterAll(async () => {
  session.close();
  await database.close();
});

const cli = (...args: string[]): Promise<CliResult> => session.run(args, { DATABASE_URL: database.url });

/** The JSON document of a command that succeeds without any other output. */
async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, output, errorOutput } = await cli(...args, '--json');
  expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
  const document: unknown = JSON.parse(output);
  if (typeof document !== 'object' || document === null) throw new Error(`Not an object: ${output}`);
  return { ...document };
}

async function newOrganization(name: string): Promise<string> {
  return (await database.organizations.create({ name, plan: 'pro' })).id;
}

describe('the admin commands', () => {
  it('apply the migrations of a new database, once', async () => {
    const empty = await createTestDatabase();
    try {
      for (let times = 0; times < 2; times += 1) {
        const { code, output } = await session.run(['migrate'], { DATABASE_URL: empty.url });
        expect([code, output.trim()]).toEqual([0, 'The database is up to date.']);
      }
      expect(await empty.query('SELECT count(*)::int AS count FROM organizations')).toEqual([{ count: 0 }]);
    } finally {
      await empty.drop();
    }
  });

  it('create an organization with a valid key and its own quota', async () => {
    const organization = await json('org', 'create', '--name', 'Acme', '--plan', 'pro', '--monthly-limit', '37');
    expect(organization).toMatchObject({ name: 'Acme', plan: 'pro', monthlyLimit: 37 });
    const issued = await json('key', 'issue', 'Acme', '--name', 'server', '--expires-in-days', '30');
    expect(issued).toMatchObject({ name: 'server', organizationId: organization['id'] });
    const key = String(issued['key']);
    expect(key).toMatch(KEY);
    expect(await database.keys.authenticate(key)).toMatchObject({ keyId: issued['id'] });
    expect(await json('usage', 'Acme')).toEqual(await database.quota.usage(String(organization['id'])));
  });

  it('issue a key that may only read, and list its scopes', async () => {
    await json('org', 'create', '--name', 'Scoped', '--plan', 'pro');
    const issue = (...scopes: string[]) => json('key', 'issue', 'Scoped', ...scopes);
    expect([(await issue('--scopes', 'read'))['scopes'], (await issue('--scopes', 'read,write'))['scopes']]).toEqual([
      ['read'],
      ['read', 'write'],
    ]);
    expect((await cli('key', 'list', 'Scoped')).output).toMatch(/ active +read +-/);
    const { code, errorOutput } = await cli('key', 'issue', 'Scoped', '--scopes', 'admin');
    expect([code, errorOutput]).toEqual([1, expect.stringContaining('--scopes')]);
  });

  it('issue a key with a monthly limit of its own, list it, and verify its count', async () => {
    await json('org', 'create', '--name', 'Bounded', '--plan', 'pro');
    const issued = await json('key', 'issue', 'Bounded', '--monthly-limit', '500');
    expect(issued).toMatchObject({ monthlyLimit: 500 });
    expect((await cli('key', 'list', 'Bounded')).output).toMatch(/ active +read, write +500 /);
    const customer = { organizationId: String(issued['organizationId']), keyId: String(issued['id']) };
    await database.quota.settle(await database.reserved(customer, 5), 4);
    const rotated = await json('key', 'rotate', customer.keyId);
    expect(rotated).toMatchObject({ monthlyLimit: 500 });
    expect(await json('usage', 'Bounded', '--verify')).toMatchObject({
      used: 4,
      verification: { exact: true, keys: [{ key: customer.keyId, used: 4, recomputed: 4 }] },
    });
    await database.dataSource.query('UPDATE quota_key_periods SET used = 5 WHERE quota_key_id = $1', [customer.keyId]);
    expect((await cli('usage', 'Bounded', '--verify')).code).toBe(1);
    expect((await cli('key', 'issue', 'Bounded', '--monthly-limit', '-1')).code).not.toBe(0);
  });

  it('show the limit in force, also when it is that of the plan', async () => {
    const limited = ['org', 'create', '--name', 'Shown', '--plan', 'pro'];
    expect((await cli(...limited)).output).toMatch(/^monthly limit +5000 \(of the plan\)$/m);
    expect((await cli('org', 'set-plan', 'Shown', 'free')).output).toMatch(/^monthly limit +50 \(of the plan\)$/m);
    expect((await cli('org', 'set-limit', 'Shown', '7')).output).toMatch(/^monthly limit +7$/m);
    await cli('org', 'set-limit', 'Shown', 'default');
    expect((await cli('org', 'list')).output).toMatch(/ Shown +free +50 \(of the plan\) /);
  });

  it('link an organization to that of the identity provider, and to none', async () => {
    const create = ['org', 'create', '--name', 'Linked', '--plan', 'pro', '--external-id'];
    expect(await json(...create, 'none')).toMatchObject({ externalId: null });
    const linked = await json(...create, 'acme');
    expect(linked).toMatchObject({ externalId: 'acme' });
    expect(await json('org', 'set-external-id', String(linked['id']), 'none')).toMatchObject({ externalId: null });
  });

  it('say that a name is taken, and name the organizations that have it', async () => {
    const create = ['org', 'create', '--name', ' Taken ', '--plan', 'pro'];
    const first = await json(...create);
    expect(first).not.toHaveProperty('sameName');
    expect((await json(...create))['sameName']).toEqual([first['id']]);
    const { code, output } = await cli(...create);
    expect(code).toBe(0);
    expect(output).toMatch(
      /^The name is taken: org_\w+, org_\w+ have it, too\. Commands need the ID, org_\w+; "org delete/m,
    );
    expect(output).toContain(String(first['id']));
  });

  it('leave to the service the removal of what is old', async () => {
    const id = await newOrganization('Deleted with a webhook');
    await database.dataSource.query(
      `INSERT INTO webhooks (id, organization_id, url, secret, created_at)
         VALUES ('whk_kept', $1, 'https://example.com', '', clock_now())`,
      [id],
    );
    await database.organizations.delete(id);
    expect((await cli('org', 'list')).code).toBe(0);
    const kept = await database.dataSource.query<object[]>(`DELETE FROM webhooks WHERE id = 'whk_kept' RETURNING id`);
    expect(kept).toEqual([[{ id: 'whk_kept' }], 1]);
  });

  it('change the plan and the limit, and restore the limit of the plan', async () => {
    const id = await newOrganization('Changing');
    expect(await json('org', 'set-plan', id, 'free')).toMatchObject({ id, plan: 'free', monthlyLimit: null });
    expect(await json('org', 'set-limit', 'Changing', '0')).toMatchObject({ id, monthlyLimit: 0 });
    expect(await json('org', 'set-limit', id, 'default')).toMatchObject({ id, monthlyLimit: null });
    const { output } = await cli('--json', 'org', 'list');
    expect(JSON.parse(output)).toContainEqual(expect.objectContaining({ id, name: 'Changing', plan: 'free' }));
  });

  it('show a key once, with a warning; rotate it, and name the rotated keys that a revocation leaves valid', async () => {
    const id = await newOrganization('Keys');
    const { output: shown } = await cli('key', 'issue', 'Keys');
    expect(shown).toMatch(new RegExp(`^key +${KEY.source}\n\n.*only time`, 'm'));
    const first = await json('key', 'issue', id);
    const second = await json('key', 'rotate', String(first['id']), '--grace-hours', '0');
    expect(await database.keys.authenticate(String(first['key']))).toBe('revoked');
    expect(await database.keys.authenticate(String(second['key']))).toMatchObject({ keyId: second['id'] });
    const third = await database.keys.rotate(String(second['id']), 5);
    const { output } = await cli('key', 'revoke', third.id);
    expect(output).toMatch(/^revoked at +20.*\n[^]*\nSTILL VALID\nID .*\nkey_/m);
    expect(output).toContain(`\n${String(second['id'])} `);
    expect(await json('key', 'revoke', String(second['id']))).toMatchObject({ id: second['id'], stillValid: [] });
    const list = await cli('key', 'list', id);
    expect(list.output).toMatch(
      /^ID +NAME +KIND +PREFIX +STATE +SCOPES +MONTHLY LIMIT +CREATED AT +EXPIRES AT +LAST USED AT\n/,
    );
    expect(list.output.match(/ (active|revoked) /g)).toEqual([' active ', ...Array<string>(3).fill(' revoked ')]);
    expect(list.output).not.toMatch(KEY);
  });

  it('recompute the usage, and fail when it is inconsistent', async () => {
    const customer = await database.newCustomer(10);
    await database.quota.settle(await database.reserved(customer, 5), 4);
    expect(await json('usage', customer.organizationId, '--verify')).toMatchObject({
      used: 4,
      verification: { exact: true, periods: [{ used: 4, recomputed: 4, settledCalls: 1 }] },
    });
    await database.dataSource.query('UPDATE quota_periods SET used = 3 WHERE organization_id = $1', [
      customer.organizationId,
    ]);
    const { code, errorOutput } = await cli('usage', customer.organizationId, '--verify');
    expect(code).toBe(1);
    expect(errorOutput).toMatch(/^error: The usage of org_\w+ differs from the sum of its settled calls\.\n$/);
  });

  it('report what was charged as text, JSON and CSV', async () => {
    const { organizationId, keyId } = await database.newCustomer(10);
    await database.quota.settle(await database.reserved({ organizationId, keyId }, 5), 4);
    const range = ['--from', '2025-12-01', '--to', '2025-12-02'];
    expect(await json('usage', organizationId, '--by', 'key')).toMatchObject({
      used: 4,
      report: { by: 'key', charged: 4, rows: [{ group: keyId, name: 'default', calls: 1, charged: 4, forfeited: 0 }] },
    });
    expect(await cli('usage', organizationId, '--by', 'key', '--csv')).toEqual({
      code: 0,
      output: `key,calls,charged,forfeited,name\n${keyId},1,4,0,default\n`,
      errorOutput: '',
    });
    const all = await cli('usage', '--all', '--csv');
    expect(all.output).toMatch(/^organization,name,calls,charged,forfeited,keys\norg_/);
    expect(all.output).toContain(`\n${organizationId},Acme,1,4,0,${keyId} (default): 4\n`);
    const row = { group: organizationId, name: 'Acme', calls: 1, charged: 4, forfeited: 0 };
    expect((await json('usage', '--all'))['rows']).toContainEqual({
      ...row,
      keys: [{ ...row, group: keyId, name: 'default' }],
    });
    expect((await cli('usage', '--all', ...range)).output).toMatch(
      new RegExp(`^ROWS\\nGROUP +NAME +CALLS[^]*^${organizationId} +Acme +0 +0 +0$`, 'm'),
    );
    expect((await cli('usage', organizationId, ...range)).output).toMatch(
      /^REPORT\nfrom +2025-12-01\nto +2025-12-02$/m,
    );
    expect(await cli('usage', organizationId, '--from', 'May')).toMatchObject({
      code: 1,
      errorOutput: expect.stringMatching(/'--from <date>' .* from must be a day such as 2026-10-01\.\n$/),
    });
  });

  it('print the version', async () => {
    expect(await cli('--version')).toEqual({ code: 0, output: `${VERSION}\n`, errorOutput: '' });
  });

  it('run as separate processes', async () => {
    const name = 'Separate';
    expect(await runCli(['org', 'create', '--name', name, '--plan', 'pro'], { DATABASE_URL: database.url })).toEqual({
      code: 0,
      output: expect.stringContaining(name),
      errorOutput: '',
    });
    expect(await runCli(['org', 'create', '--name', name, '--plan', 'x'], { DATABASE_URL: database.url })).toEqual({
      code: 1,
      output: '',
      errorOutput: expect.stringMatching(/^error: [^\n]+\n$/),
    });
  });

  it('work on the embedded database without a running service, even as the first process', async () => {
    const folder = temporaryFolder();
    chmodSync(folder.path, 0o711);
    try {
      const args = ['org', 'create', '--name', 'Acme', '--plan', 'pro', '--json'];
      expect(await runCli(args, { DATA_DIR: folder.path })).toMatchObject({ code: 0, errorOutput: '' });
      expect((await runCli(['org', 'list'], { DATA_DIR: folder.path })).output).toContain('Acme');
    } finally {
      folder.remove();
    }
  });

  it('log to standard error only', async () => {
    const variables = { DATABASE_URL: database.url, LOG_LEVEL: 'debug' };
    const { output, errorOutput } = await session.run(['org', 'list', '--json'], variables);
    expect(() => void JSON.parse(output)).not.toThrow();
    expect(errorOutput).toMatch(/^\{"level":"debug",/);
  });
});

describe('an admin command that fails prints one line and exits with 1', () => {
  const secret = `ctk_${'a'.repeat(49)}`;

  it.each<[string[], string]>([
    [[], 'command missing; see --help'],
    [['org', 'list', '--x'], "unknown option '--x'"],
    [['org', 'create', '--name', 'A'], "required option '--plan <plan>' not specified"],
    [['org', 'create', '--name', '', '--plan', 'pro'], 'name must have 1 to 100 characters and no control characters.'],
    ...['1e3', '-1', '2147483648'].map((count): [string[], string] => [
      ['org', 'set-limit', 'A', '--', count],
      `command-argument value '${count}' is invalid for argument 'count'. monthlyLimit must be an integer from 0 to 2147483647.`,
    ]),
    [
      ['key', 'rotate', 'key_x', '--grace-hours', '8761'],
      "option '--grace-hours <count>' argument '8761' is invalid. graceHours must be an integer from 0 to 8760.",
    ],
    [['usage'], 'name one organization, or use --all'],
    [['usage', 'A', '--all'], 'name one organization, or use --all'],
    [['usage', '--all', '--by', 'key'], "option '--all' cannot be used with option '--by <group>'"],
    [['usage', 'A', '--csv', '--json'], "option '--csv' cannot be used with option '--json'"],
    [['--json', 'transcripts', '@a', '--format', 'srt'], "option '--format srt' cannot be used with option '--json'"],
    [['org', 'set-plan', 'nobody', 'pro'], 'No organization has the ID or name "nobody".'],
    [['key', 'revoke', secret], 'No API key has the ID "ctk_aaaaaa…".'],
  ])('%j', async (args, line) => {
    expect(await cli(...args)).toEqual({ code: 1, output: '', errorOutput: `error: ${line}\n` });
  });

  it('when the database cannot be reached, without its password', async () => {
    const { code, output, errorOutput } = await runCli(['org', 'list'], {
      DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/db',
    });
    expect({ code, output }).toEqual({ code: 1, output: '' });
    expect(errorOutput).toMatch(/^error: [^\n]*127\.0\.0\.1:1[^\n]*\n$/);
    expect(errorOutput).not.toContain('hunter2');
  });
});
