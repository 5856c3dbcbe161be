import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, beforeEach, jest } from '@jest/globals';
import type { Response } from 'express';
import { Registry } from 'prom-client';
import type { Chunk } from '../../src/transcripts/formats/json.js';
import { writeResponse } from '../../src/transcripts/response/response-writer.js';
import { Environment } from '../../src/config/environment.js';
import { HeldTexts, ResponseMemory } from '../../src/transcripts/delivery/response-memory.js';
import { limitConnections } from '../../src/http/server/connections.js';
import { startService, type TestService, type ServiceResponse, type TestOrganization } from '../harness/service.js';
import { storedText } from '../texts/stored-text.js';
import { until } from '../harness/until.js';
import { generatedChannelByHandle } from '../fake-youtube/catalogue/generated-channels.js';
import type { Hold } from '../fake-youtube/faults/held-requests.js';

/** A client on a raw connection that reads only on demand. */
class Reader {
  received = 0;
  /** The connection has ended, with or without an error. */
  closed = false;
  private readonly chunks: Buffer[] = [];

  private constructor(private readonly socket: Socket) {
    socket.pause();
    socket.on('error', () => undefined);
    socket.on('close', () => (this.closed = true));
  }

  static async request(port: number, path: string, headers: Record<string, string> = {}): Promise<Reader> {
    const socket = connect(port, '127.0.0.1');
    const reader = new Reader(socket);
    await new Promise((resolve) => socket.once('connect', resolve));
    const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
    return reader;
  }

  /** Reads everything from now on. */
  readAll(): void {
    this.socket.on('data', (chunk: Buffer) => this.take(chunk));
    this.socket.resume();
  }

  /** Reads so many bytes at a time, until the returned function is called. */
  readSteadily(bytes: number, everyMs: number): () => void {
    this.socket.on('readable', () => undefined);
    const reading = setInterval(() => this.take((this.socket.read(bytes) ?? Buffer.of()) as Buffer), everyMs);
    return () => clearInterval(reading);
  }

  /** The received bytes; a complete response ends with the empty chunk. */
  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  get whole(): boolean {
    return Buffer.concat(this.chunks.slice(-2)).toString('latin1').endsWith('\r\n0\r\n\r\n');
  }

  disconnect(): void {
    this.socket.destroy();
  }

  private take(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.received += chunk.length;
  }
}

/** The body of a chunked response. */
function bodyOf(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = bytes.indexOf('\r\n\r\n') + 4;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const length = parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (!(length > 0)) return Buffer.concat(parts);
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
  }
}

describe('a client that does not read its response', () => {
  // Nearly twice as many bytes as the socket buffers of a connection take.
  const VIDEOS = 75;
  /** At most this share of a body is written to a client that does not read. */
  const BUFFERED_SHARE_MAX = 0.7;
  const PATH = `/channels/@bench-${VIDEOS}x1500/transcripts?limit=${VIDEOS}`;
  let service: TestService;
  let port: number;
  let sockets: Socket[];
  const readers: Reader[] = [];

  beforeAll(async () => {
    // Polling `/usage` exceeds the default limit.
    service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
    const server: Server = service.app.getHttpServer();
    ({ port } = server.address() as AddressInfo);
    sockets = [];
    server.on('connection', (socket) => sockets.push(socket));
  });
  afterAll(() => service.close());
  afterEach(() => readers.splice(0).forEach((reader) => reader.disconnect()));

  /** Sends a request without reading; `socket` is the service's end of the connection. */
  async function request(key: string, encoding: string): Promise<{ reader: Reader; socket: Socket }> {
    const before = sockets.length;
    const reader = await Reader.request(port, PATH, { Authorization: `Bearer ${key}`, 'Accept-Encoding': encoding });
    readers.push(reader);
    await until(() => sockets.length > before);
    const socket = sockets.at(-1);
    if (!socket) throw new Error('There is no connection.');
    return { reader, socket };
  }

  it('is charged once everything is fetched, pauses the writing, and receives the complete response when it reads', async () => {
    const { key } = await service.organization();
    const { reader, socket } = await request(key, 'identity');
    await until(async () => {
      const { used, reserved } = (await service.get('/usage', key)).body;
      return used === VIDEOS && reserved === 0;
    });
    // The socket buffers of the connection are full.
    await until(() => socket.writableNeedDrain);
    const written = socket.bytesWritten;
    expect([reader.received, reader.closed]).toEqual([0, false]);
    reader.readAll();
    await until(() => reader.whole);
    const body = bodyOf(reader.bytes);
    expect(JSON.parse(body.toString())).toMatchObject({ summary: { total: VIDEOS, fetched: VIDEOS } });
    expect(written).toBeLessThan(body.length * BUFFERED_SHARE_MAX);
  });
});

