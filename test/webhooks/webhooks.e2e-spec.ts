import { spawn, spawnSync } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { generateKey } from '../../src/organizations/api-key.js';
import { WebhookResolver } from '../../src/webhooks/webhook-url.js';
import { freePort } from '../harness/free-port.js';
import { rowsAsText } from '../harness/plaintext-keys.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';
import { measureInTime, until } from '../harness/until.js';
import { startNameServer, type NameServer } from './name-server.js';
import { startReceiver, verified, type Receiver, WEBHOOK_SECRET_KEY } from './receiver.js';

const PROJECT = join(import.meta.dirname, '../..');
/** A key and its certificate for localhost, signed by itself. */
const openssl = spawnSync(
  'openssl',
  'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout - -out -'.split(' '),
);

/** The operations on a webhook: the method, and the path after its ID. */
const ROUTES: [string, string][] = [
  ['DELETE', ''],
  ['PATCH', ''],
  ['POST', '/rotate'],
  ['POST', '/test'],
  ['GET', '/deliveries'],
  ['POST', '/deliveries/dlv_00000000000000000000000000000000/retry'],
  ['POST', '/replay'],
];

/** The bodies of those that need one. */
const BODIES: Record<string, object> = { PATCH: { events: null }, '/replay': { after: '0' } };

let service: TestService;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startService({
    environment: { RATE_LIMIT_PER_MINUTE: 0, WEBHOOK_ALLOW_PRIVATE: true, WEBHOOK_SECRET_KEY },
  });
});
afterAll(async () => {
  await service.close();
  await receiver.close();
});
afterEach(() => {
  receiver.received.length = 0;
  receiver.respond = (response) => void response.writeHead(204).end();
});

function send(key: string, method: string, path: string, body?: object, to = service): Promise<ServiceResponse> {
  const headers = { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) };
  return to.request(method, path, headers, body && JSON.stringify(body));
}
const create = (key: string, body: object = {}): Promise<ServiceResponse> =>
  send(key, 'POST', '/webhooks', { url: receiver.url, ...body });

function createOnce(key: string, idempotencyKey: string, body: object = {}): Promise<ServiceResponse> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const text = JSON.stringify({ url: receiver.url, ...body });
  return service.request('POST', '/webhooks', { ...headers, 'Idempotency-Key': idempotencyKey }, text);
}

async function withWebhook(): Promise<{ key: string; id: string }> {
  const { key } = await service.organization();
  return { key, id: (await create(key)).body['id'] as string };
}

