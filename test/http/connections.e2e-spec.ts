import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { shutDown } from '../../src/bootstrap.js';
import { CallsInFlight } from '../../src/rate-limit/calls-in-flight.js';
import { WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

const STALLED_READER_MS = 800;
const ADMIN_TOKEN = 'connections-0123456789abcdefghijklmnopqrst';
/** 1.5 MB, from a file. */
const FILE = '/docs/swagger-ui-bundle.js';

let service: TestService;
let organization: TestOrganization;
const clients: Client[] = [];

beforeAll(async () => {
  service = await startService({ stalledReaderMs: STALLED_READER_MS, environment: { ADMIN_TOKEN } });
  organization = await service.organization();
});
afterAll(() => service.close());
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  service.fakeYoutube.reset();
  await until(async () => inFlight() === 0 && (await openConnections()) === 0);
});

function inFlight(): number {
  return service.app.get(CallsInFlight, { strict: false }).count;
}

function openConnections(): Promise<number> {
  const server: Server = service.app.getHttpServer();
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

/** The files of the documentation that this process has open. */
function openFiles(): string[] {
  const links = readdirSync('/proc/self/fd').map((name) => `/proc/self/fd/${name}`);
  return links.filter((link) => existsSync(link) && readlinkSync(link).endsWith(FILE.replace('/docs', '')));
}

async function usage({ key }: TestOrganization): Promise<{ used: number; reserved: number }> {
  const { used, reserved } = (await service.get('/usage', key)).body as { used: number; reserved: number };
  return { used, reserved };
}

/** A client on a raw connection, which stays open on its side whatever the service does. It reads when told to. */
class Client {
  received = '';
  closed = false;
  readonly socket: Socket;

  constructor(to = service) {
    this.socket = connect({ port: Number(new URL(to.url).port), host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('error', () => undefined);
    this.socket.on('end', () => (this.closed = true));
    this.socket.on('close', () => (this.closed = true));
    clients.push(this);
  }

  send(...requests: string[]): this {
    this.socket.write(requests.join(''));
    return this;
  }

  read(): this {
    this.socket.on('data', (chunk: Buffer) => (this.received += chunk.toString('latin1')));
    return this;
  }

  get statuses(): number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
  }
}

function get(path: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ Host: 'a', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

function call(channel: string, id = 'a', { key } = organization): string {
  return get(`/channels/@${channel}/transcripts`, { Authorization: `Bearer ${key}`, 'X-Request-Id': id });
}

let channels = 0;

/** A channel with one video that is not cached. */
function uncached(): string {
  channels += 1;
  return `1-videos-no-${300 + channels}`;
}

describe('a client that disconnects', () => {
  it('while its key is looked up is not charged, and no request is sent to the platform', async () => {
    const [left, other] = [await service.organization(), await service.organization()];
    const lock = new pg.Client({ connectionString: service.databaseUrl });
    await lock.connect();
    await lock.query('BEGIN');
    await lock.query('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE');
    const { socket } = new Client().send(call('9-videos-no-31', 'left-early', left));
    await until(async () => (await lock.query(WAITING_FOR_LOCKS)).rowCount === 1);
    socket.resetAndDestroy();
    await until(() => service.logs.some((line) => line.includes('"left-early"') && line.includes('"left":true')));
    await lock.query('COMMIT');
    await lock.end();
    // As long as the whole call of another client takes.
    expect((await service.get('/channels/@tidewater/transcripts?limit=2', other.key)).status).toBe(200);
    expect(service.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(2);
    await until(async () => (await usage(left)).reserved === 0);
    expect(await usage(left)).toEqual({ used: 0, reserved: 0 });
  });

  it('ends its running call and releases the slot; requests pipelined behind it never start, nor open files', async () => {
    const client = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const behind = Array<string>(20).fill(get(FILE, { 'X-Request-Id': 'behind' }));
    const { socket } = new Client().send(call('9-videos-no-32', 'first-in-line', client), ...behind);
    await hold.arrived;
    expect([(await usage(client)).reserved, inFlight(), openFiles()]).toEqual([9, 1, []]);
    socket.resetAndDestroy();
    await until(async () => inFlight() === 0 && (await usage(client)).reserved === 0);
    await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
    hold.release();
    expect(await usage(client)).toEqual({ used: 0, reserved: 0 });
    expect(service.logs.filter((line) => line.includes('"behind"'))).toEqual([]);
    expect(openFiles()).toEqual([]);
  });
});

describe('pipelined requests', () => {
  it('get their responses in order', async () => {
    const ids = ['one', 'two', 'three'];
    const client = new Client().read().send(...ids.map((id) => call('tidewater', id)));
    await until(() => (client.received.match(/"summary"/g) ?? []).length === 3);
    expect([...client.received.matchAll(/X-Request-Id: (\w+)/g)].map(([, id]) => id)).toEqual(ids);
  });

  it('that are larger together than any client needs close their connection', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const client = new Client().read().send(call(uncached()));
    await hold.arrived;
    const large = get('/usage', { Authorization: `Bearer ${organization.key}`, X: 'x'.repeat(8_000) });
    client.send(...Array<string>(20).fill(large));
    await until(() => client.closed && inFlight() === 0);
    hold.release();
  });

  it('are limited to a thousand on one connection, which then is to be closed', async () => {
    const client = new Client().read().send(...Array<string>(1_100).fill(get('/health/live')));
    await until(() => client.statuses.length === 1_100);
    expect(client.statuses.filter((status) => status === 200)).toHaveLength(1_000);
    expect(client.received.split('Connection: keep-alive')).toHaveLength(1_000);
  });
});

describe('a client that reads nothing of its response', () => {
  const flood = (path: string): string[] => Array<string>(20).fill(get(path));

  it.each([FILE, '/docs-json'])('(%s) is disconnected', async (path) => {
    new Client().send(...flood(path), ...flood(path));
    await until(async () => (await openConnections()) === 1);
    await until(async () => (await openConnections()) === 0);
  });

  it('does not extend its timeout by sending', async () => {
    const client = new Client().send(...flood(FILE), 'GET /health/live HTTP/1.1\r\nX-Slow: ');
    await until(async () => (await openConnections()) === 1);
    const dribble = setInterval(() => client.send(`x\r\n\r\n${get('/health/live')}GET / HTTP/1.1\r\nX-Slow: `), 20);
    await until(async () => (await openConnections()) === 0);
    clearInterval(dribble);
  });

  it('is not disconnected while the service itself waits', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const client = new Client().read().send(get('/health/live'), call(uncached()));
    await hold.arrived;
    // Longer than any timeout of a stalled reader.
    const sinceMs = performance.now();
    await until(() => performance.now() - sinceMs > 3 * STALLED_READER_MS);
    expect(client.closed).toBe(false);
    hold.release();
    await until(() => client.received.endsWith('\r\n0\r\n\r\n'));
    expect(client.statuses).toEqual([200, 200]);
  });
});

describe('a malformed request', () => {
  it('does not occupy a socket for long when its client leaves the connection open', async () => {
    const client = new Client().read().send('GARBAGE\r\n\r\n');
    await until(() => client.closed);
    expect(client.received).toContain('"code":"invalid_request"');
    await until(async () => (await openConnections()) === 0);
  });

  it('is never answered within the body of the response to the previous request', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const client = new Client().read().send(call(uncached()));
    await hold.arrived;
    await until(() => client.received.includes('"results":['));
    client.send('GARBAGE\r\n\r\n');
    await until(() => client.closed);
    hold.release();
    expect([client.statuses, client.received.includes('invalid_request')]).toEqual([[200], false]);
  });

  it('is refused immediately when it is the body of the only request', async () => {
    const head = `POST /admin/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n`;
    const client = new Client()
      .read()
      .send(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nGARBAGE`);
    await until(() => client.closed);
    expect(client.statuses).toEqual([400]);
  });
});

describe('a shutdown', () => {
  it('serves the request of each connection that was accepted before, which a proxy does not repeat', async () => {
    const stopping = await startService();
    const { key } = await stopping.organization();
    const fresh = Array.from({ length: 20 }, () => new Client(stopping).read());
    const server: Server = stopping.app.getHttpServer();
    await until(() => new Promise<boolean>((done) => server.getConnections((_error, count) => done(count === 20))));
    const stopped = shutDown(stopping.app, { graceSeconds: 30 });
    await until(() => !server.listening);
    const body = JSON.stringify({ videos: ['short'] });
    const head = `POST /transcripts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`;
    const request = `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    for (const client of fresh) client.send(request);
    await until(() => fresh.every(({ closed }) => closed));
    // The list is invalid, so that the calls wait for nothing.
    expect(fresh.map(({ statuses }) => statuses)).toEqual(Array(20).fill([400]));
    expect(fresh[0]?.received).toContain('Connection: close');
    await stopped;
    await stopping.close();
  });

  it('does not wait for idle connections', async () => {
    const stopping = await startService();
    const [silent, idle] = [new Client(stopping).read(), new Client(stopping).read()];
    idle.send(get('/health/live'));
    await until(() => idle.received.includes('ok'));
    await shutDown(stopping.app, { graceSeconds: 30 });
    await until(() => silent.closed && idle.closed);
    await stopping.close();
  });

  it('does not wait longer than the grace period for an unavailable database', async () => {
    const stopping = await startService({ interruptible: true });
    const { key } = await stopping.organization();
    const hold = stopping.fakeYoutube.hold({ kind: 'timedtext' }, 2);
    const responding = stopping.get('/channels/@2-videos-no-34/transcripts', key);
    await hold.arrived;
    stopping.link.cut();
    hold.release();
    expect((await responding).body.summary.fetched).toBe(2);
    await shutDown(stopping.app, { graceSeconds: 0 });
    expect(stopping.logs.some((line) => line.includes('settlement_given_up'))).toBe(true);
    await stopping.close();
  });
});
