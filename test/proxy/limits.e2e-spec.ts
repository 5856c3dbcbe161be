import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../harness/until.js';
import type { HttpResponse } from '../harness/http-request.js';
import { send } from './proxied-replicas.js';
import { freePort } from '../harness/free-port.js';
import { nginxIsInstalled, NginxServer } from './nginx-server.js';

type Change = readonly [from: string, to: string];

const TRUSTED_PROXY: Change = ['# set_real_ip_from 172.16.0.0/12;', 'set_real_ip_from 127.0.0.0/8;'];
const FOUR_REQUESTS: readonly Change[] = [
  ['rate=100r/s', 'rate=1r/m'],
  ['burst=200', 'burst=3'],
];
const REFUSED = {
  status: 429,
  code: 'rate_limited',
  retryable: true,
  retryAfter: '2',
  contentType: 'application/json; charset=utf-8',
  cacheControl: 'private, no-store',
};

/** The documented parts of a refusal. */
function refusal({ status, headers, text }: HttpResponse): Record<string, unknown> {
  const { error } = JSON.parse(text) as { error: Record<string, unknown> };
  expect(error['requestId']).toBe(headers['x-request-id']);
  expect(error['docs']).toBe(`/docs/errors#${String(error['code'])}`);
  return {
    status,
    code: error['code'],
    retryable: error['retryable'],
    retryAfter: headers['retry-after'],
    contentType: headers['content-type'],
    cacheControl: headers['cache-control'],
  };
}

