import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { exportSPKI, importJWK, type JWTPayload } from 'jose';
import { DataSource } from 'typeorm';
import { BackgroundLoops } from '../../src/background/background-loops.js';
import { DatabaseClock } from '../database/database-clock.js';
import { refuseSecrets, rowsAsText } from '../harness/plaintext-keys.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { AUDIENCE, newKey, TestIdentityProvider } from './identity-provider.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-9d4b';

let provider: TestIdentityProvider;
let service: TestService;
let organizationId: string;
const tokens: string[] = [];

beforeAll(async () => {
  provider = await TestIdentityProvider.start([
    { id: 'reports', claims: { org_id: 'acme' } },
    { id: 'exports', claims: { org_id: 'acme' } },
    { id: 'stranger', claims: { org_id: 'nobody' } },
  ]);
  service = await startService({
    environment: {
      ADMIN_TOKEN,
      OIDC_ISSUER: provider.issuer,
      OIDC_AUDIENCE: AUDIENCE,
      TRUST_PROXY: '1',
      // Its loop would query the database too.
      JOB_CONCURRENCY: 0,
    },
  });
  // Tests count the queries of calls.
  await service.app.get(BackgroundLoops).stop();
  organizationId = String(
    (await admin('POST', '/organizations', { name: 'Acme', plan: 'pro', externalId: 'acme' })).body.id,
  );
});
beforeEach(() => service.fakeYoutube.reset());
afterAll(async () => {
  await provider.stop();
  const texts = { logs: service.logs.join(''), rows: await rowsAsText(service) };
  await service.close();
  refuseSecrets(texts, tokens.flatMap(partsOf));
});

function admin(method: string, path: string, body?: object): Promise<ServiceResponse> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' };
  return service.request(method, `/admin${path}`, headers, body && JSON.stringify(body));
}

let addresses = 0;

/** Calls from an address of its own, unless one is given: failures are counted by address. */
function call(token: string, address = `192.0.2.${(addresses += 1)}`, path = '/usage'): Promise<ServiceResponse> {
  tokens.push(token);
  return service.get(path, token, { 'X-Forwarded-For': address });
}

const partsOf = (token: string): string[] => token.split('.').filter((part) => part !== '');

const claims = (more: Record<string, unknown> = {}): JWTPayload => ({
  client_id: 'reports',
  org_id: 'acme',
  sub: 'reports',
  ...more,
});

interface Listed {
  id: string;
  kind: string;
  client: string | null;
  prefix: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
}

async function client(name: string): Promise<Listed> {
  const { keys } = (await admin('GET', `/organizations/${organizationId}/keys`)).body as { keys: Listed[] };
  const found = keys.find((key) => key.client === name);
  if (!found) throw new Error(`${name} is not listed.`);
  return found;
}

