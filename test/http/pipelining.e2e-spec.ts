import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { Server } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { CallsInFlight } from '../../src/rate-limit/calls-in-flight.js';
import { WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { startService, type TestOrganization, type TestService } from '../service.js';
import { until } from '../until.js';

const STALLED_READER_MS = 800;
const REFUSAL_LINGER_MS = 200;
const ADMIN_TOKEN = 'pipelining-0123456789abcdefghijklmnopqrst';
/** 1.5 MB, from a file. */
const FILE = '/docs/swagger-ui-bundle.js';

let service: TestService;
let organization: TestOrganization;
const clients: Client[] = [];

beforeAll(async () => {
  service = await startService({
    times: { stalledReaderMs: STALLED_READER_MS, refusalLingerMs: REFUSAL_LINGER_MS },
    environment: { ADMIN_TOKEN, RATE_LIMIT_PER_MINUTE: 0 },
  });
  organization = await service.organization();
});
afterAll(() => service.close());
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  service.fakeYoutube.reset();
  await until(() => inFlight() === 0);
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

/** A client on a raw connection, which reads from the start by default. */
class Client {
  received = '';
  receivedBytes = 0;
  closed = false;
  readonly socket: Socket;

  constructor() {
    this.socket = connect({ port: Number(new URL(service.url).port), host: '127.0.0.1', allowHalfOpen: true });
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
    this.socket.on('data', (chunk: Buffer) => {
      this.received += chunk.toString('latin1');
      this.receivedBytes += chunk.length;
    });
    return this;
  }

  get statuses(): number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
  }

  disconnect(): void {
    this.socket.destroy();
  }
}

