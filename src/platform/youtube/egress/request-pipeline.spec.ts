import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import { newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { Environment } from '../../../config/environment.js';
import type { ReadingContext } from '../../video-platform.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import type { OutgoingRequest } from './http-transport.js';
import { RequestPipeline } from './request-pipeline.js';
import { RequestQueue } from './request-queue.js';

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

/** Sends a request to the platform, whose place the server takes. */
function send(
  path = '/youtubei/v1/player',
  choices: Partial<OutgoingRequest> = {},
  caller: Partial<ReadingContext> = {},
) {
  const environment = Object.assign(new Environment(), { YOUTUBE_BASE_URL: origin });
  const metrics = new UpstreamMetrics(new Registry(), limiter, environment);
  const scope = newScope(caller, { ...nextEgress(), dispatcher: agent });
  const outgoing = { url: new URL(path, PLATFORM), headers: { 'x-test': '1' }, ...choices };
  const request = { kind: 'visitor', client: 'VISIONOS', scope, outgoing };
  return new RequestPipeline(environment, limiter, metrics).send(request);
}

const response =
  (status: number, headers: Record<string, string>, body: string | Buffer = ''): Handler =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);

describe('RequestPipeline', () => {
  it('sends a POST with a body and a GET without one, with the cookie that avoids the consent page', async () => {
    handler = response(200, JSON_TYPE, '{"a":1}');
    await expect(send('/youtubei/v1/player', { body: '{}' })).resolves.toEqual({
      ...{ kind: 'ok', media: 'json', body: '{"a":1}', json: { a: 1 } },
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

  it('rejects with the reason of an abort and closes the connection', async () => {
    const leaving = new AbortController();
    const closed = new Promise<void>((resolve) => {
      handler = (_request, response) => {
        response.on('close', () => resolve());
        response.writeHead(200, JSON_TYPE).write('{"a":', () => leaving.abort(new Error('left')));
      };
    });
    await expect(send('/x', {}, { signal: leaving.signal })).rejects.toThrow('left');
    await closed;
  });

  it.each([
    ['https://m.youtube.com/x', { kind: 'http-error', status: 302 }],
    ['http://127.0.0.1:1/x', { kind: 'http-error', status: 302 }],
    ['https://consent.youtube.com/m?continue=x', { kind: 'blocked', reason: 'consent' }],
    ['https://www.google.com/sorry/index?continue=x', { kind: 'blocked', reason: 'captcha' }],
  ])('does not follow a redirect to %s', async (location, result) => {
    handler = response(302, { location });
    await expect(send('/x')).resolves.toMatchObject(result);
    expect(seen).toHaveLength(1);
  });

  it('sends nothing to a URL that is not the platform’s', async () => {
    handler = response(200, JSON_TYPE, '{}');
    for (const url of [
      'https://example.org/api/timedtext',
      'http://www.youtube.com/',
      'https://www.youtube.com:444/',
    ]) {
      await expect(send(url)).resolves.toMatchObject({ kind: 'unreadable' });
    }
    expect(seen).toEqual([]);
  });
});