describe('a token by client credentials', () => {
  it('gets transcripts, which are charged to its organization and its client', async () => {
    const token = await provider.token('reports');
    const { status, body } = await call(token, undefined, '/channels/@2-videos-no-1/transcripts');
    expect([status, body.summary]).toEqual([200, { total: 2, succeeded: 2, failed: 0, cached: 0, fetched: 2 }]);
    const listed = await client('reports');
    expect(listed).toMatchObject({ kind: 'oidc', prefix: null, revokedAt: null });
    const usage = await admin('GET', `/organizations/${organizationId}/usage?by=key`);
    expect(usage.body.report.rows).toEqual([{ group: listed.id, name: 'reports', calls: 1, charged: 2, forfeited: 0 }]);
    await until(async () => (await client('reports')).lastUsedAt !== null);
  });

  it('costs one query, and calls at once add one row for a new client', async () => {
    const token = await provider.token('exports');
    const responses = await Promise.all(Array.from({ length: 10 }, () => call(token)));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
    const [{ count } = { count: 0 }] = await service.query(
      "SELECT count(*)::int FROM api_keys WHERE client = 'exports'",
    );
    expect(count).toBe(1);
    await until(async () => (await client('exports')).lastUsedAt !== null);
    const query = jest.spyOn(service.app.get(DataSource), 'query');
    try {
      // With a plan that does not suffice the call ends after its authentication.
      await service.query(`UPDATE organizations SET plan = 'free' WHERE id = '${organizationId}'`);
      expect((await call(token, undefined, '/channels/@2-videos-no-1/transcripts')).body.error.code).toBe(
        'feature_not_in_plan',
      );
      expect(query).toHaveBeenCalledTimes(1);
    } finally {
      query.mockRestore();
      await service.query(`UPDATE organizations SET plan = 'pro' WHERE id = '${organizationId}'`);
    }
  });

  it('of a blocked client is refused on the next call, until the client is unblocked', async () => {
    const token = await provider.token('exports');
    const { id } = await client('exports');
    expect((await admin('POST', `/keys/${id}/rotate`, {})).body.error.code).toBe('conflict');
    expect((await admin('DELETE', `/keys/${id}`)).body.revokedAt).not.toBeNull();
    for (const refused of [token, await provider.token('exports')]) {
      const { status, body, headers } = await call(refused);
      expect([status, body.error.code, headers['www-authenticate']]).toEqual([403, 'client_blocked', undefined]);
    }
    expect((await call(await provider.token('reports'))).status).toBe(200);
    expect((await admin('POST', `/keys/${id}/unblock`)).body).toMatchObject({ id, revokedAt: null });
    expect((await call(token)).status).toBe(200);
    const { entries } = (await admin('GET', '/audit?limit=2')).body as {
      entries: { action: string; target: string }[];
    };
    expect(entries.map(({ action, target }) => [action, target])).toEqual([
      ['key.unblocked', id],
      ['key.revoked', id],
    ]);
  });

  it('of an organization that is not linked is refused, and counts as a failure of the address', async () => {
    const token = await provider.token('stranger');
    const responses: ServiceResponse[] = [];
    expect((await call(await provider.token('reports'))).status).toBe(200);
    for (let count = 0; count < 20; count += 1) responses.push(await call(token, '198.51.100.1'));
    const query = jest.spyOn(service.app.get(DataSource), 'query');
    try {
      responses.push(await call(token, '198.51.100.1'));
      expect(query).not.toHaveBeenCalled();
    } finally {
      query.mockRestore();
    }
    expect(responses[0]?.body.error).toMatchObject({ code: 'organization_not_linked', retryable: false });
    expect(responses[0]?.body.error.message).toContain('"nobody"');
    expect(responses.map(({ status }) => status)).toEqual([...Array<number>(20).fill(403), 429]);
    // A client that was accepted a moment ago is not throttled.
    expect((await call(await provider.token('reports'), '198.51.100.1')).status).toBe(200);
  });

  it('of a client that was blocked is throttled as well', async () => {
    const token = await provider.sign(claims({ client_id: 'throttled' }));
    expect((await call(token, '198.51.100.4')).status).toBe(200);
    await admin('DELETE', `/keys/${(await client('throttled')).id}`);
    const statuses: number[] = [];
    for (let count = 0; count < 20; count += 1) statuses.push((await call(token, '198.51.100.4')).status);
    const query = jest.spyOn(service.app.get(DataSource), 'query');
    try {
      statuses.push((await call(token, '198.51.100.4')).status);
      expect(query).not.toHaveBeenCalled();
    } finally {
      query.mockRestore();
    }
    expect(statuses).toEqual([...Array<number>(20).fill(403), 429]);
  });

  it('of a new client is refused while 1,000 of them have called within 30 days, also when calls come at once', async () => {
    const { id } = (await admin('POST', '/organizations', { name: 'Full', plan: 'free', externalId: 'full' })).body;
    await service.query(`INSERT INTO api_keys (id, organization_id, name, kind, client, created_at)
      SELECT 'key_full_' || n, '${String(id)}', 'n', 'oidc', 'full-' || n, clock_now() FROM generate_series(1, 998) n`);
    const signing = Array.from({ length: 6 }, (_, n) =>
      provider.sign(claims({ org_id: 'full', client_id: `new-${n}` })),
    );
    const responses = await Promise.all((await Promise.all(signing)).map((token) => call(token)));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 403, 403, 403, 403]);
    const refused = responses.find(({ status }) => status === 403)?.body.error;
    expect(refused).toMatchObject({ code: 'client_blocked', message: expect.stringContaining('1,000 clients') });
    const statusOf = async (clientId: string) =>
      (await call(await provider.sign(claims({ org_id: 'full', client_id: clientId })))).status;
    expect(await statusOf('full-1')).toBe(200);
    // A client that has never called is counted from its row on, one that has from its last call.
    const age = (name: string, column: string, days: number) =>
      service.query(`UPDATE api_keys SET ${column} = clock_now() - interval '${days} days' WHERE client = '${name}'`);
    await age('full-2', 'created_at', 29);
    await age('full-1', 'created_at', 31);
    await until(
      async () =>
        (await service.query("SELECT 1 FROM api_keys WHERE client = 'full-1' AND last_used_at IS NOT NULL")).length ===
        1,
    );
    expect(await statusOf('later')).toBe(403);
    await age('full-1', 'last_used_at', 31);
    expect(await statusOf('later')).toBe(200);
    expect(await statusOf('latest')).toBe(403);
    // One that is known is never refused.
    expect(await statusOf('full-1')).toBe(200);
    const clock = new DatabaseClock((statement) => service.query(statement));
    await clock.move(31 * 86_400);
    expect(await statusOf('latest')).toBe(200);
    await clock.reset();
  });
});