describe('a webhook', () => {
  it('is created with a secret that is shown this once and stored encrypted', async () => {
    const { key } = await service.organization();
    const { status, body } = await create(key, { events: ['job.failed', 'job.completed', 'job.failed'] });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^whk_[0-9a-f]{24}$/),
      url: receiver.url,
      events: ['job.failed', 'job.completed'],
      labels: {},
      hasAuthorization: false,
      replaying: false,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      previousSecretUntil: null,
      failingSince: null,
      disabledAt: null,
      disabledReason: null,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
    const { secret, ...webhook } = body;
    expect((await send(key, 'GET', '/webhooks')).body).toEqual({ webhooks: [webhook] });
    const bytes = Buffer.from(String(secret).slice('whsec_'.length), 'base64');
    const rows = await rowsAsText(service);
    for (const form of ['base64', 'hex'] as const) expect(rows).not.toContain(bytes.toString(form));
    expect(service.logs.join('')).not.toContain(secret);
  });

  it('receives every event when none is named, and its URL is stored normalized', async () => {
    const { key } = await service.organization();
    const { body } = await create(key, { url: `HTTP://LocalHost:${receiver.port}` });
    expect(body).toMatchObject({ events: null, url: `http://localhost:${receiver.port}/` });
  });

  it('is deleted with its deliveries', async () => {
    const { key, id } = await withWebhook();
    await service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, state, created_at)
      VALUES ('${id}', 'job.completed', '{}', 'failed', clock_now())`);
    const deleted = await send(key, 'DELETE', `/webhooks/${id}`);
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    expect((await send(key, 'GET', '/webhooks')).body).toEqual({ webhooks: [] });
    for (const [method, path] of ROUTES)
      expect((await send(key, method, `/webhooks/${id}${path}`, BODIES[path || method])).status).toBe(404);
  });

  it('is one of ten at most, also when they are created at once', async () => {
    const { key } = await service.organization();
    const responses = await Promise.all(Array.from({ length: 14 }, () => create(key)));
    const codes = responses.map(({ status, body }) => (status === 201 ? 'created' : String(body.error.code)));
    expect(codes.sort()).toEqual([...Array(4).fill('conflict'), ...Array(10).fill('created')]);
    const { webhooks } = (await send(key, 'GET', '/webhooks')).body;
    expect(webhooks).toHaveLength(10);
    await send(key, 'DELETE', `/webhooks/${webhooks[0].id}`);
    expect((await create(key)).status).toBe(201);
  });

  it('is created once by requests with the same Idempotency-Key, which return its secret for a day', async () => {
    const [{ key }, other] = [await service.organization(), await service.organization()];
    const responses = await Promise.all(Array.from({ length: 4 }, () => createOnce(key, 'the-key')));
    const [{ body } = await createOnce(key, 'the-key')] = responses;
    for (const response of responses) expect([response.status, response.body]).toEqual([201, body]);
    expect((await send(key, 'GET', '/webhooks')).body.webhooks).toHaveLength(1);
    expect((await createOnce(other.key, 'the-key')).body['id']).not.toBe(body['id']);
    const refusal = { status: 409, body: { error: { code: 'idempotency_conflict', retryable: false } } };
    expect(await createOnce(key, 'the-key', { events: ['job.failed'] })).toMatchObject(refusal);
    expect(await createOnce(key, 'the-key', { url: `${receiver.url}/other` })).toMatchObject(refusal);
    const { secret } = (await send(key, 'POST', `/webhooks/${body['id']}/rotate`)).body;
    expect((await createOnce(key, 'the-key')).body).toMatchObject({ id: body['id'], secret });
    await service.query(`UPDATE webhooks SET created_at = created_at - interval '1 day' WHERE id = '${body['id']}'`);
    const late = await createOnce(key, 'the-key');
    expect(late).toMatchObject(refusal);
    expect(late.body.error.message).toContain(`POST /webhooks/${body['id']}/rotate`);
    await send(key, 'DELETE', `/webhooks/${body['id']}`);
    expect((await createOnce(key, 'the-key')).body['secret']).not.toBe(secret);
  });

  it.each(['', 'ä', 'x'.repeat(256)])('is not created with the Idempotency-Key "%s"', async (idempotencyKey) => {
    const { key } = await service.organization();
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ url: receiver.url });
    const given = { ...headers, 'Idempotency-Key': Buffer.from(idempotencyKey).toString('latin1') };
    expect((await service.request('POST', '/webhooks', given, body)).body.error.details[0].field).toBe(
      'Idempotency-Key',
    );
  });

  it.each([
    ['no URL', {}, 'url'],
    ['a URL with a password', { url: 'https://a:b@example.com/' }, 'url'],
    ['no event', { url: 'https://127.0.0.1/', events: [] }, 'events'],
    ['an unknown event', { url: 'https://127.0.0.1/', events: ['job.started'] }, 'events'],
    ['a secret of its own', { url: 'https://127.0.0.1/', secret: 'whsec_AAAA' }, 'secret'],
  ])('with %s is refused, naming the field', async (_what, body, field) => {
    const { key } = await service.organization();
    const response = await send(key, 'POST', '/webhooks', body);
    expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
    expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(/./) }]);
  });

  it.each([
    ['is in the query', `/?key=${generateKey()}`],
    ['is in the path, with a tab', `/${generateKey().replace('t', '\tt')}`],
    ['is the name of a parameter, encoded', `/?${generateKey().replace('c', '%63')}=1`],
    ['is encoded twice', `/${generateKey().replace('k', '%256B')}`],
    ['is part of the host, encoded', `.${generateKey().replace('k', '%6b')}.localhost/`],
    ['is the secret of a webhook', `/?whsec_${'A'.repeat(43)}%3D`],
  ])('whose URL has a secret is refused: it %s', async (_where, end) => {
    const { key } = await service.organization();
    const response = await send(key, 'POST', '/webhooks', { url: `http://localhost${end}` });
    const message = 'url must not contain an API key or the secret of a webhook.';
    expect([response.status, response.body.error.details]).toEqual([400, [{ field: 'url', message }]]);
  });
});

