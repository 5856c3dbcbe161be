import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ClientProxyFactory, Transport } from '@nestjs/microservices';
import { request } from '../messages/message-client.js';
import { refuseSecrets } from '../plaintext-keys.js';
import { Program } from '../process/program.js';
import { startService, type TestService } from '../service.js';
import { Collector, type ReceivedSpan } from './collector.js';

const SERVER = 2;
const CLIENT = 3;

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

describe('a call with a traceparent', () => {
  it('continues the trace of its caller: the request, its preparation, each fetch, the settlement, every query', async () => {
    const to = await collector();
    const service = traced(to.url);
    const { key } = await home.organization();
    const caller = parent();
    const url = await service.url();
    const response = await fetch(`${url}/channels/@fogsignalradio/transcripts?limit=3`, {
      headers: { Authorization: `Bearer ${key}`, traceparent: `00-${caller.traceId}-${caller.spanId}-01` },
    });
    expect(((await response.json()) as { summary: unknown }).summary).toMatchObject({ total: 3, fetched: 3 });
    expect(await service.stop()).toEqual({ code: 0, signal: null });

    const spans = to.spans.filter(({ traceId }) => traceId === caller.traceId);
    const server = only(named(spans, 'GET /channels/:id/transcripts'));
    expect(server).toMatchObject({ kind: SERVER, parentSpanId: caller.spanId, failed: false });
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

    const queries = spans.filter(({ kind }) => kind === CLIENT);
    const parents = new Set(queries.map(({ parentSpanId }) => parentSpanId));
    for (const { spanId } of [server, prepare, settle]) expect(parents).toContain(spanId);
    for (const query of queries) {
      expect(query.name).toBe(query.attributes['db.operation.name']);
      expect(query.attributes).toMatchObject({ 'db.system.name': 'postgresql', 'server.port': expect.anything() });
      expect(query.attributes['db.query.text']).toMatch(/\$1/);
    }
    expect(spans.every(({ resource }) => resource['service.name'] === 'channel-transcripts')).toBe(true);
    // Every span has a parent in the trace.
    const ids = new Set([caller.spanId, ...spans.map(({ spanId }) => spanId)]);
    expect(spans.filter(({ parentSpanId }) => !ids.has(parentSpanId ?? ''))).toEqual([]);

    const line = service.stdout.split('\n').find((one) => one.includes('"event":"request"'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ traceId: caller.traceId });
    refuseSecrets({ spans: to.text });
    expect(to.text).not.toContain(key.slice(10));
  });

  it('is not exported when its caller does not sample it', async () => {
    const to = await collector();
    const service = traced(to.url);
    const { key } = await home.organization();
    const url = await service.url();
    const call = (traceparent: string) =>
      fetch(`${url}/usage`, { headers: { Authorization: `Bearer ${key}`, traceparent } });
    const [off, on] = [parent(), parent()];
    expect((await call(`00-${off.traceId}-${off.spanId}-00`)).status).toBe(200);
    expect((await call(`00-${on.traceId}-${on.spanId}-01`)).status).toBe(200);
    await service.stop();
    const traces = new Set(to.spans.map(({ traceId }) => traceId));
    expect([traces.has(on.traceId), traces.has(off.traceId)]).toEqual([true, false]);
  });

  it('also continues the trace of a message', async () => {
    const to = await collector();
    const service = traced(to.url, { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: '0' });
    const { key } = await home.organization();
    await service.url();
    const port = /"url":"tcp:\/\/127\.0\.0\.1:(\d+)"/.exec(service.stdout)?.[1];
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port: Number(port) } });
    expect((await request(client, { apiKey: key, id: '@fogsignalradio', limit: 2 })).error).toBeUndefined();
    expect((await request(client, { apiKey: key, id: 'not a channel!' })).error).toBeDefined();
    await client.close();
    await service.stop();
    const [first, refused] = named(to.spans, 'process channels.transcripts');
    expect(first).toMatchObject({ kind: SERVER, failed: false });
    expect(refused).toMatchObject({ failed: true, attributes: { 'error.type': 'channel_not_found' } });
    const prepared = to.spans.filter(({ parentSpanId }) => parentSpanId === first?.spanId).map(({ name }) => name);
    expect(prepared).toEqual(expect.arrayContaining(['transcripts.prepare', 'transcripts.fetch', 'quota.settle']));
    refuseSecrets({ spans: to.text });
  });
});

