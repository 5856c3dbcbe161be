import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import type { Egress } from './egress.js';
import { EgressPool } from './egress-pool.js';
import { FairLimiter } from './fair-limiter.js';
import { RequestPipeline, type PipelineOptions } from './request-pipeline.js';
import { RetryBudget } from './retry.js';

Logger.overrideLogger(false);

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const JSON_TYPE = { 'content-type': 'application/json' };
const PLATFORM = 'https://www.youtube.com';

let server: Server;
let handler: Handler;
let seen: { url: string; headers: IncomingMessage['headers']; body: string }[];
let agent: Agent;
let limiter: FairLimiter;
let origin: string;

beforeEach(async () => {
  seen = [];
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      seen.push({ url: request.url ?? '', headers: request.headers, body });
      handler(request, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  agent = new Agent({ connections: 2, pipelining: 1 });
  limiter = new FairLimiter(2);
});

afterEach(async () => {
  // Every slot is released, whatever the result of the request.
  expect([limiter.running, limiter.queued]).toEqual([0, 0]);
  await agent.destroy();
  server.closeAllConnections();
  server.close();
});

function send(
  path = '/youtubei/v1/player',
  options: Partial<PipelineOptions> & { signal?: AbortSignal; body?: string } = {},
) {
  const { signal = new AbortController().signal, body, ...rest } = options;
  const url = new URL(path, PLATFORM);
  return sendTo(url, { signal, ...(body === undefined ? {} : { body }) }, rest);
}

function sendTo(
  url: URL,
  { signal, body }: { signal: AbortSignal; body?: string },
  rest: Partial<PipelineOptions> = {},
) {
  const metrics = { request: () => undefined };
  const defaults = { limiter, baseUrl: new URL(origin), timeoutMs: 5_000, bodyBytesMax: 16 * 1024 * 1024, metrics };
  const context = { signal, deadlineAtMs: performance.now() + 60_000, fairnessKey: {} };
  const scope = { egress: direct(), subject: 'a video', context, budget: new RetryBudget(0) };
  const outgoing = { url, headers: { 'x-test': '1' }, ...(body === undefined ? {} : { body }) };
  const pending = { kind: 'player', client: 'VISIONOS', scope, outgoing };
  return new RequestPipeline({ ...defaults, ...rest }).text(pending);
}

function direct(now?: () => number): Egress {
  const options = { registry: new Registry(), proxyUrls: [], connectionsMax: 2, connectTimeoutMs: 1_000 };
  const egress = new EgressPool({ ...options, ...(now && { now }) }).take('video')?.egress;
  if (!egress) throw new Error('There is no egress.');
  return { ...egress, dispatcher: agent };
}

const response =
  (status: number, headers: Record<string, string>, body: string | Buffer = ''): Handler =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);