describe('a changed webhook', () => {
  it('has its new URL, events, labels and header, of which null removes each', async () => {
    const { key } = await service.organization();
    await create(key, { events: ['job.failed'] });
    const [webhook] = (await send(key, 'GET', '/webhooks')).body.webhooks;
    const patch = async (body: object): Promise<unknown> => {
      const response = await send(key, 'PATCH', `/webhooks/${webhook.id}`, body);
      expect(response.status).toBe(200);
      expect((await send(key, 'GET', '/webhooks')).body).toEqual({ webhooks: [response.body] });
      return response.body;
    };
    const changed = { ...webhook, labels: { user: '42' }, hasAuthorization: true };
    expect(await patch({ labels: { user: '42' }, authorization: 'Bearer abc' })).toEqual(changed);
    const url = `${receiver.url}/other`;
    expect(await patch({ url, events: ['job.paused', 'job.paused'] })).toEqual({
      ...changed,
      url,
      events: ['job.paused'],
    });
    expect(await patch({ events: null, labels: null, authorization: null })).toEqual({ ...webhook, url, events: null });
    for (const [body, field] of [
      [{}, 'body'],
      [{ url: null }, 'url'],
      [{ url: 'ftp://127.0.0.1/' }, 'url'],
      [{ labels: { 'A b': '1' } }, 'labels'],
      [{ authorization: 'a\r\nX-Other: 1' }, 'authorization'],
      [{ authorization: ' a' }, 'authorization'],
      [{ authorization: `Bearer ${generateKey()}` }, 'authorization'],
      [{ secret: 'whsec_AAAA' }, 'secret'],
    ] as const) {
      const refused = await send(key, 'PATCH', `/webhooks/${webhook.id}`, body);
      expect([refused.status, refused.body.error.details[0].field]).toEqual([400, field]);
    }
  });

  it('sends its header, which is in no row, log or audit entry, also after a rotation', async () => {
    const { key } = await service.organization();
    const value = 'Basic c29tZWJvZHk6bm9ib2R5LWtub3dz';
    const { id } = (await create(key, { authorization: value })).body;
    await send(key, 'POST', `/webhooks/${id}/rotate`);
    await send(key, 'POST', `/webhooks/${id}/test`);
    await send(key, 'PATCH', `/webhooks/${id}`, { authorization: `${value}2` });
    await send(key, 'POST', `/webhooks/${id}/test`);
    await send(key, 'PATCH', `/webhooks/${id}`, { authorization: null });
    await send(key, 'POST', `/webhooks/${id}/test`);
    expect(receiver.received.map(({ headers }) => headers.authorization)).toEqual([value, `${value}2`, undefined]);
    const { entries } = (await service.get('/audit', key)).body;
    expect(entries.filter(({ action }: { action: string }) => action === 'webhook.changed')).toMatchObject([
      { target: id, before: { authorization: expect.any(String) }, after: { authorization: null } },
      { target: id, before: { authorization: expect.any(String) }, after: { authorization: expect.any(String) } },
    ]);
    for (const text of [await rowsAsText(service), service.logs.join(''), JSON.stringify(entries)])
      for (const form of [value, Buffer.from(value).toString('hex'), Buffer.from(value).toString('base64')])
        expect(text).not.toContain(form);
  });

  it('is still returned to the request with its idempotency key, and refused to another one', async () => {
    const { key } = await service.organization();
    const body = { labels: { user: '42', team: 'x' }, authorization: 'Bearer abc' };
    const { id, secret } = (await createOnce(key, 'a-key', body)).body;
    const url = `${receiver.url}/other`;
    await send(key, 'PATCH', `/webhooks/${id}`, { url, labels: null, authorization: null });
    const again = await createOnce(key, 'a-key', { ...body, labels: { team: 'x', user: '42' } });
    expect([again.status, again.body]).toEqual([201, expect.objectContaining({ id, secret, url, labels: {} })]);
    for (const other of [{ ...body, authorization: 'Bearer abd' }, { ...body, labels: {} }, { url }])
      expect((await createOnce(key, 'a-key', other)).body.error.code).toBe('idempotency_conflict');
    // Of version 1.0.
    const old = (await createOnce(key, 'old-key', { events: ['job.failed'] })).body;
    await service.query(`UPDATE webhooks SET request_mac = NULL WHERE id = '${old.id}'`);
    expect((await createOnce(key, 'old-key', { events: ['job.failed'] })).body).toMatchObject({ id: old.id });
    expect((await createOnce(key, 'old-key')).body.error.code).toBe('idempotency_conflict');
  });

  it('is turned on again by its URL, and its failures are forgotten', async () => {
    const { key, id } = await withWebhook();
    await service.query(`UPDATE webhooks SET disabled_at = clock_now(), disabled_reason = 'failing', confirmed = true,
      failing_since = clock_now() - interval '6 days', rested_until = clock_now() + interval '1 hour' WHERE id = '${id}'`);
    const on = { disabledAt: null, disabledReason: null, failingSince: null };
    expect((await send(key, 'PATCH', `/webhooks/${id}`, { events: null })).body).toMatchObject({
      disabledReason: 'failing',
    });
    expect((await send(key, 'PATCH', `/webhooks/${id}`, { url: receiver.url })).body).toMatchObject(on);
    const state = `SELECT rested_until, confirmed FROM webhooks WHERE id = '${id}'`;
    expect(await service.query(state)).toEqual([{ rested_until: null, confirmed: true }]);
    await send(key, 'PATCH', `/webhooks/${id}`, { url: 'http://localhost:9999/' });
    expect(await service.query(state)).toEqual([{ rested_until: null, confirmed: false }]);
  });
});

