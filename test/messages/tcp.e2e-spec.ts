import { type Server as TcpServer, connect, type Socket } from 'node:net';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { shutDown } from '../../src/bootstrap.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { request, clientOf, messageUrl } from './message-client.js';
import { freePort } from '../harness/free-port.js';

const MESSAGES = { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0 } as const;

const MEGABYTE = 1024 * 1024;

/** A raw connection that sends a message in Nest's framing, and reads on demand. */
class Sender {
  text = '';

  private constructor(readonly socket: Socket) {
    socket.on('error', () => undefined);
  }

  static async to(url: URL): Promise<Sender> {
    const socket = connect(Number(url.port), url.hostname);
    await new Promise((resolve) => socket.once('connect', resolve));
    return new Sender(socket);
  }

  send(data: object): void {
    const text = JSON.stringify({ id: 'one', pattern: 'channels.transcripts', data });
    this.socket.write(`${text.length}#${text}`);
  }

  read(): void {
    this.socket.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
  }

  get whole(): boolean {
    return this.text.includes('"isDisposed":true');
  }
}

/** The service's ends of the connections from now on. */
function connectionsOf(service: TestService): Socket[] {
  const sockets: Socket[] = [];
  const [microservice] = service.app.getMicroservices();
  microservice?.unwrap<TcpServer>().on('connection', (socket: Socket) => void sockets.push(socket));
  return sockets;
}

const logged = (service: TestService, requestId: string): any => {
  const line = service.logs.find((one) => one.includes('"event":"message"') && one.includes(requestId));
  return line === undefined ? undefined : JSON.parse(line);
};