describe('a client that was not used for 90 days', () => {
  it('is listed no more, and removed when another one comes, unless it is blocked or has usage', async () => {
    const externalId = 'aging';
    const organization = (await admin('POST', '/organizations', { name: 'Aging', plan: 'pro', externalId })).body.id;
    const callOf = async (name: string, path?: string) =>
      call(await provider.sign(claims({ org_id: externalId, client_id: name })), undefined, path);
    const listed = async () =>
      ((await admin('GET', `/organizations/${organization}/keys`)).body as { keys: Listed[] }).keys.map(
        (key) => key.client,
      );
    const rows = async () =>
      (
        await service.query(`SELECT client FROM api_keys WHERE organization_id = '${organization}' ORDER BY client`)
      ).map((row) => row['client']);
    for (const name of ['blocked', 'fresh', 'idle', 'returning']) expect((await callOf(name)).status).toBe(200);
    expect((await callOf('paying', '/channels/@2-videos-no-71/transcripts')).status).toBe(200);
    const { keys } = (await admin('GET', `/organizations/${organization}/keys`)).body as { keys: Listed[] };
    const idOf = (name: string) => keys.find((key) => key.client === name)?.id;
    await admin('DELETE', `/keys/${idOf('blocked')}`);
    const unused = `SELECT 1 FROM api_keys WHERE organization_id = '${organization}' AND last_used_at IS NULL`;
    await until(async () => (await service.query(unused)).length === 0);
    await service.query(
      `UPDATE api_keys SET last_used_at = clock_now() - interval '91 days'
         WHERE organization_id = '${organization}' AND client <> 'fresh'`,
    );
    expect(await listed()).toEqual(['blocked', 'fresh']);
    expect((await callOf('returning')).status).toBe(200);
    await until(async () => (await listed()).includes('returning'));
    expect((await callOf('new')).status).toBe(200);
    expect(await listed()).toEqual(['blocked', 'fresh', 'returning', 'new']);
    expect(await rows()).toEqual(['blocked', 'fresh', 'new', 'paying', 'returning']);
    expect((await callOf('blocked')).body.error.code).toBe('client_blocked');
    const { report } = (await admin('GET', `/organizations/${organization}/usage?by=key`)).body;
    expect(report.rows).toEqual([{ group: idOf('paying'), name: 'paying', calls: 1, charged: 2, forfeited: 0 }]);
    const { entries } = (await admin('GET', `/audit?organization=${organization}&limit=1`)).body;
    expect(entries).toEqual([expect.objectContaining({ action: 'key.revoked', target: idOf('blocked') })]);
  });
});