describe('RequestPipeline', () => {
  it('sends a POST with a body and a GET without one, with the cookie that avoids the consent page', async () => {
    handler = response(200, JSON_TYPE, '{"a":1}');
    await expect(send('/youtubei/v1/player', { body: '{}' })).resolves.toEqual({
      kind: 'ok',
      media: 'json',
      body: '{"a":1}',
    });
    expect(seen[0]).toMatchObject({ body: '{}', headers: { cookie: 'SOCS=CAE=', 'x-test': '1' } });
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ] as const)('decompresses %s', async (encoding, pack) => {
    handler = response(200, { ...JSON_TYPE, 'content-encoding': encoding }, pack('{"text":"Möwe 🐦"}'));
    await expect(send()).resolves.toMatchObject({ kind: 'ok', body: '{"text":"Möwe 🐦"}' });
  });

  it('prefixes the path of the base URL', async () => {
    handler = response(200, JSON_TYPE, '{}');
    await send('/api/timedtext?v=x', { baseUrl: new URL(`${origin}/egress/`) });
    expect(seen[0]?.url).toBe('/egress/api/timedtext?v=x');
  });

  it('reports text that is not UTF-8 as unreadable', async () => {
    handler = response(200, JSON_TYPE, Buffer.from('{"a":"caf\xe9"}', 'latin1'));
    await expect(send()).resolves.toMatchObject({ kind: 'unreadable' });
  });

  it('reports a truncated body as a failure, compressed or not', async () => {
    const whole = gzipSync('x'.repeat(10_000));
    handler = response(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, whole.subarray(0, 20));
    await expect(send()).resolves.toMatchObject({ kind: 'unreadable' });
    handler = (_request, response) => {
      response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' });
      response.write('{"a":', () => response.destroy());
    };
    await expect(send()).resolves.toMatchObject({ kind: 'network' });
  });

  it('does not read a body over the limit to its end, compressed or not', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    handler = (_request, response) => {
      closed = once(response, 'close');
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      };
      response.writeHead(200, JSON_TYPE).on('drain', pour);
      pour();
    };
    await expect(send('/x', { bodyBytesMax: 50_000 })).resolves.toMatchObject({ kind: 'unreadable' });
    await closed;
    handler = response(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync('x'.repeat(60_000)));
    await expect(send('/x', { bodyBytesMax: 50_000 })).resolves.toMatchObject({ kind: 'unreadable' });
  });

  it('reports a reset and a refused connection as network failures', async () => {
    handler = (request) => request.socket.destroy();
    await expect(send()).resolves.toMatchObject({ kind: 'network' });
    await expect(send('/x', { baseUrl: new URL('http://127.0.0.1:1') })).resolves.toMatchObject({ kind: 'network' });
  });

  it('reports a missing or endless response as a timeout', async () => {
    handler = () => undefined;
    await expect(send('/x', { timeoutMs: 60 })).resolves.toEqual({ kind: 'timeout' });
    let timer: NodeJS.Timeout | undefined;
    handler = (_request, response) => {
      response.writeHead(200, JSON_TYPE);
      timer = setInterval(() => response.write(' '), 10);
    };
    await expect(send('/x', { timeoutMs: 100 })).resolves.toEqual({ kind: 'timeout' });
    clearInterval(timer);
  });

  it('rejects with the reason of an abort and closes the connection', async () => {
    const leaving = new AbortController();
    const closed = new Promise<void>((resolve) => {
      handler = (_request, response) => {
        response.on('close', () => resolve());
        leaving.abort(new Error('left'));
      };
    });
    await expect(send('/x', { signal: leaving.signal })).rejects.toThrow('left');
    await closed;
  });

  it('rejects with the reason of an abort during the body', async () => {
    const leaving = new AbortController();
    handler = (_request, response) => {
      response.writeHead(200, JSON_TYPE).write('{"a":', () => leaving.abort(new Error('left')));
    };
    await expect(send('/x', { signal: leaving.signal })).rejects.toThrow('left');
  });

  it('sends nothing for an aborted signal', async () => {
    await expect(send('/x', { signal: AbortSignal.abort(new Error('left')) })).rejects.toThrow('left');
    expect(seen).toEqual([]);
  });

  it('follows redirects within the platform, three at most', async () => {
    handler = (request, response) => {
      const hop = Number(new URL(request.url ?? '', PLATFORM).searchParams.get('hop') ?? 0);
      if (hop < 3) response.writeHead(302, { location: `https://m.youtube.com/x?hop=${hop + 1}` }).end();
      else response.writeHead(200, JSON_TYPE).end('{}');
    };
    await expect(send('/x')).resolves.toMatchObject({ kind: 'ok' });
    handler = response(302, { location: '/again' });
    await expect(send('/x')).resolves.toMatchObject({ kind: 'unreadable' });
    expect(seen).toHaveLength(8);
  });

  it.each([
    'http://127.0.0.1:1/x',
    'https://example.org/',
    'http://www.youtube.com/',
    'file:///etc/passwd',
    'http://[',
  ])('does not follow a redirect to %s', async (location) => {
    handler = response(302, { location });
    await expect(send('/x')).resolves.toMatchObject({ kind: 'unreadable' });
    expect(seen).toHaveLength(1);
  });

  it('recognizes a refusal by the target of its redirect, and does not follow it', async () => {
    handler = response(302, { location: 'https://consent.youtube.com/m?continue=x' });
    await expect(send('/x')).resolves.toMatchObject({ kind: 'blocked', reason: 'consent' });
    handler = response(302, { location: 'https://www.google.com/sorry/index?continue=x' });
    await expect(send('/x')).resolves.toMatchObject({ kind: 'blocked', reason: 'captcha' });
    expect(seen).toHaveLength(2);
  });

  it('sends nothing to a URL that is not the platform’s', async () => {
    handler = response(200, JSON_TYPE, '{}');
    for (const url of [
      'https://example.org/api/timedtext',
      'http://www.youtube.com/',
      'https://www.youtube.com:444/',
    ]) {
      await expect(sendTo(new URL(url), { signal: new AbortController().signal })).resolves.toMatchObject({
        kind: 'unreadable',
      });
    }
    expect(seen).toEqual([]);
  });

  it('keeps a hundred requests of one caller within the limit', async () => {
    let open = 0;
    let most = 0;
    handler = (_request, response) => {
      most = Math.max(most, ++open);
      setImmediate(() => {
        open -= 1;
        response.writeHead(200, JSON_TYPE).end('{}');
      });
    };
    const { signal } = new AbortController();
    const answers = await Promise.all(Array.from({ length: 100 }, () => send('/x', { signal })));
    expect(answers.every(({ kind }) => kind === 'ok')).toBe(true);
    expect(most).toBeLessThanOrEqual(2);
  });
});