describe('a test event', () => {
  it('is sent at once, signed, to the URL with its path and query', async () => {
    const { key } = await service.organization();
    const { id, secret } = (await create(key, { url: `${receiver.url}?a=1&b=%20`, events: ['job.failed'] })).body;
    const { status, body } = await send(key, 'POST', `/webhooks/${id}/test`);
    expect([status, body]).toEqual([
      200,
      { delivered: true, responseStatus: 204, error: null, durationMs: expect.any(Number) },
    ]);
    const [message] = receiver.received;
    if (!message) throw new Error('Nothing was received.');
    expect(message.path).toBe('/hook?a=1&b=%20');
    expect(message.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'channel-transcripts-webhooks/1.0.0',
      host: `127.0.0.1:${receiver.port}`,
    });
    expect(verified(message, secret as string)).toEqual({
      type: 'webhook.test',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { webhookId: id },
    });
    expect((await send(key, 'GET', `/webhooks/${id}/deliveries`)).body).toEqual({ deliveries: [], next: null });
  });

  it('reports what went wrong, and turns nothing off', async () => {
    const { key, id } = await withWebhook();
    receiver.respond = (response) => void response.writeHead(500).end('not shown');
    expect((await send(key, 'POST', `/webhooks/${id}/test`)).body).toMatchObject({
      delivered: false,
      responseStatus: 500,
      error: 'The receiver responded with 500.',
    });
    receiver.respond = (response) => void response.writeHead(410).end();
    expect((await send(key, 'POST', `/webhooks/${id}/test`)).body).toMatchObject({ responseStatus: 410 });
    const { id: refused } = (await create(key, { url: 'http://127.0.0.1:65535/' })).body;
    expect((await send(key, 'POST', `/webhooks/${refused}/test`)).body).toMatchObject({
      delivered: false,
      responseStatus: null,
      error: 'The connection failed (ECONNREFUSED).',
    });
    const { webhooks } = (await send(key, 'GET', '/webhooks')).body;
    expect(webhooks[0]).toMatchObject({ failingSince: null, disabledAt: null });
  });

  // Without openssl there is no certificate to refuse; continuous integration has it.
  (openssl.error ? it.skip : it)('is not sent to a server whose certificate is not valid for the host', async () => {
    let requests = 0;
    const secure = createServer({ key: openssl.stdout, cert: openssl.stdout }, (_, response) => {
      requests += 1;
      response.end();
    });
    await once(secure.listen(0, '127.0.0.1'), 'listening');
    const { port } = secure.address() as AddressInfo;
    const { key } = await service.organization();
    const { id } = (await create(key, { url: `https://localhost:${port}/` })).body;
    expect((await send(key, 'POST', `/webhooks/${id}/test`)).body).toMatchObject({
      delivered: false,
      error: 'The connection failed (DEPTH_ZERO_SELF_SIGNED_CERT).',
    });
    secure.close();
    expect(requests).toBe(0);
  });

  it('is accepted by the receiver of docs/webhooks.md', async () => {
    const page = await readFile(join(PROJECT, 'docs/webhooks.md'), 'utf8');
    const [, source = ''] = /```js\n(.*?)```/s.exec(page) ?? [];
    const { key } = await service.organization();
    const port = await freePort();
    const { id, secret } = (await create(key, { url: `http://127.0.0.1:${port}/` })).body;
    const environment = { ...process.env, WEBHOOK_SECRET: String(secret), PORT: String(port) };
    const program = spawn(process.execPath, ['--input-type=module', '--eval', source], {
      cwd: PROJECT,
      env: environment,
    });
    let printed = '';
    program.stdout.on('data', (text: Buffer) => (printed += text.toString()));
    try {
      const test = async (): Promise<Record<string, unknown>> =>
        (await send(key, 'POST', `/webhooks/${id}/test`)).body as Record<string, unknown>;
      await until(async () => (await test())['delivered'] === true);
      await until(() => printed.includes(`webhook.test { webhookId: '${id}' }`));
      await send(key, 'POST', `/webhooks/${id}/rotate`);
      await service.query(`UPDATE webhooks SET previous_secret_until = clock_now() WHERE id = '${id}'`);
      expect(await test()).toMatchObject({ delivered: false, responseStatus: 400 });
    } finally {
      program.kill();
      await once(program, 'exit');
    }
  });
});

