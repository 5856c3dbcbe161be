import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

describe('the admin API', () => {
  const ADMIN_TOKEN = 'an-admin-token-of-the-tests-1f8a';
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: { ADMIN_TOKEN, TRUST_PROXY: 'loopback' } });
  });
  afterAll(() => service.close());
  const TOKEN = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const JSON_BODY = { ...TOKEN, 'Content-Type': 'application/json' };

  /** Calls as the admin; an object is sent as JSON, a text unchanged. */
  function admin(method: string, path: string, body?: object | string): Promise<ServiceResponse> {
    const text = typeof body === 'object' ? JSON.stringify(body) : body;
    return service.request(method, `/admin${path}`, text === undefined ? TOKEN : JSON_BODY, text);
  }

  async function created(body: object = { name: 'Acme', plan: 'pro' }): Promise<string> {
    const response = await admin('POST', '/organizations', body);
    expect(response.status).toBe(201);
    return String(response.body.id);
  }

  async function issued(organizationId: string): Promise<{ id: string; key: string }> {
    const response = await admin('POST', `/organizations/${organizationId}/keys`);
    expect(response.status).toBe(201);
    return response.body as { id: string; key: string };
  }

  describe('a service token in the wrong place', () => {
    it('is neither echoed nor logged', async () => {
      const responses = [
        await service.request('GET', '/health/live', { 'X-Request-Id': ADMIN_TOKEN }),
        await admin('GET', `/organizations?${ADMIN_TOKEN}=1`),
        await admin('POST', '/organizations', { name: 'A', plan: 'pro', [ADMIN_TOKEN]: 1 }),
        await service.request('GET', `/${ADMIN_TOKEN}`),
      ];
      expect(responses.map(({ status }) => status)).toEqual([200, 400, 400, 404]);
      for (const { text, headers } of responses) expect(text + JSON.stringify(headers)).not.toContain(ADMIN_TOKEN);
    });
  });

  describe('organizations over the admin API', () => {
    it('are created, read, changed and deleted; the log has the address of the client by the request id of the audit trail', async () => {
      const made = await admin('POST', '/organizations', { name: ' Acme ', plan: 'free', monthlyLimit: 7 });
      expect([made.status, made.body]).toEqual([
        201,
        {
          ...{ id: made.body.id, name: 'Acme', plan: 'free', monthlyLimit: 7, externalId: null },
          createdAt: made.body.createdAt,
        },
      ]);
      const id = String(made.body.id);
      const [{ requestId }] = (await admin('GET', `/audit?organization=${id}`)).body.entries as [{ requestId: string }];
      const lines = () => service.logs.filter((line) => line.includes(`"requestId":"${requestId}"`));
      await until(() => lines().length > 0);
      expect(JSON.parse(lines()[0] ?? '{}')).toMatchObject({
        event: 'request',
        admin: true,
        status: 201,
        address: '127.0.0.1',
      });
      expect((await admin('GET', `/organizations/${id}`)).body).toEqual(made.body);
      const changed = await admin('PATCH', `/organizations/${id}`, { plan: 'pro', monthlyLimit: null });
      expect([changed.status, changed.body]).toEqual([200, { ...made.body, plan: 'pro', monthlyLimit: null }]);
      const limited = await admin('PATCH', `/organizations/${id}`, { monthlyLimit: 0 });
      expect(limited.body).toMatchObject({ plan: 'pro', monthlyLimit: 0 });

      const again = await admin('POST', '/organizations', { name: 'Acme', plan: 'free' });
      expect([again.status, again.body.sameName]).toEqual([201, [id]]);

      await issued(id);
      const deleted = await admin('DELETE', `/organizations/${id}`);
      expect([deleted.status, deleted.body]).toMatchObject([200, { id, revokedKeys: 1 }]);
      for (const [method, path] of [
        ['GET', ''],
        ['DELETE', ''],
        ['GET', '/keys'],
        ['POST', '/keys'],
      ]) {
        const response = await admin(method ?? '', `/organizations/${id}${path}`);
        expect([method, path, response.status, response.body.error.message]).toEqual([
          method,
          path,
          404,
          `No organization has the ID or name "${id}".`,
        ]);
      }
    });
  });

  describe('keys over the admin API', () => {
    it('have a monthly limit of their own when it was given, which a rotation carries over', async () => {
      const id = await created();
      const first = await admin('POST', `/organizations/${id}/keys`, { monthlyLimit: 500 });
      expect([first.status, first.body.monthlyLimit]).toEqual([201, 500]);
      const rotated = await admin('POST', `/keys/${String(first.body.id)}/rotate`, {});
      expect([rotated.status, rotated.body.monthlyLimit]).toEqual([201, 500]);
      await admin('POST', `/organizations/${id}/keys`, { monthlyLimit: null });
      const { body } = await admin('GET', `/organizations/${id}/keys`);
      expect((body.keys as { monthlyLimit: number | null }[]).map(({ monthlyLimit }) => monthlyLimit)).toEqual([
        500,
        500,
        null,
      ]);
      const refused = await admin('POST', `/organizations/${id}/keys`, { monthlyLimit: -1 });
      expect([refused.status, refused.body.error.details]).toMatchObject([400, [{ field: 'monthlyLimit' }]]);
      expect((await admin('GET', `/organizations/${id}/usage?verify=true`)).body.verification).toEqual({
        exact: true,
        periods: [],
        keys: [],
      });
    });

    it('are issued, used, listed without the key, rotated with a grace period and revoked', async () => {
      const id = await created();
      const first = await admin('POST', `/organizations/${id}/keys`, { name: 'server', expiresInDays: 30 });
      expect([first.status, first.body.name, first.body.organizationId]).toEqual([201, 'server', id]);
      expect(first.body.key).toMatch(/^ctk_[0-9A-Za-z]{49}$/);
      expect((await service.get('/usage', first.body.key as string)).status).toBe(200);

      const rotated = await admin('POST', `/keys/${first.body.id}/rotate`, { graceHours: 0 });
      expect([rotated.status, rotated.body.replaced.id]).toEqual([201, first.body.id]);
      expect((await service.get('/usage', first.body.key as string)).status).toBe(401);
      const again = await admin('POST', `/keys/${rotated.body.id}/rotate`);
      expect([again.status, again.body.replaced.revokedAt]).toEqual([201, null]);
      for (const key of [rotated.body.key, again.body.key] as string[]) {
        expect((await service.get('/usage', key)).status).toBe(200);
      }

      const revoked = await admin('DELETE', `/keys/${again.body.id}`);
      expect(revoked.status).toBe(200);
      const repeated = await admin('DELETE', `/keys/${again.body.id}`);
      expect([repeated.status, repeated.body.revokedAt]).toEqual([200, revoked.body.revokedAt]);
      // Its predecessor is in its grace period; the one before that was ended at once.
      const { id: predecessor, expiresAt } = again.body.replaced as { id: string; expiresAt: string };
      expect(revoked.body.stillValid).toMatchObject([{ id: predecessor, expiresAt, revokedAt: null }]);
      expect((await service.get('/usage', rotated.body.key as string)).status).toBe(200);
      expect((await admin('DELETE', `/keys/${rotated.body.id}`)).body.stillValid).toEqual([]);
      expect((await service.get('/usage', again.body.key as string)).status).toBe(401);

      const page = await admin('GET', `/organizations/${id}/keys?limit=2`);
      expect([page.body.keys.length, page.body.next, page.text.includes('"key":')]).toEqual([
        2,
        rotated.body.id,
        false,
      ]);
      const rest = await admin('GET', `/organizations/${id}/keys?after=${page.body.next}`);
      expect([rest.body.keys.length, rest.body.keys[0].id, rest.body.next]).toEqual([1, again.body.id, null]);
      expect(service.logs.join('')).not.toContain(String(again.body.key).slice(10));
    });

    it('cannot be rotated after revocation: 409, and no key is issued', async () => {
      const id = await created();
      const { id: keyId } = await issued(id);
      await admin('DELETE', `/keys/${keyId}`);
      const response = await admin('POST', `/keys/${keyId}/rotate`);
      expect([response.status, response.body.error]).toMatchObject([409, { code: 'conflict', retryable: false }]);
      expect((await admin('GET', `/organizations/${id}/keys`)).body.keys).toHaveLength(1);
    });

    it('are 404 when unknown, and a key sent instead of an id is not echoed', async () => {
      const { key } = await issued(await created());
      for (const [method, path] of [
        ['POST', '/keys/key_none/rotate'],
        ['DELETE', '/keys/key_none'],
        ['DELETE', `/keys/${key}`],
        ['DELETE', '/keys/key_%00'],
        ['POST', '/keys/key_%00/rotate'],
        ['POST', '/organizations/org_none/keys'],
        ['PATCH', '/organizations/%00'],
      ] as const) {
        const answer = await admin(method, path, method === 'PATCH' ? { plan: 'pro' } : undefined);
        expect([path, answer.status, answer.body.error.code]).toEqual([path, 404, 'not_found']);
        expect(answer.text).not.toContain(key.slice(10));
      }
    });
  });

  describe('usage over the admin API', () => {
    it('equals GET /usage, and is recomputed on request', async () => {
      const id = await created();
      const { key } = await issued(id);
      await service.get('/channels/@tidewater/transcripts?limit=2', key);
      const usage = await admin('GET', `/organizations/${id}/usage`);
      expect(usage.body).toEqual((await service.get('/usage', key)).body);
      const verified = await admin('GET', `/organizations/${id}/usage?verify=true`);
      expect(verified.body).toMatchObject({
        ...(usage.body as object),
        used: 2,
        verification: { exact: true, periods: [{ used: 2, recomputed: 2, settledCalls: 1 }] },
      });
    });

    it('of a deleted organization remains available by id, with every month, for invoicing', async () => {
      const id = await created();
      const { key } = await issued(id);
      await service.get('/channels/@2-videos-no-1/transcripts', key);
      await until(async () => (await admin('GET', `/organizations/${id}/usage`)).body.reserved === 0);
      const before = await admin('GET', `/organizations/${id}/usage?verify=true`);
      expect(before.body).toMatchObject({ used: 2, remaining: 4998, verification: { exact: true } });
      const deleted = await admin('DELETE', `/organizations/${id}`);
      const { status, body } = await admin('GET', `/organizations/${id}/usage?verify=true`);
      const expected = { ...(before.body as object), remaining: 0, deletedAt: String(deleted.body.deletedAt) };
      expect([status, body]).toEqual([200, expected]);
      expect((await service.get('/usage', key)).status).toBe(401);
      expect((await admin('GET', '/organizations/org_never/usage')).status).toBe(404);
    });

    it('is reported by day, key and resource, charged once and free to read', async () => {
      const id = await created();
      const { key, id: keyId } = await issued(id);
      await service.get('/channels/@2-videos-no-7/transcripts', key);
      await until(async () => (await admin('GET', `/organizations/${id}/usage`)).body.reserved === 0);
      const today = new Date().toISOString().slice(0, 10);
      for (const [by, group] of [
        ['day', expect.stringMatching(/^\d{4}-\d\d-\d\d$/)],
        ['key', keyId],
        ['resource', expect.stringMatching(/^UC/)],
      ]) {
        const { status, body } = await admin('GET', `/organizations/${id}/usage?by=${String(by)}`);
        expect([status, body]).toMatchObject([
          200,
          { used: 2, report: { by, charged: 2, rows: [{ group, calls: 1, charged: 2, forfeited: 0 }] } },
        ]);
      }
      const past = await admin('GET', `/organizations/${id}/usage?from=2025-11-01&to=2025-12-01`);
      expect(past.body.report).toEqual({ from: '2025-11-01', to: '2025-12-01', by: 'day', charged: 0, rows: [] });
      expect((await admin('GET', `/organizations/${id}/usage?to=${today}&from=${today}`)).status).toBe(400);
      expect((await admin('GET', '/organizations/org_never/usage?by=day')).status).toBe(404);
    });
  });

  describe('the usage of all organizations', () => {
    it('is JSON or, by Accept, CSV, with deleted organizations and the names of keys', async () => {
      const id = await created({ name: 'Billed, Inc.', plan: 'pro' });
      const { key, id: keyId } = await issued(id);
      await service.get('/channels/@2-videos-no-9/transcripts', key);
      await until(async () => (await admin('GET', `/organizations/${id}/usage`)).body.reserved === 0);
      await admin('DELETE', `/organizations/${id}`);
      const { status, headers, body } = await admin('GET', '/usage');
      expect([status, headers['content-type'], headers['vary']]).toEqual([
        ...[200, 'application/json; charset=utf-8', expect.stringContaining('Accept')],
      ]);
      const counts = { calls: 1, charged: 2, forfeited: 0 };
      const keys = [{ group: keyId, name: 'default', ...counts }];
      expect(body).toMatchObject({ by: 'organization', from: expect.stringMatching(/-01$/) });
      expect(body.rows).toContainEqual({ group: id, name: 'Billed, Inc.', ...counts, keys });
      const csv = await service.request('GET', '/admin/usage', { ...TOKEN, Accept: 'text/csv' });
      expect([csv.status, csv.headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8']);
      expect(csv.text.split('\n')[0]).toBe('organization,name,calls,charged,forfeited,keys');
      expect(csv.text).toContain(`\n${id},"Billed, Inc.",1,2,0,${keyId} (default): 2\n`);
      expect(csv.text.trimEnd().split('\n')).toHaveLength(Number(body.rows.length) + 1);
      expect((await admin('GET', '/usage?from=2025-11-01&to=2025-11-02')).body.charged).toBe(0);
      for (const query of ['from=2025-01-01', 'from=May', 'from=2026-01-01&to=2026-01-01', 'by=key'])
        expect((await admin('GET', `/usage?${query}`)).status).toBe(400);
      expect((await service.request('GET', '/admin/usage')).status).toBe(401);
    });
  });

  describe('the list of organizations', () => {
    it('has those whose name contains a text', async () => {
      const id = await created({ name: 'Needle works', plan: 'free' });
      expect((await admin('GET', '/organizations?name=needle')).body).toEqual({
        organizations: [expect.objectContaining({ id })],
        next: null,
      });
      expect((await admin('GET', '/organizations?name=')).status).toBe(400);
    });
  });

  describe('an invalid admin request', () => {
    it.each<[string, string, object | string, string]>([
      ['POST', '/organizations', {}, 'name'],
      ['POST', '/organizations', { name: 'A', plan: 'gold' }, 'plan'],
      ['POST', '/organizations', { name: 'A', plan: 'pro', monthlyLimit: 2 ** 31 }, 'monthlyLimit'],
      ['POST', '/organizations', { name: 'A', plan: 'pro', id: 'org_mine' }, 'id'],
      ['POST', '/organizations', '{"name":"A","plan":"pro","__proto__":{"x":1}}', '__proto__'],
      ['POST', '/organizations', '{"name":"A"', 'body'],
      ['POST', '/organizations', `{"plan":"pro","name":${'['.repeat(7_900)}${']'.repeat(7_900)}}`, 'body'],
      ['PATCH', '/organizations/ID', {}, 'body'],
      ['POST', '/organizations/ID/keys', { expiresInDays: 0 }, 'expiresInDays'],
      ['POST', '/keys/KEY/rotate', { graceHours: -1 }, 'graceHours'],
      ['POST', '/usage/prune', { before: '2020-01' }, 'before'],
      ['DELETE', '/organizations/ID?force=1', '', 'force'],
      ['GET', '/organizations?limit=0', '', 'limit'],
      ['GET', '/organizations?after=org_none', '', 'after'],
      ['GET', '/organizations/ID/usage?verify=yes', '', 'verify'],
      ['GET', '/organizations/ID/usage?from=2026-02-30', '', 'from'],
      ['GET', '/organizations/ID/usage?from=2026-01-01&to=2027-11-01', '', 'to'],
    ])('%s %s %j is 400 and changes nothing', async (method, path, body, field) => {
      const id = await created();
      const { id: keyId } = await issued(id);
      const before = await state();
      const answer = await admin(method, path.replace('ID', id).replace('KEY', keyId), body === '' ? undefined : body);
      expect([answer.status, answer.body?.error.code]).toEqual([400, 'invalid_request']);
      expect((answer.body.error.details as { field: string }[]).map((detail) => detail.field)).toContain(field);
      expect(await state()).toEqual(before);
    });

    it.each<[number, string, Record<string, string>, string | Buffer]>([
      [413, 'too large', {}, JSON.stringify({ name: 'x'.repeat(20_000), plan: 'pro' })],
      [415, 'not JSON', { 'Content-Type': 'text/plain' }, '{"name":"A","plan":"pro"}'],
      [415, 'compressed', { 'Content-Encoding': 'gzip' }, Buffer.from([31, 139])],
      [400, 'not UTF-8', {}, Buffer.from([123, 34, 255, 34, 125])],
    ])('is %i and changes nothing when its body is %s', async (status, _what, headers, body) => {
      const before = await state();
      const answer = await service.request('POST', '/admin/organizations', { ...JSON_BODY, ...headers }, body);
      expect([answer.status, answer.body?.error]).toMatchObject([
        status,
        { code: 'invalid_request', retryable: false, requestId: answer.headers['x-request-id'] },
      ]);
      expect(await state()).toEqual(before);
    });

    async function state(): Promise<unknown> {
      return service.query(`
      SELECT (SELECT json_agg(o ORDER BY id) FROM organizations o)::text AS organizations,
             (SELECT json_agg(k ORDER BY id) FROM api_keys k)::text AS keys`);
    }
  });

  describe('authentication of the admin API', () => {
    /** Each from its own address, because failures are limited by address. */
    let lastAddress = 0;
    const elsewhere = (): Record<string, string> => ({ 'X-Forwarded-For': `203.0.113.${(lastAddress += 1)}` });

    it.each<[string, Record<string, string>]>([
      ['no header', {}],
      ['a wrong token', { Authorization: 'Bearer an-admin-token-of-the-tests-1f8b' }],
      ['more than the token', { Authorization: `Bearer ${ADMIN_TOKEN}x` }],
      ['another scheme', { Authorization: `Basic ${ADMIN_TOKEN}` }],
    ])('%s is 401 before any other check', async (_what, headers) => {
      const json = { 'Content-Type': 'application/json' };
      Object.assign(headers, elsewhere());
      for (const answer of [
        await service.request('GET', '/admin/organizations', headers),
        await service.request('GET', '/admin/organizations/org_none?x=1', headers),
        await service.request('POST', '/admin/organizations', { ...headers, ...json }, '{"name"'),
        await service.request('POST', '/admin/organizations', { ...headers, ...json }, 'x'.repeat(50_000)),
      ]) {
        expect([answer.status, answer.body.error.code, answer.headers['www-authenticate']]).toEqual([
          401,
          'unauthorized',
          'Bearer',
        ]);
      }
    });

    it('neither credential is accepted in place of the other', async () => {
      const { key } = await issued(await created());
      expect((await service.get('/admin/organizations', key, elsewhere())).status).toBe(401);
      expect((await service.get('/usage', ADMIN_TOKEN, elsewhere())).body.error.code).toBe('invalid_api_key');
    });

    it('repeated failures of one address are 429, while the right token is still accepted from it', async () => {
      const address = elsewhere();
      const guess = (): Promise<ServiceResponse> =>
        service.request('GET', '/admin/organizations', { ...address, Authorization: 'Bearer a-guess-at-the-token' });
      const statuses: number[] = [];
      for (let guesses = 0; guesses < 20; guesses += 1) statuses.push((await guess()).status);
      expect(new Set(statuses)).toEqual(new Set([401]));
      const refused = await guess();
      expect([refused.status, refused.body.error]).toMatchObject([429, { code: 'rate_limited', retryable: true }]);
      expect(refused.body.error.message).toContain('admin token');
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect((await service.request('GET', '/admin/organizations', { ...TOKEN, ...address })).status).toBe(200);
      expect((await guess()).status).toBe(429);
      // The keys of callers at the same address are counted apart.
      expect((await service.request('GET', '/usage', address)).status).toBe(401);
      expect((await service.request('GET', '/admin/organizations', elsewhere())).status).toBe(401);
    });

    it('failures from many addresses are 429 together, while the right token is accepted from any of them', async () => {
      const guessFrom = (host: number): Promise<ServiceResponse> =>
        service.request('GET', '/admin/organizations', {
          'X-Forwarded-For': `198.51.100.${host}`,
          Authorization: 'Bearer a-guess-at-the-token',
        });
      const statuses: number[] = [];
      for (let host = 1; host <= 101; host += 1) statuses.push((await guessFrom(host)).status);
      expect(new Set(statuses)).toEqual(new Set([401, 429]));
      const refused = await guessFrom(200);
      expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
      const address = { 'X-Forwarded-For': '198.51.100.201' };
      expect((await service.request('GET', '/admin/organizations', { ...TOKEN, ...address })).status).toBe(200);
      // Keys are counted apart.
      expect((await service.request('GET', '/usage', address)).status).toBe(401);
    });
  });
});

