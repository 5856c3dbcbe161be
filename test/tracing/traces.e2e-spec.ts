import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ClientProxyFactory, Transport } from '@nestjs/microservices';
import { request } from '../messages/message-client.js';
import { refuseSecrets } from '../harness/plaintext-keys.js';
import { Program } from '../process/program.js';
import { startService, type TestService } from '../harness/service.js';
import { Collector, type ReceivedSpan } from './collector.js';

const SERVER = 2;

// The programs of these tests share its database and fake YouTube, so its keys are valid there.
let home: TestService;
beforeAll(async () => {
  home = await startService();
});
afterAll(() => home.close());

const programs: Program[] = [];
const collectors: Collector[] = [];
afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.stop()));
  await Promise.all(collectors.splice(0).map((collector) => collector.close()));
  home.fakeYoutube.reset();
});

async function collector(status?: number): Promise<Collector> {
  const started = await Collector.start(status);
  collectors.push(started);
  return started;
}

function traced(endpoint: string, variables: Record<string, string> = {}): Program {
  const program = Program.run('main.js', {
    DATABASE_URL: home.databaseUrl,
    YOUTUBE_BASE_URL: home.fakeYoutube.url,
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    ...variables,
  });
  programs.push(program);
  return program;
}

const parent = (): { traceId: string; spanId: string } => ({
  traceId: randomBytes(16).toString('hex'),
  spanId: randomBytes(8).toString('hex'),
});

const named = (spans: ReceivedSpan[], name: string): ReceivedSpan[] => spans.filter((span) => span.name === name);

function only<T>(list: T[]): T {
  expect(list).toHaveLength(1);
  return list[0] as T;
}

