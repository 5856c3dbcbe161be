import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKey, hashKey } from '../../src/organizations/api-key.js';
import { CliSession } from '../admin/run-cli.js';
import { randomPart, refuseSecrets, rowsAsText } from '../harness/plaintext-keys.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';

// Commands are started, one after another.

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-77c2';
const TRANSCRIPTS = '/channels/@tidewater/transcripts';

let service: TestService;
let commands: CliSession;
beforeAll(async () => {
  commands = new CliSession();
  service = await startService({ environment: { ADMIN_TOKEN } });
});
afterAll(async () => {
  commands.close();
  await service.close();
});

/** Every issued key, and every text that must not contain one. */
const keys: string[] = [];
const bodies: string[] = [];
const outputs: string[] = [];

/** Collects the response for the search. */
async function stored(responding: Promise<ServiceResponse>): Promise<ServiceResponse> {
  const response = await responding;
  bodies.push(response.text, JSON.stringify(response.headers));
  return response;
}

const admin = (method: string, path: string, body?: string): Promise<ServiceResponse> =>
  service.request(
    method,
    `/admin${path}`,
    { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' },
    body,
  );

/** Runs a command that shows no key. */
async function cli(...args: string[]): Promise<string> {
  const { output, errorOutput } = await commands.run(args, { DATABASE_URL: service.databaseUrl, LOG_LEVEL: 'trace' });
  outputs.push(output, errorOutput);
  return output;
}

/** Runs a command that shows a key. */
async function cliKey(...args: string[]): Promise<{ id: string; key: string }> {
  const { output, errorOutput } = await commands.run([...args, '--json'], {
    DATABASE_URL: service.databaseUrl,
    LOG_LEVEL: 'trace',
  });
  outputs.push(errorOutput);
  const shown = JSON.parse(output) as { id: string; key: string };
  keys.push(shown.key);
  return shown;
}

describe('no API key and no admin token is in plain text', () => {
  it('after a key was sent in the wrong place', async () => {
    const { key, id } = await service.organization();
    keys.push(key);
    const bearer = { Authorization: `Bearer ${key}` };
    for (const [path, headers] of [
      [`/usage?api_key=${key}`, bearer],
      [`${TRANSCRIPTS}?limit=${key}`, bearer],
      [`${TRANSCRIPTS}?languages=${key}`, bearer],
      [`${TRANSCRIPTS}?${key}=1`, bearer],
      [`/channels/${key}/transcripts`, bearer],
      [`/channels/https://www.youtube.com/${key}/transcripts`, bearer],
      [`/${key}`, {}],
      [`/%zz${key}`, {}],
      ['/usage', { Authorization: key }],
      ['/usage', { Authorization: `Basic ${key}` }],
      ['/usage', { Authorization: `Bearer ${key} ${key}` }],
      [
        '/usage',
        { ...bearer, 'X-Request-Id': key, 'User-Agent': key, Cookie: `key=${key}`, Referer: `http://${key}/` },
      ],
      [`/usage?${'x'.repeat(20_000)}`, bearer],
      [`/admin/organizations/${key}`, { Authorization: `Bearer ${ADMIN_TOKEN}` }],
      [`/admin/organizations?after=${key}`, { Authorization: `Bearer ${ADMIN_TOKEN}` }],
      ['/admin/organizations', bearer],
    ] as [string, Record<string, string>][]) {
      await stored(service.request('GET', path, headers));
    }
    for (const body of [
      JSON.stringify({ name: key, plan: 'pro' }),
      JSON.stringify({ name: 'A', plan: key }),
      JSON.stringify({ name: 'A', plan: 'pro', [key]: 1 }),
      `{"name": ${key}}`,
      key,
    ]) {
      expect((await stored(admin('POST', '/organizations', body))).status).toBe(400);
    }
    await stored(admin('POST', `/organizations/${id}/keys`, JSON.stringify({ name: `my key ${key}` })));
    await stored(admin('POST', `/keys/${key}/rotate`));
    await stored(admin('DELETE', `/keys/${key}`));
    await stored(service.request('GET', '/admin/organizations', { Authorization: 'Bearer not-the-admin-token' }));
  });

  it('after the commands', async () => {
    const { id } = JSON.parse(await cli('org', 'create', '--name', 'Commands', '--plan', 'pro', '--json')) as {
      id: string;
    };
    const { id: keyId, key } = await cliKey('key', 'issue', id);
    await cliKey('key', 'rotate', keyId);
    await stored(service.get('/usage', key));
    await cli('key', 'list', id);
    await cli('key', 'list', id, '--json');
    await cli('org', 'list');
    await cli('usage', key);
    await cli('key', 'revoke', key);
    await cli('org', 'create', '--name', key, '--plan', 'pro');
    await cli('key', 'issue', id, '--name', key);
    await cli(key);
  });

  it('in a log line, a row, a response or the output of a command', async () => {
    expect(new Set(keys).size).toBe(3);
    const texts = {
      logs: service.logs.join(''),
      rows: await rowsAsText(service),
      answers: bodies.join('\n'),
      commands: outputs.join('\n'),
    };
    // What is searched is there: display prefixes, and the hashes in the rows.
    for (const text of Object.values(texts)) expect(text).toContain('ctk_');
    expect(texts.rows).toContain(hashKey(keys[0] ?? '').toString('base64'));
    refuseSecrets(texts, [...new Set(keys.map(randomPart)), ADMIN_TOKEN]);
  });

  it('and the search detects a key that is present', () => {
    const key = generateKey();
    expect(() => refuseSecrets({ log: `x ${key} y` })).toThrow('An API key is in log');
    expect(() => refuseSecrets({ log: randomPart(key) }, [randomPart(key)])).toThrow('A secret is in log');
    expect(() => refuseSecrets({ log: key.slice(0, 10) }, [randomPart(key)])).not.toThrow();
  });
});