describe('a caller over TCP', () => {
  let service: TestService;
  beforeAll(async () => {
    // A busy machine takes longer for 75 long texts than the deadline allows by default.
    const wide = { REQUEST_DEADLINE_SECONDS: 600 };
    service = await startService({ environment: { ...MESSAGES, ...wide, CALLS_PER_KEY: 1, RATE_LIMIT_PER_MINUTE: 0 } });
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  it('ends its call by disconnecting: running fetches are aborted and not charged', async () => {
    const { key } = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const sender = await Sender.to(messageUrl(service));
    sender.send({ apiKey: key, id: '@fogsignalradio', limit: 3, requestId: 'dropped' });
    await hold.arrived;
    expect((await service.get('/usage', key)).body.reserved).toBe(3);
    sender.socket.destroy();
    await until(() => logged(service, 'dropped') !== undefined);
    expect(logged(service, 'dropped').left).toBe(true);
    await until(async () => (await service.get('/usage', key)).body.reserved === 0);
    hold.release();
    expect((await service.get('/usage', key)).body.used).toBeLessThan(3);
    const client = clientOf(messageUrl(service));
    expect((await request(client, { apiKey: key, id: '@emptyslip' })).error).toBeUndefined();
    await client.close();
  });

  it('delays its reply by not reading, which uses no memory meanwhile and is complete when it reads', async () => {
    const { key } = await service.organization();
    const ends = connectionsOf(service);
    const sender = await Sender.to(messageUrl(service));
    sender.send({ apiKey: key, id: '@bench-75x1500', limit: 75, requestId: 'slow' });
    await until(() => (ends[0]?.bytesWritten ?? 0) > 0);
    await until(async () => (await service.get('/usage', key)).body.reserved === 0);
    const charged: number = (await service.get('/usage', key)).body.used;
    expect(ends[0]?.writableLength).toBeLessThan(2 * MEGABYTE);
    expect(logged(service, 'slow')).toBeUndefined();
    sender.read();
    await until(() => sender.whole);
    expect(sender.text.length).toBeGreaterThan(8 * MEGABYTE);
    expect(sender.text.match(/"type":"result"/g)).toHaveLength(75);
    expect(sender.text).toContain(`"fetched":${charged}`);
    await until(() => logged(service, 'slow') !== undefined);
    expect(logged(service, 'slow').left).toBeUndefined();
    sender.socket.destroy();
  });
});

describe('a service that accepts messages at shutdown', () => {
  it('replies to the message in flight, refuses the next one, and then closes the connection', async () => {
    const service = await startService({ environment: MESSAGES });
    const { key } = await service.organization();
    const client = clientOf(messageUrl(service));
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = request(client, { apiKey: key, id: '@fogsignalradio', limit: 3 });
    await hold.arrived;
    const stopped = shutDown(service.app, { graceSeconds: 30 });
    const late = await request(client, { apiKey: key, id: '@emptyslip' });
    expect(late.error.error).toMatchObject({ code: 'service_unavailable', retryable: true, retryAfterSeconds: 5 });
    hold.release();
    const response = await running;
    expect(response.error).toBeUndefined();
    expect(response.events.at(-1)?.summary).toMatchObject({ total: 3, fetched: 3 });
    await stopped;
    await client.close();
    await service.close();
  });

  it('aborts calls that exceed the grace period, and releases their reservations', async () => {
    const service = await startService({ environment: MESSAGES });
    const { key, id } = await service.organization();
    const client = clientOf(messageUrl(service));
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = request(client, { apiKey: key, id: '@fogsignalradio', limit: 3 });
    await hold.arrived;
    await shutDown(service.app, { graceSeconds: 0 });
    expect((await running).events.at(-1)?.type).not.toBe('summary');
    const open = await service.query(
      `SELECT count(*)::int AS open FROM quota_reservations WHERE organization_id = '${id}' AND settled_at IS NULL`,
    );
    expect(open).toEqual([{ open: 0 }]);
    hold.release();
    await client.close();
    await service.close();
  });
});

const CONSUMER = join(import.meta.dirname, '../../clients/nest-consumer');

const PROGRAM = join(CONSUMER, 'dist/main.js');

async function consumer(args: string[], variables: Record<string, string>) {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH: process.env['PATH'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed: Promise<unknown[]> = once(child, 'close');
  const [output, errorOutput, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output, errorOutput };
}

describe('the Nest consumer over HTTP', () => {
  it('names the address that it cannot reach, without the key', async () => {
    const port = await freePort();
    const variables = { BASE_URL: `http://127.0.0.1:${port}`, API_KEY: 'ctk_a-key' };
    const { code, output, errorOutput } = await consumer(['@harbourlight', '5'], variables);
    expect([code, output, errorOutput]).toEqual([
      1,
      '',
      `no_response: GET http://127.0.0.1:${port}/channels/%40harbourlight/transcripts?limit=5: fetch failed (ECONNREFUSED)\n`,
    ]);
  });
});

describe('the Nest consumer over TCP', () => {
  it('prints each video as it arrives, then the counts, and prints a refusal in one line', async () => {
    const service = await startService({ environment: { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0 } });
    try {
      const { key } = await service.organization();
      const variables = { TRANSPORT: 'tcp', MESSAGE_PORT: messageUrl(service).port, API_KEY: key };
      const shown = await consumer(['@harbourlight', '5'], variables);
      expect(shown).toMatchObject({ code: 0, errorOutput: '' });
      const lines = shown.output.trimEnd().split('\n');
      expect(lines).toHaveLength(7);
      expect(lines[0]).toBe('Harbour Light Workshop (UCharbourlight__________)');
      expect(lines).toContain('  hl-dinghy__  fetched');
      const [, shownLines = ''] = /```text\n([^]*?)```/.exec(readFileSync(join(CONSUMER, 'README.md'), 'utf8')) ?? [];
      expect(shownLines.trimEnd().split('\n').sort()).toEqual([...lines].sort());
      expect(lines.at(-1)).toBe('3 of 5 succeeded');
      const refused = await consumer(['@harbourlight', '0'], variables);
      expect(refused).toMatchObject({ code: 1, output: '' });
      expect(refused.errorOutput).toMatch(/^invalid_request: limit must be .+\n$/);
    } finally {
      await service.close();
    }
  });
});