// Skipped without nginx; continuous integration installs it.
(nginxIsInstalled ? describe : describe.skip)('nginx with the shipped configuration', () => {
  let replica: Server;
  let port: number;
  let requests: IncomingMessage[];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  const proxies: NginxServer[] = [];
  const sockets: Socket[] = [];

  const nginx = async (...changes: readonly Change[]): Promise<NginxServer> => {
    const started = await NginxServer.start({ replicas: [port], changes });
    proxies.push(started);
    return started;
  };
  const usage = async (proxy: NginxServer, from: string, forwardedFor?: string): Promise<HttpResponse> =>
    send(proxy, '/usage', { from, ...(forwardedFor && { headers: { 'X-Forwarded-For': forwardedFor } }) });
  /** A connection that sends a text and reads nothing on its own. */
  const open = (proxy: NginxServer, text: string): Socket => {
    const socket = connect(proxy.port, '127.0.0.1', () => void socket.write(text));
    // A reset by nginx also counts as closed.
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };

  beforeAll(async () => {
    port = await freePort();
    replica = createServer((request, response) => {
      requests.push(request);
      answer(request, response);
    });
    await new Promise<void>((resolve) => replica.listen(port, '127.0.0.1', resolve));
  });
  beforeEach(() => {
    requests = [];
    answer = (_request, response) => void response.end('{}');
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  });
  afterAll(async () => {
    replica.closeAllConnections();
    await new Promise((resolve) => replica.close(resolve));
  });

  it('serves a caller with many keys: 200 sequential and a hundred concurrent requests', async () => {
    const proxy = await nginx();
    const statuses: number[] = [];
    for (let count = 0; count < 200; count += 1) statuses.push((await usage(proxy, '127.0.0.2')).status);
    const waiting: ServerResponse[] = [];
    answer = (_request, response) => void waiting.push(response);
    const atOnce = Array.from({ length: 100 }, () => usage(proxy, '127.0.0.3'));
    await until(() => waiting.length === 100);
    for (const response of waiting) response.end('{}');
    statuses.push(...(await Promise.all(atOnce)).map(({ status }) => status));
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  it('responds 429 to requests above the rate of an address, whatever address they claim, and serves other addresses', async () => {
    const proxy = await nginx(...FOUR_REQUESTS);
    const responses: HttpResponse[] = [];
    for (let count = 0; count < 6; count += 1) responses.push(await usage(proxy, '127.0.0.2', `203.0.113.${count}`));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429, 429]);
    expect(responses.slice(4).map(refusal)).toEqual([REFUSED, REFUSED]);
    expect((await usage(proxy, '127.0.0.3')).status).toBe(200);
    expect(requests).toHaveLength(5);
  });

  it('responds 429 to requests above the concurrency of an address, and serves other addresses', async () => {
    const proxy = await nginx(['limit_conn requests_at_once 100;', 'limit_conn requests_at_once 2;']);
    const waiting: ServerResponse[] = [];
    answer = (_request, response) => void waiting.push(response);
    const running = [usage(proxy, '127.0.0.2'), usage(proxy, '127.0.0.2')];
    await until(() => waiting.length === 2);
    expect(refusal(await usage(proxy, '127.0.0.2'))).toEqual(REFUSED);
    const other = usage(proxy, '127.0.0.3');
    await until(() => waiting.length === 3);
    for (const response of waiting) response.end('{}');
    expect((await Promise.all([...running, other])).map(({ status }) => status)).toEqual([200, 200, 200]);
    answer = (_request, response) => void response.end('{}');
    await until(async () => (await usage(proxy, '127.0.0.2')).status === 200);
  });

  it('counts a caller behind a trusted proxy by its own address, and forwards that address', async () => {
    const proxy = await nginx(TRUSTED_PROXY, ...FOUR_REQUESTS);
    const statusFor = async (forwardedFor: string): Promise<number> =>
      (await usage(proxy, '127.0.0.2', forwardedFor)).status;
    for (let count = 0; count < 4; count += 1) expect(await statusFor('203.0.113.1')).toBe(200);
    expect(await statusFor('203.0.113.1')).toBe(429);
    // Only the last address was written by the trusted proxy.
    expect(await statusFor('203.0.113.2, 203.0.113.1')).toBe(429);
    expect(await statusFor('203.0.113.1, 203.0.113.2')).toBe(200);
    expect(requests.at(-1)?.headers['x-forwarded-for']).toMatch(/, 203\.0\.113\.2$/);
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:3::1'],
    ['2001:db8::1', '2001:db8::ffff:0:0:1', '2001:db8:0:1::1'],
    ['2001:db8:1::', '2001:db8:1:0:1::', '2001:db8:2::'],
    ['2001:db8::', '2001:db8:0:0:1::', '2001:db9::'],
  ])('counts %s and %s as one /64 network, and %s as another', async (first, same, other) => {
    const proxy = await nginx(TRUSTED_PROXY, ...FOUR_REQUESTS);
    const statusFor = async (address: string): Promise<number> => (await usage(proxy, '127.0.0.2', address)).status;
    for (const address of [first, same, first, same]) expect(await statusFor(address)).toBe(200);
    expect([await statusFor(first), await statusFor(same), await statusFor(other)]).toEqual([429, 429, 200]);
  });

  it('logs one in a hundred refusals per address, and every other response', async () => {
    const proxy = await nginx(...FOUR_REQUESTS);
    for (let count = 0; count < 304; count += 1) await usage(proxy, '127.0.0.2');
    await send(proxy, '/last', { headers: { 'X-Request-Id': 'the-last-line' } });
    await until(() => proxy.log.includes('the-last-line'));
    const statuses = proxy.log.split('\n').flatMap((line) => /"status":(\d+)/.exec(line)?.[1] ?? []);
    expect(statuses.filter((status) => status === '200')).toHaveLength(4);
    // About 3 are expected; the probability of 30 is below 1 in 10^19.
    expect(statuses.filter((status) => status === '429').length).toBeLessThan(30);
  });

  it('closes the connection of a client that does not read, and its connection to the service', async () => {
    const proxy = await nginx(['send_timeout 30s;', 'send_timeout 200ms;']);
    let ended = false;
    const piece = Buffer.alloc(1_000_000);
    answer = (_request, response) => {
      response.once('close', () => (ended = true));
      const write = (): void => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', write);
      write();
    };
    open(proxy, 'GET /usage HTTP/1.1\r\nHost: proxy\r\n\r\n').pause();
    await until(() => ended);
    await until(() => proxy.log.includes('"status":200'));
  });

  it.each<[string, (request: IncomingMessage, response: ServerResponse) => void]>([
    ['responds 503', (_request, response) => void response.writeHead(503).end('{}')],
    ['resets the connection', (request) => void request.socket.resetAndDestroy()],
  ])('sends a POST once to a replica that %s, and a GET again', async (_, fails) => {
    const proxy = await NginxServer.start({ replicas: [port, port] });
    proxies.push(proxy);
    answer = fails;
    const post = { method: 'POST', body: '{}', headers: { 'Content-Length': '2' } };
    expect((await send(proxy, '/transcripts', post)).status).toBe(503);
    expect(requests.map(({ method }) => method)).toEqual(['POST']);
    requests = [];
    expect((await send(proxy, '/usage', {})).status).toBe(503);
    expect(requests.length).toBeGreaterThan(1);
  });

  it('refuses a body of more than 1 MiB, the most of any operation, with the error envelope, without reaching the service', async () => {
    const proxy = await nginx();
    const large = await send(proxy, '/usage', {
      method: 'POST',
      body: 'x'.repeat(1_100_000),
      headers: { 'Content-Length': '1100000' },
    });
    expect([large.status, JSON.parse(large.text)]).toMatchObject([400, { error: { code: 'invalid_request' } }]);
    expect(requests).toEqual([]);
  });
});
