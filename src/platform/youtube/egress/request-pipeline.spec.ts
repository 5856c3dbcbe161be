import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import { newPool, newScope, nextEgress, newContext } from '../../../../test/youtube/egresses.js';
import { Environment } from '../../../config/environment.js';
import type { ReadingContext } from '../../video-platform.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { Attempt, RetryBudget } from './attempt.js';
import type { Egress } from './egress.js';
import type { OutgoingRequest } from './http-transport.js';
import { RequestPipeline, REAL_RETRY_ENVIRONMENT, withRetries } from './request-pipeline.js';
import { RequestQueue } from './request-queue.js';
import type { UpstreamResponse } from './upstream-response.js';

Logger.overrideLogger(false);

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const JSON_TYPE = { 'content-type': 'application/json' };
const PLATFORM = 'https://www.youtube.com';

let server: Server;
let handler: Handler;
let seen: { url: string; headers: IncomingMessage['headers']; body: string }[];
let agent: Agent;
let queue: RequestQueue;
let egress: Egress;
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
  queue = new RequestQueue(2);
  egress = { ...nextEgress(newPool(0, { queue })), dispatcher: agent };
});

afterEach(async () => {
  // Every slot is released, whatever the result of the request.
  expect([queue.running, queue.queued]).toEqual([0, 0]);
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
  const outgoing = { url: new URL(path, PLATFORM), headers: { 'x-test': '1' }, ...choices };
  return newPipeline().send({ kind: 'visitor', client: 'VISIONOS', scope: newScope(caller, egress), outgoing });
}

function newPipeline() {
  const environment = Object.assign(new Environment(), { YOUTUBE_BASE_URL: origin });
  return new RequestPipeline(environment, queue, new UpstreamMetrics(new Registry(), queue));
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
      json: { a: 1 },
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

describe('what a response says about the address', () => {
  const TOO_MANY = response(429, { ...JSON_TYPE, 'retry-after': '90' }, '{}');

  /** Sends requests of these kinds, one after the other. */
  async function sendEach(kinds: readonly string[], role: Attempt['role'] = 'wanted', through = egress) {
    const pipeline = newPipeline();
    const results: UpstreamResponse[] = [];
    for (const kind of kinds) {
      const scope = { ...newScope({}, through), attempt: new Attempt('a', role) };
      const outgoing = { url: new URL('/youtubei/v1/x', PLATFORM), headers: {} };
      results.push(await pipeline.send({ kind, client: 'WEB', scope, outgoing }));
    }
    return results;
  }
  const paused = ({ uses }: Egress) => [uses.channel.line.refusedKind, uses.video.line.refusedKind];

  it.each([
    ['player', [null, 'player']],
    ['captions', [null, 'captions']],
    ['uploads', ['list', null]],
    ['feed', [null, null]],
    ['player-script', [null, null]],
  ])('is in a 429 about requests of its kind only: %s', async (kind, kinds) => {
    handler = TOO_MANY;
    await sendEach([kind]);
    expect(paused(egress)).toEqual(kinds);
  });

  it('pauses for as long as the platform says, and sends nothing of the use meanwhile', async () => {
    handler = TOO_MANY;
    const results = await sendEach(['player', 'player', 'uploads']);
    expect(results.map((result) => result.kind === 'blocked' && [result.reason, result.retryAfterSeconds])).toEqual([
      ['too-many-requests', 90],
      ['exit-shut', 90],
      ['too-many-requests', 90],
    ]);
    expect(seen).toHaveLength(2);
  });

  it.each([
    ['a 403', response(403, JSON_TYPE, '{}')],
    ['an empty response', response(200, JSON_TYPE)],
    ['an error', response(500, JSON_TYPE, '{}')],
  ])('is nothing certain in %s', async (_, respond) => {
    handler = respond;
    await sendEach(['player', 'uploads']);
    expect(paused(egress)).toEqual([null, null]);
  });

  it('does not pause a gateway, whose sessions have an address each, or for a control', async () => {
    handler = TOO_MANY;
    await sendEach(['player'], 'wanted', { ...egress, gateway: {} });
    await sendEach(['player'], 'control');
    expect(paused(egress)).toEqual([null, null]);
  });

  it('touches nothing else when an optional request is refused, which is not sent again for a minute', async () => {
    handler = TOO_MANY;
    const results = await sendEach(['feed', 'feed', 'shorts', 'shorts'], 'optional');
    expect(results.map((result) => result.kind === 'blocked' && result.reason)).toEqual([
      'too-many-requests',
      'exit-shut',
      'too-many-requests',
      'exit-shut',
    ]);
    expect([seen.length, paused(egress)]).toEqual([2, [null, null]]);
  });

  it('answers doubts about lists with a list that is served, and those about videos by their content only', async () => {
    handler = response(200, JSON_TYPE, '{}');
    const sinceMs = performance.now();
    await sendEach(['player', 'uploads']);
    const isServed = (use: 'channel' | 'video', kind: 'list' | 'player') =>
      egress.uses[use].isServed({ kind, client: 'WEB', sinceMs });
    expect([isServed('channel', 'list'), isServed('video', 'player')]).toEqual([true, false]);
  });
});

const OK: UpstreamResponse = { kind: 'ok', media: 'json', body: '{}' };
const SERVER_ERROR: UpstreamResponse = { kind: 'http-error', status: 500, media: 'json' };

async function run(
  answers: readonly UpstreamResponse[],
  { retries = 2, deadlineAtMs = 10_000, random = 1, hasAlternative = false } = {},
) {
  const sleeps: number[] = [];
  let nowMs = 0;
  let attempts = 0;
  const response = await withRetries(
    () => Promise.resolve(answers[Math.min(attempts++, answers.length - 1)] ?? OK),
    new RetryBudget(retries),
    newContext({ deadlineAtMs }),
    hasAlternative,
    {
      random: () => random,
      now: () => nowMs,
      sleep: (ms) => {
        sleeps.push(ms);
        nowMs += ms;
        return Promise.resolve();
      },
    },
  );
  return { response, attempts, sleeps };
}

describe('withRetries', () => {
  it.each<[string, UpstreamResponse]>([
    ['a server error', SERVER_ERROR],
    ['a timeout', { kind: 'timeout' }],
    ['a broken connection', { kind: 'network', cause: null }],
    ['an answer cut short', { kind: 'unreadable', expected: 'whole JSON' }],
    ['an empty answer', { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null }],
  ])('%s is retried', async (_name, failureResponse) => {
    await expect(run([failureResponse, OK])).resolves.toMatchObject({ response: OK, attempts: 2 });
  });

  it.each<[string, UpstreamResponse]>([
    ['an answer', OK],
    ['400', { kind: 'http-error', status: 400, media: 'json' }],
    ['404', { kind: 'http-error', status: 404, media: 'json' }],
    ['a captcha page', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: null }],
    ['a 403', { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null }],
    ['a request that was not sent', { kind: 'busy', retryAfterSeconds: 1 }],
    ['429 with Retry-After', { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 1 }],
  ])('%s is final', async (_name, final) => {
    await expect(run([final])).resolves.toEqual({ response: final, attempts: 1, sleeps: [] });
  });

  it.each<[string, UpstreamResponse]>([
    ['a timeout', { kind: 'timeout' }],
    ['a broken connection', { kind: 'network', cause: null }],
    ['a page of another server', { kind: 'foreign-page' }],
    ['an error page', { kind: 'http-error', status: 502, media: 'html' }],
  ])('%s is retried through the same egress only when there is no other', async (_name, unreached) => {
    await expect(run([unreached, OK], { hasAlternative: true })).resolves.toMatchObject({
      response: unreached,
      attempts: 1,
    });
    await expect(run([unreached, OK])).resolves.toMatchObject({ response: OK, attempts: 2 });
  });

  it.each<[string, UpstreamResponse]>([
    ['a server error of the platform', SERVER_ERROR],
    ['an answer cut short', { kind: 'unreadable', expected: 'whole JSON' }],
  ])('%s is retried although another egress can be tried', async (_name, failure) => {
    await expect(run([failure, OK], { hasAlternative: true })).resolves.toMatchObject({ response: OK });
  });

  it('returns the last failure when the budget is exhausted', async () => {
    await expect(run([SERVER_ERROR])).resolves.toMatchObject({ response: SERVER_ERROR, attempts: 3 });
    await expect(run([SERVER_ERROR], { retries: 0 })).resolves.toMatchObject({ attempts: 1 });
  });

  it('waits up to 250 ms, then up to 500, 1,000, 2,000, and never more than 4,000', async () => {
    const { sleeps } = await run([SERVER_ERROR], { retries: 6, deadlineAtMs: 60_000 });
    expect(sleeps).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000]);
    expect((await run([SERVER_ERROR], { random: 0 })).sleeps).toEqual([0, 0]);
  });

  it('returns a failure immediately when the wait ends after the deadline', async () => {
    const result = await run([SERVER_ERROR], { deadlineAtMs: 200 });
    expect(result).toEqual({ response: SERVER_ERROR, attempts: 1, sleeps: [] });
  });

  it('rejects with the reason of an abort during the wait', async () => {
    const leaving = new AbortController();
    const context = newContext({ signal: leaving.signal, deadlineAtMs: Infinity });
    const environment = { ...REAL_RETRY_ENVIRONMENT, random: () => 1_000 };
    const running = withRetries(() => Promise.resolve(SERVER_ERROR), new RetryBudget(1), context, false, environment);
    setImmediate(() => leaving.abort(new Error('left')));
    await expect(running).rejects.toThrow('left');
  });
});