function get(path: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ Host: 'a', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Makes a request so large that only a few of them arrive in one read. */
const PADDED = { 'X-Padding': 'x'.repeat(2_000) };

function call(channel: string, id = 'a'): string {
  return get(`/channels/@${channel}/transcripts`, {
    Authorization: `Bearer ${organization.key}`,
    'X-Request-Id': id,
  });
}

let channels = 0;

/** A channel with one video that is not cached. */
function uncached(): string {
  channels += 1;
  return `bench-1x${300 + channels}`;
}

/** Blocks the guards of every call on the database until it is released. */
async function holdKeys(): Promise<{ waiting: () => Promise<number>; release: () => Promise<void> }> {
  const lock = new pg.Client({ connectionString: service.databaseUrl });
  await lock.connect();
  await lock.query('BEGIN');
  await lock.query('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE');
  return {
    waiting: async () => (await lock.query(WAITING_FOR_LOCKS)).rowCount ?? 0,
    release: async () => {
      await lock.query('COMMIT');
      await lock.end();
    },
  };
}

describe('a connection that the client resets', () => {
  it('releases the slots of all its calls, including calls that are still in the guards', async () => {
    const ids = Array.from({ length: 5 }, (_, index) => `reset-${index}`);
    // A key that was valid before is looked up without a delay.
    expect((await service.get('/usage', organization.key)).status).toBe(200);
    const keys = await holdKeys();
    try {
      const client = new Client().send(...ids.map((id) => call(uncached(), id)));
      // All calls arrive at once; their lookups share a query or two.
      await until(async () => (await keys.waiting()) > 0);
      client.socket.resetAndDestroy();
      const left = (id: string): boolean =>
        service.logs.some((line) => line.includes(`"${id}"`) && line.includes('"left":true'));
      await until(() => ids.every(left));
    } finally {
      await keys.release();
    }
    // A later call has passed the guards, so all have.
    expect((await service.get('/channels/@tidewater/transcripts?limit=1', organization.key)).status).toBe(200);
    await until(() => inFlight() === 0);
    expect(service.logs.filter((line) => ids.some((id) => line.includes(`"${id}"`)))).toHaveLength(ids.length);
    const { reserved } = (await service.get('/usage', organization.key)).body as { reserved: number };
    expect(reserved).toBe(0);
  });

  it('closes the file of a response that is queued behind another one', async () => {
    const open = (): number => readdirSync('/proc/self/fd').length;
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const before = open();
    const client = new Client().send(call(uncached()), ...Array<string>(20).fill(get(FILE)));
    await hold.arrived;
    client.socket.resetAndDestroy();
    await until(() => inFlight() === 0);
    hold.release();
    await until(() => open() <= before);
  });
});

describe('a client that does not read its response', () => {
  const ROUTES: [string, string][] = [
    ['the document', get('/docs-json', PADDED)],
    ['a file of the page', get(FILE, PADDED)],
    ['the page', get('/docs', PADDED)],
    ['metrics', get('/metrics', PADDED)],
  ];

  /** Requests of more than the socket buffers of both ends hold, together with their responses. */
  async function floodOf(request: string): Promise<string> {
    const one = new Client().read().send(request);
    await until(() => one.received.includes('\r\n\r\n'));
    await until(() => one.statuses.length === 1 && one.receivedBytes > 500);
    one.disconnect();
    return request.repeat(Math.ceil(200_000 / one.receivedBytes));
  }

  it(`is disconnected (${ROUTES.map(([what]) => what).join(', ')})`, async () => {
    const floods = await Promise.all(ROUTES.map(([, request]) => floodOf(request)));
    await until(async () => (await openConnections()) === 0);
    const flooding = floods.map((flood) => ({ client: new Client(), flood }));
    const feeding = setInterval(() => {
      for (const { client, flood } of flooding) if (client.socket.writableLength === 0) client.send(flood);
    }, 5);
    await until(async () => (await openConnections()) === ROUTES.length);
    await until(async () => (await openConnections()) === 0, 15_000);
    clearInterval(feeding);
  });

  it('releases the slots of the calls queued behind it', async () => {
    new Client().send(...Array<string>(20).fill(get(FILE)), call('tidewater'));
    await until(() => inFlight() === 1);
    await until(() => inFlight() === 0);
    await until(async () => (await openConnections()) === 0);
  });

  it('does not extend its timeout by sending', async () => {
    const client = new Client().send(...Array<string>(20).fill(get(FILE)), 'GET /health/live HTTP/1.1\r\nX-Slow: ');
    const dribble = setInterval(() => client.send('x'), STALLED_READER_MS / 50);
    await until(async () => (await openConnections()) === 1);
    await until(async () => (await openConnections()) === 0);
    clearInterval(dribble);
  });
});

describe('pipelined requests', () => {
  it('are handled one after the other, so that no finished response waits for the client', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const client = new Client().read().send(call(uncached()), get('/usage', { 'X-Request-Id': 'not-yet' }));
    await hold.arrived;
    expect((await service.request('GET', '/health/live')).status).toBe(200);
    client.disconnect();
    await until(() => inFlight() === 0);
    hold.release();
    expect(service.logs.filter((line) => line.includes('"not-yet"'))).toEqual([]);
  });

  it('are limited to a thousand on one connection', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const many = (count: number): Client =>
      new Client().read().send(call(uncached()), ...Array<string>(count).fill(get('/health/live')));
    const [some, tooMany] = [many(900), many(1_100)];
    await hold.arrived;
    await until(() => tooMany.closed);
    expect(some.closed).toBe(false);
    hold.release();
    await until(() => some.statuses.length === 901);
  });
});