describe('a request through an egress that was refused', () => {
  function refusing(kind: 'player' | 'captions') {
    const clock = { nowMs: 0 };
    const egress = direct(() => clock.nowMs);
    const metrics = { request: () => undefined };
    const options = { limiter, baseUrl: new URL(origin), timeoutMs: 5_000, bodyBytesMax: 1_000_000, metrics };
    const pipeline = new RequestPipeline(options);
    const context = { signal: new AbortController().signal, deadlineAtMs: performance.now() + 60_000, fairnessKey: {} };
    const send = (subject = 'a video') => {
      const scope = { egress, subject, context, budget: new RetryBudget(0) };
      const outgoing = { url: new URL('/x', PLATFORM), headers: {} };
      const sent = pipeline.text({ kind, client: 'ANDROID', scope, outgoing });
      return sent.finally(() => egress.controls[kind].leave(scope));
    };
    return { send, control: egress.controls[kind], clock };
  }

  it.each(['player', 'captions'] as const)('is sent after the pause only: %s', async (kind) => {
    const { send, control, clock } = refusing(kind);
    handler = response(429, { 'retry-after': '60' });
    await expect(send()).resolves.toMatchObject({ kind: 'blocked', reason: 'too-many-requests' });
    await expect(send()).resolves.toEqual({ kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: 60 });
    expect(seen).toHaveLength(1);
    handler = response(200, JSON_TYPE, '{}');
    clock.nowMs += 60_000;
    await expect(send()).resolves.toMatchObject({ kind: 'ok' });
    expect(control.open).toBe(true);
  });

  it('renews the pause when it is refused', async () => {
    const { send, control, clock } = refusing('captions');
    handler = response(429, {});
    await send();
    clock.nowMs += 30_000;
    await send();
    expect([seen.length, control.pauseRemainingMs]).toEqual([2, 60_000]);
  });

  it.each([
    ['an empty text', 200, ''],
    ['a 403', 403, '{}'],
  ])('is not paused by %s of one video', async (_case, status, body) => {
    const { send, control } = refusing('captions');
    handler = response(status, JSON_TYPE, body);
    await send();
    expect(control.paused).toBe(false);
  });

  it('of five videos in a row whose texts are empty is paused', async () => {
    const { send, control } = refusing('captions');
    handler = response(200, JSON_TYPE, '');
    for (const video of ['a', 'b', 'c', 'd', 'd', 'd']) await send(video);
    expect(control.paused).toBe(false);
    await send('e');
    expect(control.paused).toBe(true);
  });
});