describe('writing a response body', () => {
  const STALLED_READER_MS = 500;
  // Random hexadecimal digits, which compress to about half.
  const PIECE = Buffer.from(randomBytes(50_000).toString('hex'));
  const TEXT = storedText(PIECE);
  const PIECES = 150;
  const environment = Object.assign(new Environment(), { RESPONSE_BUFFER_MAX_MEGABYTES: 1 });
  const memory = new ResponseMemory(environment, new Registry());

  interface Writing {
    reader: Reader;
    /** The number of requested pieces so far. */
    pulled: () => number;
    /** Settles when the writing ends: undefined, or the thrown error. */
    ended: Promise<unknown>;
    close: () => void;
  }

  const writings: Writing[] = [];
  afterEach(() => writings.splice(0).forEach((writing) => writing.close()));

  /** Writes to a reader who does not read yet. */
  async function write(
    encoding: 'identity' | 'gzip',
    { failAfter = Infinity, stalledMs = STALLED_READER_MS } = {},
  ): Promise<Writing> {
    let pulled = 0;
    async function* pieces(): AsyncGenerator<Chunk> {
      while (pulled < PIECES) {
        if (pulled === failAfter) throw new Error('A bug.');
        pulled++;
        yield await Promise.resolve(['"', TEXT, '",']);
      }
    }
    let server: Server | undefined;
    const ended = new Promise<unknown>((resolve) => {
      server = createServer((_request, response) => {
        const waiting = new HeldTexts(memory, 'org');
        void writeResponse(response as Response, pieces(), encoding, waiting).then(resolve, resolve);
      });
    });
    if (!server) throw new Error('There is no server.');
    const listening = server;
    limitConnections(listening, stalledMs);
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const reader = await Reader.request((listening.address() as AddressInfo).port, '/');
    const close = (): void => {
      reader.disconnect();
      listening.close();
      listening.closeAllConnections();
    };
    const writing = { reader, pulled: () => pulled, ended, close };
    writings.push(writing);
    return writing;
  }

  it('pauses for a client that does not read, and closes its connection after the timeout', async () => {
    for (const { reader, ended, pulled } of await Promise.all([write('identity'), write('gzip')])) {
      expect(await ended).toBeUndefined();
      // The socket buffers of both ends, and no more.
      expect(pulled()).toBeLessThan(PIECES * 0.7);
      reader.readAll();
      await until(() => reader.closed);
      expect(reader.whole).toBe(false);
    }
  });

  it('counts what waits for the client, until its connection is closed', async () => {
    const writings = await Promise.all([write('identity'), write('gzip')]);
    await until(() => memory.heldBytes > 0);
    for (const { ended } of writings) expect(await ended).toBeUndefined();
    expect(memory.heldBytes).toBe(0);
  });

  it('serves a client that reads steadily, however slowly', async () => {
    const { reader, ended } = await write('identity', { stalledMs: 3_000 });
    let isCut = false;
    void ended.then(() => (isCut = true));
    // The system accepts more only after a third of its buffer, about a megabyte, for which this reader takes ten seconds.
    const stop = reader.readSteadily(5_000, 50);
    await until(() => reader.received > 900_000 || isCut);
    stop();
    expect(isCut).toBe(false);
  });

  it.each([
    ['identity', 0],
    ['gzip', 100],
  ] as const)(
    'never lets a body that was cut by a bug look whole (%s, after %i pieces)',
    async (encoding, failAfter) => {
      const { reader, ended } = await write(encoding, { failAfter });
      reader.readAll();
      expect(await ended).toEqual(new Error('A bug.'));
      await until(() => reader.closed);
      expect(reader.bytes.toString('latin1')).not.toContain('\r\n0\r\n\r\n');
    },
  );
});

