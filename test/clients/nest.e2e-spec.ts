import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ChannelTranscripts,
  ChannelTranscriptsHealthIndicator,
  ChannelTranscriptsModule,
  ChannelTranscriptsTestingModule,
  isChannelTranscriptsError,
  type ChannelTranscriptsOptions,
} from '@channel-transcripts/nest';
import { ChannelTranscriptsClient } from '@channel-transcripts/client';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { context, trace } from '@opentelemetry/api';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { messageUrl } from '../messages/message-client.js';
import { NatsBroker, natsIsInstalled } from '../messages/nats-broker.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

const TRANSPORTS = ['http', 'tcp', ...(natsIsInstalled ? (['nats'] as const) : [])] as const;
type Transport = (typeof TRANSPORTS)[number];

const byId = (results: { videoId: string }[]): string[] => results.map(({ videoId }) => videoId).sort();

describe.each(TRANSPORTS)('ChannelTranscriptsModule over %s', (transport: Transport) => {
  let broker: NatsBroker | undefined;
  let service: TestService;
  let program: INestApplicationContext;
  let transcripts: ChannelTranscripts;
  let key: string;

  const optionsOf = (apiKey: string): ChannelTranscriptsOptions => {
    if (transport === 'http') return { transport, baseUrl: service.url, apiKey, retries: 0 };
    const url = messageUrl(service);
    return transport === 'tcp'
      ? { transport, apiKey, connection: { host: url.hostname, port: Number(url.port) } }
      : { transport, apiKey, connection: { servers: [url.host] } };
  };
  const start = (apiKey: string): Promise<INestApplicationContext> => startWith(optionsOf(apiKey));
  const startWith = (options: ChannelTranscriptsOptions): Promise<INestApplicationContext> => {
    const module = ChannelTranscriptsModule.registerAsync({ useFactory: () => options });
    // Not a testing module: it would also silence the log of the service, which runs in this process.
    return NestFactory.createApplicationContext({
      module: class Program {},
      imports: [module, TerminusModule.forRoot({ logger: false })],
    });
  };

  beforeAll(async () => {
    new NodeTracerProvider().register();
    broker = transport === 'nats' ? await NatsBroker.start() : undefined;
    service = await startService({
      environment: {
        ...(transport !== 'http' && { MESSAGE_TRANSPORT: transport }),
        MESSAGE_PORT: 0,
        NATS_URL: broker && [broker.url],
      },
    });
    ({ key } = await service.organization());
    program = await start(key);
    transcripts = program.get(ChannelTranscripts);
  });
  afterAll(async () => {
    await program.close();
    await broker?.close();
    trace.disable();
    context.disable();
  });

  it('returns what HTTP returns', async () => {
    const { body } = await service.get('/channels/@harbourlight/transcripts?limit=5&languages=en', key);
    const channel = await transcripts.transcripts('@harbourlight', { limit: 5, languages: ['en'] });
    expect([channel.channel, byId(channel.results)]).toEqual([
      body.channel,
      byId(body.results as { videoId: string }[]),
    ]);
    expect(channel.summary).toMatchObject({ total: 5, succeeded: body.summary.succeeded, fetched: 0 });
    const { playlist, results } = await transcripts.playlist(SATURDAY.id, { limit: 2 });
    expect([playlist.id, results.length]).toEqual([SATURDAY.id, 2]);
    expect(byId((await transcripts.videos(['tw-chowder_', 'tw-bread___'])).results)).toEqual([
      'tw-bread___',
      'tw-chowder_',
    ]);
    expect(await transcripts.video('tw-chowder_')).toMatchObject({ videoId: 'tw-chowder_', ok: true, cached: true });
    const uploads = await service.get('/channels/@tidewater/uploads?limit=3', key);
    expect(await transcripts.uploads('@tidewater', { limit: 3 })).toEqual(uploads.body);
  });

  it('follows a subscription', async () => {
    const client = new ChannelTranscriptsClient({ baseUrl: service.url, apiKey: key });
    const { id } = await client.subscriptions.create('@3-videos-no-74', { start: 2 });
    const leaving = new AbortController();
    const page = () => service.get(`/subscriptions/${id}/results`, key);
    await until(async () => ((await page()).body.results as unknown[]).length === 2);
    const feed = transcripts.subscriptions.follow(id, { signal: leaving.signal });
    const entries = [(await feed.next()).value, (await feed.next()).value];
    expect(entries.map(({ cursor, ok }) => [cursor, ok])).toEqual([
      [expect.stringMatching(/^1\./), true],
      [expect.stringMatching(/^2\./), true],
    ]);
    const [first] = entries;
    const all = transcripts.subscriptions.feed({ signal: leaving.signal });
    expect((await all.next()).value).toMatchObject({ videoId: first?.videoId, subscriptionId: id, labels: {} });
    await all.return(undefined as never);
    const waiting = feed.next();
    leaving.abort();
    await expect(waiting).rejects.toThrow(/abort/i);
  });

  it('yields each event as it arrives', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const events = transcripts.events('@2-videos-no-72');
    expect(await events.next()).toMatchObject({ value: { type: 'channel', channel: { handle: '@2-videos-no-72' } } });
    await hold.arrived;
    hold.release();
    const types = [];
    for await (const { type } of events) types.push(type);
    expect(types).toEqual(['result', 'result', 'summary']);
    service.fakeYoutube.reset();
  });

  it('throws a refusal with its code, and fields of that code', async () => {
    const poor = await start((await service.organization({ monthlyLimit: 1 })).key);
    const requestId = `estate-${transport}`;
    const call = poor.get(ChannelTranscripts).transcripts('@fogsignalradio', { limit: 3, requestId });
    const thrown: unknown = await call.catch((error: unknown) => error);
    if (!isChannelTranscriptsError(thrown) || thrown.code !== 'plan_limit_exceeded') throw thrown;
    expect([thrown.fields.limit, thrown.fields.required, thrown.requestId]).toEqual([1, 3, requestId]);
    expect(thrown.status).toBe(transport === 'http' ? 402 : undefined);
    await poor.close();
  });

  it('asks its provider for another credential when the service refuses one, and repeats the call', async () => {
    const credentials = ['ctk_wrong', key];
    let given = 0;
    const token = (): Promise<string> => Promise.resolve(credentials[given++] ?? '');
    const options = optionsOf(key);
    delete options.apiKey;
    const renewing = await startWith({ ...options, token });
    const { uploads } = await renewing.get(ChannelTranscripts).uploads('@tidewater', { limit: 1 });
    expect([uploads.length, given]).toEqual([1, 2]);
    await renewing.close();
  });

  it('ends a call whose signal aborts', async () => {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const leaving = new AbortController();
    const call = transcripts.transcripts('@2-videos-no-73', { signal: leaving.signal });
    await hold.arrived;
    leaving.abort();
    await expect(call).rejects.toThrow(/abort/i);
    hold.release();
    service.fakeYoutube.reset();
  });

  it('passes the trace context on', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const span = trace.setSpanContext(context.active(), { traceId, spanId: 'b7ad6b7169203331', traceFlags: 1 });
    await context.with(span, () => transcripts.uploads('@tidewater', { limit: 1, requestId: `traced-${transport}` }));
    const line = () => service.logs.find((log) => log.includes(`"requestId":"traced-${transport}"`));
    await until(() => line() !== undefined);
    expect(JSON.parse(line() ?? '{}')).toMatchObject({ traceId });
  });

  it('tells Terminus whether the service is ready', async () => {
    const indicator = program.get(ChannelTranscriptsHealthIndicator);
    const health = program.get(HealthCheckService);
    const check = () => health.check([() => indicator.isHealthy('transcripts')]);
    expect(await check()).toMatchObject({ status: 'ok', info: { transcripts: { status: 'up' } } });
    const stranger = await start('ctk_wrong');
    // The state that HTTP reports needs no key.
    const expected = transport === 'http' ? { status: 'up' } : { status: 'down', reason: 'invalid_api_key' };
    expect(await stranger.get(ChannelTranscriptsHealthIndicator).isHealthy('x')).toEqual({ x: expected });
    await stranger.close();
    await service.close();
    await expect(check()).rejects.toMatchObject({ response: { error: { transcripts: { status: 'down' } } } });
  });
});