describe('a rotated secret', () => {
  it('signs together with the one before it, for a day', async () => {
    const { key } = await service.organization();
    const first = (await create(key)).body;
    const rotated = await send(key, 'POST', `/webhooks/${first.id}/rotate`);
    const { secret, previousSecretUntil } = rotated.body;
    expect([rotated.status, secret]).toEqual([200, expect.stringMatching(/^whsec_/)]);
    expect(secret).not.toBe(first.secret);
    expect(Date.parse(previousSecretUntil as string) - Date.now()).toBeGreaterThan(23.9 * 3_600_000);
    await send(key, 'POST', `/webhooks/${first.id}/test`);
    const again = (await send(key, 'POST', `/webhooks/${first.id}/rotate`)).body;
    await send(key, 'POST', `/webhooks/${first.id}/test`);
    await service.query(`UPDATE webhooks SET previous_secret_until = clock_now() WHERE id = '${first.id}'`);
    await send(key, 'POST', `/webhooks/${first.id}/test`);
    const valid = receiver.received.map((message) =>
      [first.secret, secret, again.secret].map((each) => {
        try {
          return verified(message, each as string) !== undefined;
        } catch {
          return false;
        }
      }),
    );
    expect(valid).toEqual([
      [true, true, false],
      [false, true, true],
      [false, false, true],
    ]);
    expect((await send(key, 'GET', '/webhooks')).body.webhooks[0].previousSecretUntil).toBeNull();
  });
});