describe('with a collector,', () => {
  const [ADMIN_TOKEN, METRICS_TOKEN] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
  const [called, unsampled, sampled, failing, probing] = [parent(), parent(), parent(), parent(), parent()];
  const traceparent = ({ traceId, spanId }: typeof called, flags = '01'): string => `00-${traceId}-${spanId}-${flags}`;

  let to: Collector;
  let service: Program;
  let url: string;
  let key: string;

  const send = (path: string, headers: Record<string, string>, method = 'GET'): Promise<Response> =>
    fetch(url + path, { method, headers: { Authorization: `Bearer ${key}`, ...headers } });
  const spansOf = ({ traceId }: typeof called): ReceivedSpan[] => to.spans.filter((span) => span.traceId === traceId);

  // One process for all tests of this block, since the spans are complete only when it has ended.
  beforeAll(async () => {
    to = await collector();
    service = traced(to.url, {
      MESSAGE_TRANSPORT: 'tcp',
      MESSAGE_PORT: '0',
      UPSTREAM_RETRIES: '0',
      ADMIN_TOKEN,
      METRICS_TOKEN,
      OTEL_SERVICE_NAME: 'transcripts-test',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    });
    ({ key } = await home.organization());
    url = await service.url();
    const response = await send('/channels/@fogsignalradio/transcripts?limit=3', { traceparent: traceparent(called) });
    expect(((await response.json()) as { summary: unknown }).summary).toMatchObject({ total: 3, fetched: 3 });
    expect((await send('/usage', { traceparent: traceparent(unsampled, '00') })).status).toBe(200);
    expect((await send('/usage', { traceparent: traceparent(sampled) })).status).toBe(200);
    expect((await send('/health/ready', { traceparent: traceparent(probing) })).status).toBe(200);
    await sendMessages();
    await sendMisplacedSecrets();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });

  async function sendMessages(): Promise<void> {
    const port = /"url":"tcp:\/\/127\.0\.0\.1:(\d+)"/.exec(service.stdout)?.[1];
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port: Number(port) } });
    expect((await request(client, { apiKey: key, id: '@tidewater', limit: 2 })).error).toBeUndefined();
    expect((await request(client, { apiKey: key, id: 'not a channel!' })).error).toBeDefined();
    await client.close();
  }

  const wrongPlaces = (): string[] => [
    `ctk%255F${key.slice(4)}`,
    ADMIN_TOKEN,
    `%2${ADMIN_TOKEN}`,
    METRICS_TOKEN,
    `${'x'.repeat(260)}/${METRICS_TOKEN}`,
  ];

  async function sendMisplacedSecrets(): Promise<void> {
    const headers = { traceparent: traceparent(failing) };
    await send(`/channels/${key}/transcripts`, headers);
    await send(`/nothing/${key}?key=${key}`, headers, 'POST');
    for (const text of wrongPlaces()) await send(`/${text}`, headers, 'PUT');
  }

  it('a call with a traceparent continues the trace of its caller: the request, its preparation, each fetch, the settlement', () => {
    const spans = spansOf(called);
    const server = only(named(spans, 'GET /channels/:id/transcripts'));
    expect(server).toMatchObject({ kind: SERVER, parentSpanId: called.spanId, failed: false });
    expect(server.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.route': '/channels/:id/transcripts',
      'http.response.status_code': 200,
      'url.path': '/channels/@fogsignalradio/transcripts',
      'url.scheme': 'http',
    });
    const prepare = only(named(spans, 'transcripts.prepare'));
    const settle = only(named(spans, 'quota.settle'));
    const fetches = named(spans, 'transcripts.fetch');
    expect(fetches).toHaveLength(3);
    for (const span of [prepare, settle, ...fetches]) expect(span.parentSpanId).toBe(server.spanId);
    for (const { attributes } of fetches) {
      expect(attributes).toMatchObject({ 'transcripts.outcome': 'ok', 'transcripts.own': true });
    }
    expect(settle.attributes).toMatchObject({ 'quota.fetched': 3, 'quota.attempt': 1 });
    expect(server.resource).toMatchObject({
      'service.name': 'transcripts-test',
      'deployment.environment.name': 'test',
    });
    // Every span has a parent in the trace.
    const ids = new Set([called.spanId, ...spans.map(({ spanId }) => spanId)]);
    expect(spans.filter(({ parentSpanId }) => !ids.has(parentSpanId ?? ''))).toEqual([]);

    const line = service.stdout.split('\n').find((one) => one.includes('"event":"request"'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ traceId: called.traceId });
  });

  it('a call is not exported when its caller does not sample it, nor is a probe', () => {
    expect([spansOf(sampled).length > 0, spansOf(unsampled), spansOf(probing)]).toEqual([true, [], []]);
  });

  it('a message has a trace', () => {
    const [first, refused] = named(to.spans, 'process channels.transcripts');
    expect(first).toMatchObject({ kind: SERVER, failed: false });
    expect(refused).toMatchObject({ failed: true, attributes: { 'error.type': 'channel_not_found' } });
    const prepared = to.spans.filter(({ parentSpanId }) => parentSpanId === first?.spanId).map(({ name }) => name);
    expect(prepared).toEqual(expect.arrayContaining(['transcripts.prepare', 'transcripts.fetch', 'quota.settle']));
  });

  it('traces report the error code of a failed call, and contain no misplaced key or token', () => {
    const spans = spansOf(failing);
    const refused = only(named(spans, 'transcripts.prepare'));
    expect(refused).toMatchObject({ failed: true, attributes: { 'error.type': 'channel_not_found' } });
    // An error of the caller is not recorded as a failure of the service.
    const call = only(named(spans, 'GET /channels/:id/transcripts'));
    expect(call).toMatchObject({ failed: false, attributes: { 'http.response.status_code': 404 } });
    expect(only(named(spans, 'POST')).attributes['http.response.status_code']).toBe(404);
    expect(named(spans, 'PUT')).toHaveLength(wrongPlaces().length);
    const secrets = [key.slice(10), ...[ADMIN_TOKEN, METRICS_TOKEN].map((token) => token.slice(0, 20))];
    for (const text of [to.text, service.stdout]) {
      for (const secret of secrets) expect(text).not.toContain(secret);
    }
    refuseSecrets({ spans: to.text });
  });
});

describe('traces', () => {
  it('affect neither calls nor shutdown when the collector cannot be reached or refuses them', async () => {
    const refusing = await collector(400);
    const endpoints = ['http://127.0.0.1:1', refusing.url];
    // Concurrently, since the shutdown waits for a collector that cannot be reached.
    await Promise.all(endpoints.map(callAndStop));
  });
});

async function callAndStop(endpoint: string): Promise<void> {
  const service = traced(endpoint, { OTEL_BSP_SCHEDULE_DELAY: '50' });
  const { key } = await home.organization();
  const url = await service.url();
  const answer = await fetch(`${url}/channels/@tidewater/transcripts?limit=2`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  expect([endpoint, answer.status]).toEqual([endpoint, 200]);
  await answer.text();
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  expect(service.stdout).toContain('"event":"traces_not_sent"');
}