describe('the organization of a token', () => {
  it('is the one with the external ID, which only one has', async () => {
    const taken = await admin('POST', '/organizations', { name: 'Other', plan: 'free', externalId: 'acme' });
    expect([taken.status, taken.body.error.code]).toEqual([409, 'conflict']);
    const { id } = (await admin('POST', '/organizations', { name: 'Other', plan: 'free' })).body as { id: string };
    expect((await admin('PATCH', `/organizations/${id}`, { externalId: 'acme' })).status).toBe(409);
    const token = await provider.sign(claims({ org_id: 'other' }));
    expect((await call(token)).status).toBe(403);
    expect((await admin('PATCH', `/organizations/${id}`, { externalId: 'other' })).body.externalId).toBe('other');
    expect((await call(token)).body.organization).toBe(id);
    await admin('DELETE', `/organizations/${id}`);
    expect((await call(token)).body.error.code).toBe('organization_not_linked');
    const next = await admin('POST', '/organizations', { name: 'Next', plan: 'free', externalId: 'other' });
    expect((await call(token)).body.organization).toBe(next.body.id);
    const { entries } = (await admin('GET', `/audit?organization=${id}`)).body as { entries: object[] };
    expect(entries.slice(1, 2)).toEqual([
      expect.objectContaining({
        action: 'organization.external_id_changed',
        before: { externalId: null },
        after: { externalId: 'other' },
      }),
    ]);
  });

  it.each([[undefined], [''], [7], [{}], [[]], [['acme', 'other']], ['a\nb']])(
    'is not named by %j, so that the token is refused',
    async (value) => {
      const { status, body } = await call(await provider.sign(claims({ org_id: value })));
      expect([status, body.error.code]).toEqual([403, 'organization_not_linked']);
    },
  );

  it.each([
    ['255 characters beyond the BMP', '\u{1F600}'.repeat(255), '\u{1F600}'.repeat(255)],
    ['another Unicode form', 'Caf\u00e9', 'Cafe\u0301'],
    ['spaces around it', 'spaced', ' spaced\n'],
  ])('is found by %s, whichever side has it', async (_name, one, other) => {
    for (const [externalId, claim] of [
      [one, other],
      [other, one],
    ]) {
      const { status, body } = await admin('POST', '/organizations', { name: 'Texts', plan: 'free', externalId });
      expect([status, body.externalId]).toEqual([201, one]);
      expect((await call(await provider.sign(claims({ org_id: claim })))).body.organization).toBe(body.id);
      await admin('DELETE', `/organizations/${String(body.id)}`);
    }
  });

  it('has at most 255 characters on both sides', async () => {
    const externalId = '\u{1F600}'.repeat(256);
    expect((await admin('POST', '/organizations', { name: 'Texts', plan: 'free', externalId })).status).toBe(400);
    const { status, body } = await call(await provider.sign(claims({ org_id: externalId })));
    expect([status, body.error.message]).toEqual([403, expect.stringContaining('at most 255 characters')]);
  });

  it('may be a list of one', async () => {
    expect((await call(await provider.sign(claims({ org_id: ['acme'] })))).status).toBe(200);
  });
});

const now = () => Math.floor(Date.now() / 1000);

