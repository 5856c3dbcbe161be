import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../harness/until.js';
import type { HttpResponse, Sending } from '../harness/http-request.js';
import { ADMIN_TOKEN, ProxiedReplicas, send } from './proxied-replicas.js';
import { nginxIsInstalled, type NginxServer } from './nginx-server.js';

/** Allowed authentication failures per address and minute; each process counts them separately without Redis. */
const FAILURES_OF_BOTH = 40;
const CHANNEL_URL = 'https://www.youtube.com/@tidewater';
const LINES = { Accept: 'application/x-ndjson' };

let replicas: ProxiedReplicas;
let key: string;
let requests = 0;

/** Request ids that no other test has. */
const newIds = (count: number): string[] => Array.from({ length: count }, () => `proxy-test-${(requests += 1)}-end`);
const get = (
  path: string,
  { headers, ...rest }: Sending & { method?: string } = {},
  nginx: NginxServer = replicas.nginx,
): Promise<HttpResponse> => send(nginx, path, { ...rest, headers: { Authorization: `Bearer ${key}`, ...headers } });
const errorOf = ({ text }: HttpResponse): Record<string, unknown> =>
  (JSON.parse(text) as { error: Record<string, unknown> }).error;

/** The code of an nginx error in the service's envelope. */
const refusedByProxy = (response: HttpResponse): unknown => {
  expect([response.status, response.headers['content-type'], errorOf(response)]).toMatchObject([
    404,
    'application/json; charset=utf-8',
    { retryable: false, requestId: response.headers['x-request-id'] },
  ]);
  return errorOf(response)['code'];
};
/** The line of nginx's log with this request id; undefined while there is none. */
const lineOf = (id: string): Record<string, unknown> | undefined => {
  const line = replicas.nginx.log.split('\n').find((one) => one.includes(`"requestId":"${id}"`));
  return line === undefined ? undefined : (JSON.parse(line) as Record<string, unknown>);
};