describe('traces', () => {
  it('report the error code of a failed call, and contain no misplaced key or token', async () => {
    const to = await collector();
    const [ADMIN_TOKEN, METRICS_TOKEN] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
    const service = traced(to.url, { UPSTREAM_RETRIES: '0', ADMIN_TOKEN, METRICS_TOKEN });
    const { key } = await home.organization();
    const url = await service.url();
    await fetch(`${url}/channels/${key}/transcripts`, { headers: { Authorization: `Bearer ${key}` } });
    await fetch(`${url}/nothing/${key}?key=${key}`, { method: 'POST' });
    const wrongPlaces = [
      `ctk%255F${key.slice(4)}`,
      ADMIN_TOKEN,
      `%2${ADMIN_TOKEN}`,
      METRICS_TOKEN,
      `${'x'.repeat(260)}/${METRICS_TOKEN}`,
    ];
    for (const text of wrongPlaces) await fetch(`${url}/${text}`, { method: 'PUT' });
    await service.stop();
    const refused = only(named(to.spans, 'transcripts.prepare'));
    expect(refused).toMatchObject({ failed: true, attributes: { 'error.type': 'channel_not_found' } });
    // An error of the caller is not recorded as a failure of the service.
    const request = only(named(to.spans, 'GET /channels/:id/transcripts'));
    expect(request).toMatchObject({ failed: false, attributes: { 'http.response.status_code': 404 } });
    expect(only(named(to.spans, 'POST')).attributes['http.response.status_code']).toBe(404);
    expect(named(to.spans, 'PUT')).toHaveLength(wrongPlaces.length);
    const secrets = [key.slice(10), ...[ADMIN_TOKEN, METRICS_TOKEN].map((token) => token.slice(0, 20))];
    for (const text of [to.text, service.stdout]) {
      for (const secret of secrets) expect(text).not.toContain(secret);
    }
    refuseSecrets({ spans: to.text });
  });

  it('apply the standard OTEL_* variables for name, attributes and headers, and omit probes', async () => {
    const to = await collector();
    const service = traced(to.url, {
      OTEL_SERVICE_NAME: 'transcripts-eu',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-collector=yes',
    });
    const url = await service.url();
    await fetch(`${url}/health/ready`);
    await fetch(`${url}/docs-json`);
    await service.stop();
    expect(to.spans.map(({ attributes }) => attributes['url.path'])).toEqual(['/docs-json']);
    expect(only(to.spans).resource).toMatchObject({
      'service.name': 'transcripts-eu',
      'deployment.environment.name': 'test',
    });
    expect(to.headers[0]).toMatchObject({ 'x-collector': 'yes' });
  });

  it('are sampled according to OTEL_TRACES_SAMPLER', async () => {
    const to = await collector();
    const service = traced(to.url, { OTEL_TRACES_SAMPLER: 'always_off' });
    await fetch(`${await service.url()}/docs-json`);
    await service.stop();
    expect(to.spans).toEqual([]);
  });

  it.each([
    ['cannot be reached', () => Promise.resolve('http://127.0.0.1:1')],
    ['refuses them', async () => (await collector(400)).url],
  ])('affect neither calls nor shutdown when the collector %s', async (_name, endpoint) => {
    const service = traced(await endpoint(), { OTEL_BSP_SCHEDULE_DELAY: '50' });
    const { key } = await home.organization();
    const url = await service.url();
    const answer = await fetch(`${url}/channels/@tidewater/transcripts?limit=2`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    expect(answer.status).toBe(200);
    await answer.text();
    const beganAtMs = performance.now();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - beganAtMs).toBeLessThan(10_000);
    expect(service.stdout).toContain('"event":"traces_not_sent"');
  });
});