describe('an invalid token', () => {
  const cases: [string, string, () => Promise<string>][] = [
    ['for another audience', '(aud)', () => provider.sign(claims({ aud: 'another' }))],
    ['of another issuer', '(iss)', () => provider.sign(claims({ iss: 'https://id.example.com' }))],
    ['that has expired', '(exp)', () => provider.sign(claims({ exp: now() - 35 }))],
    ['without a time of expiry', '(exp)', () => provider.sign(claims({ exp: undefined }))],
    ['that is not valid yet', '(nbf)', () => provider.sign(claims({ nbf: now() + 40 }))],
    ['without a client', '(azp or client_id)', () => provider.sign(claims({ client_id: undefined }))],
    ['with an unknown key', '(kid)', () => provider.sign(claims(), { kid: 'unknown' })],
    [
      'with a key of somebody else',
      'signature',
      async () => provider.sign(claims(), { key: await newKey('first', 'RS256') }),
    ],
    ['without a signature', '(alg)', () => Promise.resolve(unsigned('none', ''))],
    ['signed with the public key as a secret', '(alg)', signedWithPublicKey],
    ['that is cut off', 'malformed', async () => (await provider.sign(claims())).split('.').slice(0, 2).join('.')],
    ['that is encrypted', 'malformed', () => Promise.resolve('eyJhbGciOiJkaXIifQ..AAAA.BBBB.CCCC')],
    ['with other claims', 'signature', withOtherClaims],
    ['of another type', '(typ)', () => provider.sign(claims(), { typ: 'logout+jwt' })],
    ['that Keycloak issued as an ID token', '(typ)', () => provider.sign(claims({ typ: 'ID' }))],
    ['that Keycloak issued for a logout', '(typ)', () => provider.sign(claims({ typ: 'Logout' }))],
    ['that is an ID token with an access token', 'at_hash', () => provider.sign(claims({ at_hash: 'x' }))],
    ['bound to a key of its sender', '(cnf)', () => provider.sign(claims({ cnf: { jkt: 'x' } }))],
    ['bound to a certificate', '(cnf)', () => provider.sign(claims({ cnf: { 'x5t#S256': 'x' } }))],
    ['that is an ID token with a code', 'c_hash', () => provider.sign(claims({ c_hash: 'x' }))],
  ];

  it.each(cases)('%s is 401, naming %s', async (_name, reason, make) => {
    const token = await make();
    const query = jest.spyOn(service.app.get(DataSource), 'query');
    try {
      const { status, body, headers, text } = await call(token);
      expect([status, body.error.code, body.error.retryable]).toEqual([401, 'invalid_token', false]);
      expect(body.error.message).toContain(reason);
      expect(headers['www-authenticate']).toBe(
        `Bearer error="invalid_token", resource_metadata="${service.url}/.well-known/oauth-protected-resource"`,
      );
      refuseSecrets({ text }, partsOf(token));
      expect(query).not.toHaveBeenCalled();
    } finally {
      query.mockRestore();
    }
  });

  it('counts as a failed authentication of its address', async () => {
    const token = await provider.sign(claims({ aud: 'another' }));
    const statuses: number[] = [];
    for (let count = 0; count < 22; count += 1) statuses.push((await call(token, '198.51.100.2')).status);
    expect(statuses).toEqual([...Array<number>(20).fill(401), 429, 429]);
  });

  it('is redacted wherever else a caller sends it', async () => {
    const token = await provider.token('reports');
    tokens.push(token);
    const response = await service.get(`/channels/@${token}/transcripts?${token}=1`, await provider.token('reports'), {
      'X-Request-Id': token,
    });
    refuseSecrets({ text: response.text, id: String(response.headers['x-request-id']) }, partsOf(token));
  });

  it('is valid within 30 seconds of its times', async () => {
    for (const times of [{ exp: now() - 20 }, { nbf: now() + 20 }])
      expect((await call(await provider.sign(claims(times)))).status).toBe(200);
  });
});

describe('an access token', () => {
  it.each(['JWT', 'at+jwt', 'AT+JWT', 'application/at+jwt'])('may have the type %s', async (typ) => {
    expect((await call(await provider.sign(claims({ typ: 'Bearer' }), { typ }))).status).toBe(200);
  });
});

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function unsigned(alg: string, signature: string): string {
  return `${part({ alg, kid: 'first' })}.${part({ iss: provider.issuer, aud: AUDIENCE, exp: now() + 60, ...claims() })}.${signature}`;
}

async function signedWithPublicKey(): Promise<string> {
  const { n = '', e = '' } = provider.keys[0] ?? {};
  const key = await importJWK({ kty: 'RSA', n, e }, 'RS256', { extractable: true });
  const body = unsigned('HS256', '').slice(0, -1);
  return `${body}.${createHmac('sha256', await exportSPKI(key))
    .update(body)
    .digest('base64url')}`;
}

async function withOtherClaims(): Promise<string> {
  const [header, , signature] = (await provider.sign(claims({ org_id: 'other' }))).split('.');
  return `${header}.${unsigned('RS256', '').split('.')[1]}.${signature}`;
}

describe('the limit per minute', () => {
  it('is that of each client', async () => {
    const oidc = { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE };
    const limited = await startService({ environment: { ...oidc, RATE_LIMIT_PER_MINUTE: 2 } });
    try {
      const { id } = await limited.organization();
      await limited.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
      const statuses: number[] = [];
      // The second token of a client is counted with its first one.
      for (const name of ['reports', 'reports', 'reports', 'exports'])
        statuses.push((await limited.get('/usage', await provider.token(name))).status);
      expect(statuses).toEqual([200, 200, 429, 200]);
    } finally {
      await limited.close();
    }
  });
});

describe('beside tokens', () => {
  it('API keys are accepted as before', async () => {
    const { key } = await service.organization();
    expect((await service.get('/usage', key)).status).toBe(200);
  });

  it('a call without a credential is told where tokens are issued', async () => {
    const { status, headers } = await service.request('GET', '/usage');
    expect([status, headers['www-authenticate']]).toEqual([
      401,
      `Bearer resource_metadata="${service.url}/.well-known/oauth-protected-resource"`,
    ]);
  });
});