describe('ChannelTranscriptsModule', () => {
  it('refuses options with an unknown transport', async () => {
    const module = ChannelTranscriptsModule.register({ transport: 'udp' } as unknown as ChannelTranscriptsOptions);
    const compiled = Test.createTestingModule({ imports: [module] }).compile();
    await expect(compiled).rejects.toThrow('transport must be http, tcp or nats, but is udp.');
  });
});

describe('ChannelTranscriptsTestingModule', () => {
  it('answers what the test says, and names what it does not', async () => {
    const module = ChannelTranscriptsTestingModule.register(
      { uploads: (channel) => Promise.reject(new Error(`no ${channel}`)) },
      'maintenance',
    );
    const program = await Test.createTestingModule({ imports: [module] }).compile();
    const transcripts = program.get(ChannelTranscripts);
    await expect(transcripts.uploads('@tidewater')).rejects.toThrow('no @tidewater');
    await expect(transcripts.video('tw-chowder_')).rejects.toThrow('The test has no answer for video()');
    await expect(transcripts.events('@tidewater').next()).rejects.toThrow('The test has no answer for events()');
    const health = await program.get(ChannelTranscriptsHealthIndicator).isHealthy('transcripts');
    expect(health).toEqual({ transcripts: { status: 'down', reason: 'maintenance' } });
  });
});
