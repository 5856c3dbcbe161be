import { connect, type Socket } from 'node:net';
import type { Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { shutDown } from '../../src/bootstrap.js';
import { WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { startService, type TestOrganization, type TestService } from '../service.js';
import { until } from '../until.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

/** A connection whose client side stays open whatever the service does. */
function openConnection(to = service): {
  socket: Socket;
  received: () => string;
  ended: () => boolean;
} {
  const socket = connect({ port: Number(new URL(to.url).port), host: '127.0.0.1', allowHalfOpen: true });
  let text = '';
  let ended = false;
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  socket.on('end', () => (ended = true));
  socket.on('close', () => (ended = true));
  socket.on('error', () => undefined);
  return { socket, received: () => text, ended: () => ended };
}

function openConnections(): Promise<number> {
  const server: Server = service.app.getHttpServer();
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

const get = (path: string, key: string, id: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nX-Request-Id: ${id}\r\n\r\n`;

async function usage({ key }: TestOrganization): Promise<{ used: number; reserved: number }> {
  const { used, reserved } = (await service.get('/usage', key)).body as { used: number; reserved: number };
  return { used, reserved };
}

describe('a malformed request', () => {
  it.each([
    ['garbage', 'GARBAGE\r\n\r\n'],
    ['an odd expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n'],
  ])('(%s) does not occupy a socket for long when its client leaves the connection open', async (_what, odd) => {
    await until(async () => (await openConnections()) === 0);
    const connection = openConnection();
    connection.socket.write(odd);
    await until(() => connection.ended());
    expect(connection.received()).toContain('"code":"invalid_request"');
    await until(async () => (await openConnections()) === 0);
    connection.socket.destroy();
  });
});

describe('a client that disconnects', () => {
  it('while the key is looked up is not charged, and no request is sent to the platform', async () => {
    const [organization, other] = [await service.organization(), await service.organization()];
    const lock = new pg.Client({ connectionString: service.databaseUrl });
    await lock.connect();
    await lock.query('BEGIN');
    await lock.query('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE');
    const connection = openConnection();
    connection.socket.write(get('/channels/@bench-9x31/transcripts', organization.key, 'left-early'));
    await until(async () => (await lock.query(WAITING_FOR_LOCKS)).rowCount === 1);
    connection.socket.destroy();
    await until(() => service.logs.some((line) => line.includes('"left-early"')));
    await lock.query('COMMIT');
    await lock.end();
    // As long as the whole call of another client takes.
    expect((await service.get('/channels/@tidewater/transcripts?limit=2', other.key)).status).toBe(200);
    expect(service.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(2);
    await until(async () => (await usage(organization)).reserved === 0);
    expect(await usage(organization)).toEqual({ used: 0, reserved: 0 });
  });

  it('also ends the calls queued behind another on the same connection', async () => {
    const organization = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, 8);
    const connection = openConnection();
    connection.socket.write(
      get('/channels/@bench-4x32/transcripts', organization.key, 'first-in-line') +
        get('/channels/@bench-4x33/transcripts', organization.key, 'second-in-line'),
    );
    await hold.arrived;
    expect((await usage(organization)).reserved).toBe(8);
    connection.socket.destroy();
    await until(async () => (await usage(organization)).reserved === 0);
    await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
    hold.release();
    expect(await usage(organization)).toEqual({ used: 0, reserved: 0 });
    for (const id of ['first-in-line', 'second-in-line']) {
      expect(service.logs.filter((line) => line.includes(`"${id}"`) && line.includes('"left":true'))).toHaveLength(1);
    }
  });
});

describe('pipelined calls', () => {
  it('get their responses in order', async () => {
    const { key } = await service.organization();
    const connection = openConnection();
    const ids = ['one', 'two', 'three'];
    connection.socket.write(ids.map((id) => get('/usage', key, id)).join(''));
    await until(() => (connection.received().match(/"remaining"/g) ?? []).length === 3);
    expect([...connection.received().matchAll(/X-Request-Id: (\w+)/g)].map(([, id]) => id)).toEqual(ids);
    connection.socket.destroy();
  });
});

describe('a shutdown', () => {
  it('does not wait for idle connections', async () => {
    const stopping = await startService();
    const [silent, idle] = [openConnection(stopping), openConnection(stopping)];
    idle.socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => idle.received().includes('ok'));
    await shutDown(stopping.app, { graceSeconds: 30 });
    await until(() => silent.ended() && idle.ended());
    await stopping.close();
  });

  it('does not wait longer than the grace period for an unavailable database', async () => {
    const stopping = await startService({ interruptible: true });
    const organization = await stopping.organization();
    const hold = stopping.fakeYoutube.hold({ kind: 'timedtext' }, 2);
    const responding = stopping.get('/channels/@bench-2x34/transcripts', organization.key);
    await hold.arrived;
    stopping.link.cut();
    hold.release();
    expect((await responding).body.summary.fetched).toBe(2);
    await shutDown(stopping.app, { graceSeconds: 0 });
    expect(stopping.logs.some((line) => line.includes('settlement_given_up'))).toBe(true);
    await stopping.close();
  });
});