describe('the response buffer', () => {
  const MEGABYTE = 1024 * 1024;
  const BUFFER_MEGABYTES = 1;
  /** One call may use a sixteenth of it. */
  const CALL_BYTES_MAX = 64 * 1024;
  let service: TestService;
  let memory: ResponseMemory;
  let organization: TestOrganization;

  beforeAll(async () => {
    service = await startService({ environment: { RESPONSE_BUFFER_MAX_MEGABYTES: BUFFER_MEGABYTES } });
    memory = service.app.get(ResponseMemory);
  });
  afterAll(() => service.close());

  beforeEach(async () => {
    organization = await service.organization();
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    service.fakeYoutube.reset();
    await until(() => memory.heldBytes === 0);
  });
  const pathTo = (handle: string): string => `/channels/${handle}/transcripts?limit=100`;

  /** Requests a channel whose newest video does not arrive, so that all others wait for it. */
  function requestBehindNewest(handle: string): { hold: Hold; running: Promise<ServiceResponse> } {
    const [newest] = generatedChannelByHandle(handle)?.uploads() ?? [];
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', videoId: newest?.id ?? '' });
    return { hold, running: service.get(pathTo(handle), organization.key) };
  }

  const usage = async (): Promise<unknown> => {
    const { used, reserved } = (await service.get('/usage', organization.key)).body;
    return { used, reserved };
  };

  describe('texts buffered for a client', () => {
    it('stop the fetching at the limit: missing transcripts are not charged, and a later call can fetch them', async () => {
      const most = watchMost();
      const { hold, running } = requestBehindNewest('@bench-100x100');
      // Each waiting text is counted when it has arrived, until the call may not fetch another one.
      await until(() => memory.heldBytes >= CALL_BYTES_MAX);
      hold.release();
      const { body } = await running;
      const { fetched, failed } = body.summary;
      expect(body.summary).toEqual({ total: 100, succeeded: fetched, failed, cached: 0, fetched });
      expect([fetched > 10, failed > 10]).toEqual([true, true]);
      expect(body.results.find(({ ok }: { ok: boolean }) => !ok)).toMatchObject({
        error: {
          code: 'upstream_failure',
          message: expect.stringContaining('The response buffer of this call is full'),
          retryable: true,
        },
      });
      // The fetches that were running when the limit was reached complete: up to two for each of the 16 slots, of 5 KB each.
      expect(most()).toBeLessThan(4 * CALL_BYTES_MAX);
      expect(await usage()).toEqual({ used: fetched, reserved: 0 });
      service.fakeYoutube.reset();
      await until(
        async () => (await service.get(pathTo('@bench-100x100'), organization.key)).body.summary.failed === 0,
        20_000,
      );
      expect(await usage()).toEqual({ used: 100, reserved: 0 });
    });

    it('cause new calls to be refused without charge while they fill the whole budget', async () => {
      const others = Buffer.alloc(BUFFER_MEGABYTES * MEGABYTE);
      memory.add('others', others);
      const refused = await service.get(pathTo('@2-videos-no-2'), organization.key);
      memory.release('others', others);
      expect([refused.status, refused.body.error, refused.headers['retry-after']]).toMatchObject([
        503,
        { code: 'service_unavailable', retryable: true },
        expect.stringMatching(/^\d+$/),
      ]);
      expect(await usage()).toEqual({ used: 0, reserved: 0 });
      expect((await service.get(pathTo('@2-videos-no-2'), organization.key)).body.summary).toMatchObject({
        fetched: 2,
      });
    });

    it('cause the calls of an organization that holds a quarter to be refused, and nobody else', async () => {
      const open = Buffer.alloc((BUFFER_MEGABYTES * MEGABYTE) / 4);
      memory.add(organization.id, open);
      const other = await service.organization();
      const [refused, served] = [
        await service.get(pathTo('@2-videos-no-2'), organization.key),
        await service.get(pathTo('@2-videos-no-2'), other.key),
      ];
      memory.release(organization.id, open);
      expect([refused.status, refused.body.error, refused.headers['retry-after']]).toMatchObject([
        503,
        { code: 'service_unavailable', message: expect.stringContaining('Read them to the end'), retryable: true },
        expect.stringMatching(/^\d+$/),
      ]);
      expect(served.body.summary).toMatchObject({ succeeded: 2 });
      expect(await usage()).toEqual({ used: 0, reserved: 0 });
    });

    it('do not stop a running call that buffers little, even when others use the whole budget', async () => {
      const others = Buffer.alloc(BUFFER_MEGABYTES * MEGABYTE);
      const { hold, running } = requestBehindNewest('@bench-3x100');
      await hold.arrived;
      memory.add('others', others);
      hold.release();
      const { summary } = (await running).body;
      memory.release('others', others);
      expect(summary).toMatchObject({ total: 3, fetched: 3 });
    });
  });

  describe('captions of more than 4 MB', () => {
    it('are not read: the video fails and costs nothing', async () => {
      const { body } = await service.get(pathTo('@noise-1x12500'), organization.key);
      expect(body.results[0].error).toMatchObject({ code: 'upstream_failure', retryable: true });
      expect(await usage()).toEqual({ used: 0, reserved: 0 });
    });
  });

  /** The maximum since then. */
  function watchMost(): () => number {
    let most = 0;
    const add = memory.add.bind(memory);
    jest.spyOn(memory, 'add').mockImplementation((organizationId, text) => {
      add(organizationId, text);
      most = Math.max(most, memory.heldBytes);
    });
    return () => most;
  }
});