describe('the admin API without ADMIN_TOKEN', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it.each([
    ['GET', '/admin'],
    ['GET', '/admin/organizations'],
    ['POST', '/admin/organizations'],
    ['OPTIONS', '/admin/organizations'],
    ['HEAD', '/admin/organizations'],
    ['GET', '/ADMIN/organizations/'],
    ['POST', '/admin/usage/prune'],
    ['GET', '/%61dmin/organizations'],
    ['GET', '/x/../admin/organizations'],
  ])('%s %s responds like an unknown route', async (method, path) => {
    for (const headers of [{}, { Authorization: 'Bearer undefined' }, { Authorization: 'Bearer ' }]) {
      const body = method === 'POST' ? '{"name"' : undefined;
      const response = await service.request(method, path, { ...headers, 'Content-Type': 'application/json' }, body);
      const unknown = await service.request(method, '/nowhere', headers);
      expect([response.status, response.headers.allow]).toEqual([404, undefined]);
      // The path that is meant is never one of administration.
      expect(response.body?.error.message ?? 'Not found.').toMatch(/^Not found\.(?! Did you mean \/admin)/);
      expect(Object.keys(response.headers)).toEqual(Object.keys(unknown.headers));
    }
  });

  it('is not in the served OpenAPI document', async () => {
    const { paths } = (await service.request('GET', '/docs-json')).body as { paths: object };
    expect(Object.keys(paths).filter((path) => path.startsWith('/admin'))).toEqual([]);
  });
});