describe('the deliveries of a webhook', () => {
  it('are listed newest first, a page at a time', async () => {
    const { key, id } = await withWebhook();
    await service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, state, created_at)
      SELECT '${id}', 'job.' || n, '{}', 'failed', clock_now() - make_interval(mins => n / 2) FROM generate_series(1, 30) n`);
    interface DeliveriesPage {
      deliveries: { id: string; createdAt: string }[];
      next: string | null;
    }
    const pages: DeliveriesPage[] = [];
    let after = '';
    do {
      const page = (await send(key, 'GET', `/webhooks/${id}/deliveries?limit=12${after}`)).body as DeliveriesPage;
      pages.push(page);
      after = `&after=${page.next}`;
    } while (pages.at(-1)?.next && pages.length < 5);
    expect(pages.map(({ deliveries }) => deliveries.length)).toEqual([12, 12, 6]);
    const all = pages.flatMap(({ deliveries }) => deliveries);
    expect(new Set(all.map((delivery) => delivery.id)).size).toBe(30);
    const times = all.map(({ createdAt }) => createdAt);
    expect(times).toEqual([...times].sort().reverse());
    expect((await send(key, 'GET', `/webhooks/${id}/deliveries`)).body.deliveries).toHaveLength(25);
    expect((await send(key, 'GET', `/webhooks/${id}/deliveries?limit=500`)).body.deliveries).toHaveLength(30);
  });

  it.each([
    ['limit=0', 'limit'],
    ['after=msg_00000000000000000000000000000000', 'after'],
    ['after=%00', 'after'],
  ])('with %s are refused', async (query, field) => {
    const { key, id } = await withWebhook();
    const response = await send(key, 'GET', `/webhooks/${id}/deliveries?${query}`);
    expect([response.status, response.body.error.details[0].field]).toEqual([400, field]);
  });
});

describe('webhooks', () => {
  it('of another organization are 404 as unknown ones are, and stay as they are', async () => {
    const [owner, other] = [await service.organization(), await service.organization()];
    const { id } = (await create(owner.key)).body;
    const before = (await send(owner.key, 'GET', '/webhooks')).body;
    for (const [method, path] of ROUTES) {
      for (const asked of [id, 'whk_ffffffffffffffffffffffff', 'x', '%00']) {
        const response = await send(other.key, method, `/webhooks/${asked}${path}`, BODIES[path || method]);
        expect([response.status, response.body.error.code]).toEqual([404, 'not_found']);
      }
    }
    expect((await send(other.key, 'GET', '/webhooks')).body).toEqual({ webhooks: [] });
    expect((await send(owner.key, 'GET', '/webhooks')).body).toEqual(before);
    expect(receiver.received).toEqual([]);
  });

  it.each([['GET', ''], ['POST', ''], ...ROUTES.map(([method, path]) => [method, `/whk_x${path}`])])(
    '%s /webhooks%s is 401 without a key',
    async (method = '', path = '') => {
      const response = await service.request(method, `/webhooks${path}`);
      expect([response.status, response.body.error.code]).toEqual([401, 'unauthorized']);
    },
  );

  it('require the Pro plan; without it existing ones can be read and deleted', async () => {
    const { id: organizationId, key } = await service.organization();
    const { id } = (await create(key)).body;
    await service.query(`UPDATE organizations SET plan = 'free' WHERE id = '${organizationId}'`);
    for (const path of ['', `/${id}/rotate`, `/${id}/test`]) {
      const { status, body } = await send(key, 'POST', `/webhooks${path}`);
      expect([status, body.error.code, body.error.feature]).toEqual([403, 'feature_not_in_plan', 'channel_archives']);
    }
    expect((await send(key, 'GET', '/webhooks')).body.webhooks).toHaveLength(1);
    expect((await send(key, 'GET', `/webhooks/${id}/deliveries`)).status).toBe(200);
    expect((await send(key, 'DELETE', `/webhooks/${id}`)).status).toBe(204);
  });
});

const PUBLIC = '93.184.215.14';
const REFUSED_HOST = 'The host of url must be a public name or address, and resolve within 3 seconds.';

describe('without WEBHOOK_ALLOW_PRIVATE', () => {
  let strict: TestService;
  let organization: TestOrganization;
  let nameServer: NameServer;
  let resolver: WebhookResolver;

  beforeAll(async () => {
    nameServer = await startNameServer();
    strict = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 0, WEBHOOK_SECRET_KEY } });
    resolver = strict.app.get(WebhookResolver);
    nameServer.serve(resolver);
    // A busy machine takes its time, and only one test is about name servers that are silent.
    resolver.timeoutMs = 60_000;
    organization = await strict.organization();
  });
  afterAll(async () => {
    await strict.close();
    nameServer.close();
  });
  beforeEach(() => {
    nameServer.names = { 'hooks.example.com': [PUBLIC] };
    nameServer.asked.length = 0;
  });

  const request = (method: string, path: string, body?: object, { key } = organization): Promise<ServiceResponse> =>
    send(key, method, path, body, strict);
  const errorOf = ({ status, body }: ServiceResponse): unknown => [status, body.error?.details];

  it('a host is refused with the same words whether it is missing or has a private address of either kind', async () => {
    nameServer.names = {
      'one-private.example.com': [PUBLIC, '10.0.0.1'],
      'private-ipv6.example.com': [PUBLIC, 'fd00::1'],
      'loopback.example.com': ['127.0.0.1'],
      localhost: [PUBLIC],
    };
    for (const host of [...Object.keys(nameServer.names), 'missing.example.com', `${'a'.repeat(64)}.example.com`]) {
      const refused = await request('POST', '/webhooks', { url: `https://${host}/` });
      expect([host, errorOf(refused)]).toEqual([host, [400, [{ field: 'url', message: REFUSED_HOST }]]]);
    }
  });

  it('a host with public addresses of both kinds, or of one of them, is accepted', async () => {
    nameServer.names = {
      'both.example.com': [PUBLIC, '2606:4700:4700::1111'],
      'ipv4.example.com': [PUBLIC],
      'ipv6.example.com': ['2606:4700:4700::1111'],
    };
    for (const host of Object.keys(nameServer.names))
      expect((await request('POST', '/webhooks', { url: `https://${host}/` })).status).toBe(201);
  });

  it('hosts whose name servers are silent are refused after two look-ups at a time, and nothing else waits', async () => {
    const usualMs = resolver.timeoutMs;
    const owner = await strict.organization();
    const cached = '/channels/@tidewater/transcripts?limit=1';
    expect((await strict.get(cached, owner.key)).status).toBe(200);
    const hosts = Array.from({ length: 30 }, (_, n) => `silent-${n}.example.com`);
    nameServer.names = { ...Object.fromEntries(hosts.map((host) => [host, []])), 'hooks.example.com': [PUBLIC] };
    resolver.timeoutMs = 750;
    const measure = async () => {
      resolver.timeoutMs *= 4;
      nameServer.asked.length = 0;
      const other = await strict.organization();
      let refusals = 0;
      const creations = hosts.map(async (host) => {
        const refused = await request('POST', '/webhooks', { url: `https://${host}/` }, owner);
        refusals += 1;
        return refused;
      });
      await until(() => nameServer.asked.length > 0);
      const first = await Promise.all([
        strict.get(cached, owner.key),
        strict.request('GET', '/health/ready'),
        request('POST', '/webhooks', { url: 'https://hooks.example.com/' }, other),
        // In the threads of the process.
        lookup('localhost').then(() => ({ status: 200 })),
      ]);
      const refusedBefore = refusals;
      return { statuses: first.map(({ status }) => status), refusedBefore, refused: await Promise.all(creations) };
    };
    const { last } = await measureInTime(measure, ({ refusedBefore }) => refusedBefore === 0);
    resolver.timeoutMs = usualMs;
    expect([last.statuses, last.refusedBefore]).toEqual([[200, 200, 201, 200], 0]);
    for (const refused of last.refused)
      expect(errorOf(refused)).toEqual([400, [{ field: 'url', message: REFUSED_HOST }]]);
    // Two of the one organization, and one of the other.
    expect(nameServer.runningMax()).toBeLessThanOrEqual(3);
  });

  it('a URL that was stored under another configuration is not sent to', async () => {
    const { id } = (await request('POST', '/webhooks', { url: 'https://hooks.example.com/' })).body;
    nameServer.asked.length = 0;
    for (const url of ['http://hooks.example.com/', 'https://127.0.0.1/']) {
      await strict.query(`UPDATE webhooks SET url = '${url}' WHERE id = '${id}'`);
      const { body } = await request('POST', `/webhooks/${id}/test`);
      expect(body).toMatchObject({
        delivered: false,
        responseStatus: null,
        error: expect.stringMatching(/url must be/),
      });
    }
    expect(nameServer.asked).toEqual([]);
  });

  it('a name that is private or missing after the creation is not connected to, with the same words', async () => {
    const url = `https://hooks.example.com:${receiver.port}/`;
    const { id } = (await request('POST', '/webhooks', { url })).body;
    const connections = receiver.connections();
    for (const names of [{ 'hooks.example.com': ['127.0.0.1'] }, {}]) {
      nameServer.names = names;
      expect((await request('POST', `/webhooks/${id}/test`)).body).toMatchObject({
        delivered: false,
        responseStatus: null,
        error: REFUSED_HOST,
      });
    }
    expect(receiver.connections()).toBe(connections);
  });
});

describe('without WEBHOOK_SECRET_KEY', () => {
  it('a webhook is refused with what to set, and is not stored', async () => {
    const unset = await startService({ environment: { WEBHOOK_ALLOW_PRIVATE: true } });
    try {
      const { key } = await unset.organization();
      const response = await send(key, 'POST', '/webhooks', { url: receiver.url }, unset);
      expect([response.status, response.body.error.code]).toEqual([409, 'conflict']);
      expect(response.body.error.message).toMatch(/^Webhooks are disabled .* WEBHOOK_SECRET_KEY/);
      expect((await unset.get('/webhooks', key)).body.webhooks).toEqual([]);
    } finally {
      await unset.close();
    }
  });
});