// Skipped without nginx; continuous integration installs it.
(nginxIsInstalled ? describe : describe.skip)('two processes behind nginx with the shipped configuration', () => {
  beforeAll(async () => {
    replicas = await ProxiedReplicas.start();
    ({ key } = await replicas.customer());
  });
  afterAll(() => replicas.close());
  beforeEach(() => replicas.fakeYoutube.reset());

  it('share sequential calls', async () => {
    const ids = newIds(20);
    for (const id of ids) expect((await get('/usage', { headers: { 'X-Request-Id': id } })).status).toBe(200);
    // Alternating, except for a call that arrives before nginx has registered the end of the previous one.
    expect(Math.min(...(await replicas.servedBy(ids)))).toBeGreaterThanOrEqual(6);
  });

  it('short calls are sent to the process without a long call', async () => {
    const hold = replicas.fakeYoutube.hold({ kind: 'timedtext' });
    const long = get('/channels/@1-videos-no-41/transcripts');
    await hold.arrived;
    const ids = newIds(20);
    for (const id of ids) await get('/usage', { headers: { 'X-Request-Id': id } });
    expect(Math.max(...(await replicas.servedBy(ids)))).toBeGreaterThanOrEqual(16);
    hold.release();
    expect((await long).status).toBe(200);
  });

  it.each([
    ['encoded', encodeURIComponent(CHANNEL_URL)],
    ['raw', CHANNEL_URL],
    ['with merged slashes', CHANNEL_URL.replace('//', '/')],
  ])('give the same response for a channel URL %s, whether nginx forwards it unchanged or decoded', async (_, id) => {
    const decoding = await replicas.anotherNginx({ decoding: true });
    const plain = await get('/channels/@tidewater/transcripts?limit=1');
    // One proxy forwards the path unchanged, with a double slash unless the caller merged it; the other merges it.
    const ways: [NginxServer, string][] = [
      [replicas.nginx, decodeURIComponent(id)],
      [decoding, CHANNEL_URL.replace('//', '/')],
    ];
    for (const [nginx, arrivesAs] of ways) {
      const [requestId = ''] = newIds(1);
      const response = await get(
        `/channels/${id}/transcripts?limit=1`,
        { headers: { 'X-Request-Id': requestId } },
        nginx,
      );
      expect(response.status).toBe(200);
      expect(JSON.parse(response.text)).toMatchObject({
        channel: JSON.parse(plain.text).channel,
        summary: { total: 1 },
      });
      await replicas.servedBy([requestId]);
      const logged = replicas.replicas.flatMap(({ program }) => program.stdout.split('\n'));
      expect(logged.find((line) => line.includes(requestId))).toContain(`"path":"/channels/${arrivesAs}/transcripts"`);
    }
  });

  it('each line of a response arrives while the next is still being fetched', async () => {
    const hold = replicas.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-229' });
    let sofar = '';
    const onText = (text: string): void => void (sofar = text);
    const responding = get('/channels/@fogsignalradio/transcripts?limit=3', { headers: LINES, onText });
    await hold.arrived;
    await until(() => sofar.split('\n').filter((line) => line.includes('"type":"result"')).length === 2);
    expect(sofar).not.toContain('"type":"summary"');
    hold.release();
    const answer = await responding;
    expect(answer.whole).toBe(true);
    expect(answer.text.trimEnd().split('\n')).toHaveLength(5);
  });

  it('rate limits apply to the address of the client, not to that of the proxy or one that the client claims', async () => {
    const failing = async (from: string, claimed = '203.0.113.9'): Promise<number> =>
      (await send(replicas.nginx, '/usage', { from, headers: { 'X-Forwarded-For': claimed } })).status;
    const statuses: number[] = [];
    for (let tried = 0; tried < FAILURES_OF_BOTH + 20; tried += 1) {
      statuses.push(await failing('127.0.0.2', `203.0.113.${tried}`));
    }
    // Each process admits its twenty failures, whatever address was claimed.
    expect(statuses.sort()).toEqual([...Array<number>(FAILURES_OF_BOTH).fill(401), ...Array<number>(20).fill(429)]);
    expect(await failing('127.0.0.3')).toBe(401);
  });

  it('/admin and /metrics are forwarded for the configured networks only', async () => {
    const end = 'default none;';
    const open = await replicas.anotherNginx({
      changes: [
        ['# 10.20.0.0/16 1;', '127.0.0.4/32 1;'],
        // As docs/deployment.md exposes it.
        [end, `'~^/metrics(?:\\?|$)' operators; ${end}`],
      ],
    });
    const create = (nginx: NginxServer, from: string, path = '/admin/organizations'): Promise<HttpResponse> =>
      send(nginx, path, {
        method: 'POST',
        from,
        body: JSON.stringify({ name: 'By proxy', plan: 'pro' }),
        headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' },
      });
    expect((await create(open, '127.0.0.4')).status).toBe(201);
    await until(() => replicas.replicas.some(({ program }) => program.stdout.includes('"address":"127.0.0.4"')));
    for (const path of ['/ADMIN/organizations', '//admin/organizations', '/admin/../admin/organizations']) {
      expect([path, refusedByProxy(await create(open, '127.0.0.4', path))]).toEqual([path, 'not_found']);
    }
    expect((await send(open, '/metrics', { from: '127.0.0.4' })).status).toBe(200);
    expect(refusedByProxy(await send(open, '/metrics', { from: '127.0.0.5' }))).toBe('not_found');
    expect(refusedByProxy(await create(open, '127.0.0.5'))).toBe('not_found');
    expect(refusedByProxy(await create(replicas.nginx, '127.0.0.4'))).toBe('not_found');
  });

  it.each([
    '/metrics',
    '/%6detrics',
    '//metrics',
    '/channels/../metrics',
    '/channels/%2e%2e/metrics',
    '/docs/..#/',
    '/metrics?/channels/',
    'http://proxy.test/channels/../metrics',
    '/admin/organizations',
    '/CHANNELS/@tidewater/transcripts',
    '/usage/',
    '/proxy-errors/404',
    '/jobs//results',
  ])('%s does not reach the service', async (path) => {
    const [id = ''] = newIds(1);
    const refused = await get(path, { headers: { 'X-Request-Id': id } });
    expect(refusedByProxy(refused)).toBe('not_found');
    expect([refused.headers['x-request-id'], refused.headers['cache-control']]).toEqual([id, 'private, no-store']);
    await until(() => lineOf(id) !== undefined);
    expect(lineOf(id)).toMatchObject({ status: 404, replica: '', address: '127.0.0.1' });
  });

  it.each(['/../metrics', '/channels/../../metrics', '/%2e%2e/metrics', '/%00/metrics'])(
    '%s, which leaves the root or is not a valid path, is refused as malformed',
    async (path) => {
      const refused = await get(path);
      expect([refused.status, errorOf(refused)['code']]).toEqual([400, 'invalid_request']);
    },
  );

  it.each([
    [
      'a transfer coding that nginx does not know',
      'POST /usage HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n',
    ],
    ['another version of HTTP', 'GET /usage HTTP/3.0\r\nHost: a\r\n\r\n'],
    ['a version of HTTP that there is not', 'GET /usage HTTP/9.9\r\nHost: a\r\n\r\n'],
    ['an unknown method', 'TRACE /usage HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a line that is no request', 'nonsense\r\n\r\n'],
    ['two lengths', 'POST /usage HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['no host', 'GET /usage HTTP/1.1\r\n\r\n'],
  ])('%s is refused with the error envelope', async (_what, request) => {
    const socket = connect(replicas.nginx.port, '127.0.0.1');
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    socket.end(request);
    await once(socket, 'close');
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    const { error } = JSON.parse(received.slice(received.indexOf('{'))) as { error: { code: string } };
    expect(error.code).toBe('invalid_request');
  });

  it.each([
    ['/usage', 200],
    ['/mcp', 405],
    ['/docs', 200],
    ['/docs-json', 200],
    ['/health/live', 200],
    ['http://proxy.test/usage', 200],
    ['/channels/@name/%2e%2e%2e/transcripts', 404],
    ['/channels/@tidewater/uploads', 200],
    ['/videos/https://www.youtube.com/watch?v=tw-tea_____/transcript', 200],
    ['/playlists/https://www.youtube.com/playlist?list=UUtidewater_____________/transcripts?limit=1', 200],
    ['/jobs', 200],
    ['/jobs/job_none/results?after=1', 404],
    ['/webhooks/whk_000000000000000000000000/deliveries?limit=1', 404],
  ])('%s reaches the service, which responds with %i', async (path, status) => {
    const [id = ''] = newIds(1);
    expect((await get(path, { headers: { 'X-Request-Id': id } })).status).toBe(status);
    await until(() => lineOf(id) !== undefined);
    expect(lineOf(id)).toMatchObject({ status, replica: expect.stringMatching(/^127\.0\.0\.1:\d+$/) });
  });

  it('a request keeps its id through the proxy or receives one, and a key is never used as an id', async () => {
    const [id = ''] = newIds(1);
    expect((await get('/usage', { headers: { 'X-Request-Id': id } })).headers['x-request-id']).toBe(id);
    const given = (await get('/usage')).headers['x-request-id'];
    expect(given).toMatch(/^[0-9a-f]{32}$/);
    const masked = (await get('/usage', { headers: { 'X-Request-Id': key } })).headers['x-request-id'];
    expect(masked).toMatch(/^[0-9a-f]{32}$/);
    await until(() => [id, given, masked].every((one) => replicas.nginx.log.includes(`"requestId":"${String(one)}"`)));
    expect(replicas.nginx.log).not.toContain(key);
  });

  it('an error of the service is forwarded unchanged, and a refusal by nginx has the same envelope', async () => {
    const missing = await get('/channels/@nobody-at-all/transcripts');
    expect([missing.status, errorOf(missing)['code']]).toEqual([404, 'channel_not_found']);
    const [id = ''] = newIds(1);
    const refused = await get('/channels/%zz/transcripts', { headers: { 'X-Request-Id': id } });
    expect([refused.status, errorOf(refused)['code']]).toEqual([400, 'invalid_request']);
    expect(refused.headers['content-type']).toContain('application/json');
    const large = await get('/usage', { headers: { 'X-Padding': 'x'.repeat(20_000) } });
    expect([large.status, errorOf(large)['code']]).toEqual([431, 'invalid_request']);
    const oversize = await get('/usage', { headers: { 'X-Padding': 'x'.repeat(40_000) } });
    const trace = await get('/usage', { method: 'TRACE' });
    for (const answer of [oversize, trace]) {
      expect([answer.status, errorOf(answer)]).toMatchObject([400, { code: 'invalid_request', retryable: false }]);
    }
  });
});