describe('a call that is queued behind another response', () => {
  /** Longer than any timeout of a stalled reader. */
  const LONG_MS = 3 * STALLED_READER_MS;
  /** A channel whose response has several megabytes. */
  const LARGE = 'bench-25x1500';

  it('is not disconnected while the service itself waits, after any response and with a large one of its own', async () => {
    for (const channel of ['tidewater', LARGE])
      await service.get(`/channels/@${channel}/transcripts`, organization.key);
    const firsts = {
      'without a body to wait for': get('/health/live'),
      long: get(FILE),
      'of a call': call('tidewater'),
    };
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, 4);
    const behind = Object.entries(firsts).map(([first, request]) => ({
      first,
      client: new Client().read().send(request, call(uncached(), 'held')),
    }));
    const large = new Client().read().send(call(uncached()), call(LARGE, 'large'));
    await hold.arrived;
    const sinceMs = performance.now();
    await until(() => performance.now() - sinceMs > LONG_MS);
    expect(behind.filter(({ client }) => client.closed).map(({ first }) => first)).toEqual([]);
    // The large response is written as far as its buffers allow, so its call is still in flight.
    expect([large.closed, inFlight()]).toEqual([false, behind.length + 2]);
    hold.release();
    for (const { client } of behind) {
      await until(() => client.received.endsWith('\r\n0\r\n\r\n') && client.received.includes('X-Request-Id: held'));
      expect(client.statuses).toEqual([200, 200]);
      expect(client.received).toContain('"summary":{"total":');
    }
    await until(() => (large.received.match(/\r\n0\r\n\r\n/g) ?? []).length === 2);
    expect(large.statuses).toEqual([200, 200]);
  });

  it('is not disconnected while its client reads the previous response slowly', async () => {
    const client = new Client().send(...Array<string>(4).fill(get(FILE)), call('tidewater', 'behind-slow'));
    client.socket.pause();
    let bytes = 0;
    let tail = '';
    // 6 MB, in more than three times the stall timeout.
    const reading = setInterval(() => {
      let left = 40_000;
      while (left > 0) {
        const chunk = client.socket.read(Math.min(left, client.socket.readableLength || 1)) as Buffer | null;
        if (!chunk) return;
        left -= chunk.length;
        bytes += chunk.length;
        tail = (tail + chunk.toString('latin1')).slice(-5_000);
      }
    }, 20);
    await until(() => tail.endsWith('\r\n0\r\n\r\n'), 25_000);
    clearInterval(reading);
    expect(bytes).toBeGreaterThan(5_000_000);
    expect(tail).toContain('"summary":{"total":');
  });
});

describe('a malformed request on a pipelined connection', () => {
  const ODD: [string, string, number][] = [
    ['garbage', 'GARBAGE\r\n\r\n', 400],
    ['headers that are too large', `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    ['a tunnel', 'CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
    [
      'an odd expectation',
      'GET /health/live HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nConnection: close\r\n\r\n',
      417,
    ],
  ];

  it.each(ODD)('(%s) is refused only after the response to the previous request', async (_what, odd, status) => {
    const hold = service.fakeYoutube.hold({ kind: 'browse' });
    const client = new Client().read().send(call(uncached(), 'running'), odd);
    await hold.arrived;
    // Further malformed bytes do not change the order.
    client.send(odd);
    expect((await service.request('GET', '/health/live')).status).toBe(200);
    expect([client.received, client.closed, inFlight()]).toEqual(['', false, 1]);
    hold.release();
    await until(() => client.closed);
    expect(client.statuses).toEqual([200, status]);
    const [response, refusal] = client.received.split('\r\n0\r\n\r\n');
    expect(response).toContain('X-Request-Id: running');
    expect(response).toContain('"summary":{"total":1,');
    expect(refusal).toMatch(/^HTTP\/1\.1 \d+ .*\r\n/);
    expect(refusal).toContain('"error":{"code":');
  });

  it.each(ODD.slice(0, 3))('(%s) is refused only after a response that has started', async (_what, odd, status) => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const client = new Client().read().send(call(uncached()));
    await hold.arrived;
    await until(() => client.received.includes('"results":['));
    client.send(odd);
    expect((await service.request('GET', '/health/live')).status).toBe(200);
    hold.release();
    await until(() => client.closed);
    expect(client.statuses).toEqual([200, status]);
    expect(client.received.split('\r\n0\r\n\r\n')[0]?.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  it('is refused immediately when it is the body of the only request', async () => {
    const head = `POST /admin/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n`;
    const client = new Client()
      .read()
      .send(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nGARBAGE`);
    await until(() => client.closed);
    expect(client.statuses).toEqual([400]);
    await until(async () => (await openConnections()) === 0);
  });

  it('leaves the previous call uncharged when the client disconnects before the response', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const client = new Client().send(call(uncached()), 'GARBAGE\r\n\r\n');
    await hold.arrived;
    client.socket.resetAndDestroy();
    await until(() => inFlight() === 0);
    await until(async () => (await openConnections()) === 0);
    hold.release();
  });
});
