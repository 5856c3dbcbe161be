import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ChannelTranscripts,
  ChannelTranscriptsHealthIndicator,
  ChannelTranscriptsModule,
  ChannelTranscriptsTestingModule,
  isChannelTranscriptsError,
  type ChannelTranscriptsOptions,
  ChannelTranscriptsError,
  ChannelTranscriptsExceptionFilter,
} from '@channel-transcripts/nest';
import { ChannelTranscriptsClient } from '@channel-transcripts/client';
import {
  type INestApplicationContext,
  ConsoleLogger,
  Controller,
  Get,
  Inject,
  Logger,
  Module,
  Param,
  Query,
  type INestApplication,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { context, trace } from '@opentelemetry/api';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { EMPTY, lastValueFrom } from 'rxjs';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { messageUrl } from '../messages/message-client.js';
import { NatsBroker, natsIsInstalled } from '../messages/nats-broker.js';
import { startService, type TestService, type TestOrganization } from '../harness/service.js';
import { until } from '../harness/until.js';
import { ERRORS } from '../../src/domain/error-codes.js';
import { freePort } from '../harness/free-port.js';

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

describe('ChannelTranscriptsExceptionFilter', () => {
  /** About the program and its account, which are nothing that its callers may see. */
  const HIDDEN = [
    ...[
      'unauthorized',
      'invalid_api_key',
      'invalid_token',
      'plan_limit_exceeded',
      'feature_not_in_plan',
      'scope_missing',
    ],
    ...[
      'organization_not_linked',
      'client_blocked',
      'admin_role_required',
      'not_found',
      'method_not_allowed',
      'internal_error',
    ],
  ];

  const NOT_AVAILABLE = {
    statusCode: 502,
    code: 'transcripts_unavailable',
    message: 'Transcripts are not available.',
    retryable: false,
  };

  const NO_RESPONSE = {
    status: 502,
    retryAfter: null,
    body: {
      statusCode: 502,
      code: 'no_response',
      message: 'Transcripts are not available at the moment.',
      retryable: true,
    },
  };

  @Controller()
  class Estate {
    constructor(@Inject(ChannelTranscripts) private readonly transcripts: ChannelTranscripts) {}

    @Get('channels/:id')
    channel(@Param('id') id: string, @Query('limit') limit: string): Promise<unknown> {
      return this.transcripts.transcripts(id, { limit: Number(limit) });
    }

    @Get('codes/:code')
    throwOf(@Param('code') code: string): never {
      throw new ChannelTranscriptsError('Internals.', undefined, code, true, 'r', 7, { limit: 5000 });
    }
  }
  let service: TestService;
  let poor: TestOrganization;
  let program: INestApplication;
  let url: string;
  let apiKey: string;
  let token: () => Promise<{ token: string; expiresAt: Date }>;

  beforeAll(async () => {
    service = await startService();
    poor = await service.organization({ monthlyLimit: 1 });
    apiKey = poor.key;
    token = () => Promise.resolve({ token: apiKey, expiresAt: new Date(0) });
    ({ program, url } = await estate({ transport: 'http', baseUrl: service.url, retries: 0, token: () => token() }));
  });

  afterAll(async () => {
    await program.close();
    await service.close();
    // Of the process, which runs other tests.
    Logger.overrideLogger(new ConsoleLogger());
  });

  /** Starts a program that uses the service. */
  async function estate(options: ChannelTranscriptsOptions): Promise<{ program: INestApplication; url: string }> {
    @Module({ imports: [ChannelTranscriptsModule.register(options)], controllers: [Estate] })
    class Program {}
    const started = await NestFactory.create(Program, { logger: false });
    started.useGlobalFilters(new ChannelTranscriptsExceptionFilter());
    await started.listen(0, '127.0.0.1');
    const server: Server = started.getHttpServer();
    return { program: started, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  }

  async function get(path: string, base = url): Promise<{ status: number; retryAfter: string | null; body: unknown }> {
    const response = await fetch(base + path);
    return { status: response.status, retryAfter: response.headers.get('Retry-After'), body: await response.json() };
  }

  it('answers what is about the request as the service does', async () => {
    const message = expect.stringMatching(/^Channel not found/) as unknown;
    expect(await get('/channels/@no-such-channel?limit=1')).toEqual({
      status: 404,
      retryAfter: null,
      body: { statusCode: 404, code: 'channel_not_found', message, retryable: false },
    });
    const { status, body } = await get('/channels/@tidewater?limit=0');
    expect([status, body]).toMatchObject([400, { code: 'invalid_request', details: [{ field: 'limit' }] }]);
  });

  it('hides what is about the program: its credential, plan and quota', async () => {
    const expected = { status: 502, retryAfter: null, body: NOT_AVAILABLE };
    expect(await get('/channels/@fogsignalradio?limit=3')).toEqual(expected);
    apiKey = (await service.organization({ plan: 'free' })).key;
    expect(await get('/channels/@tidewater?limit=1')).toEqual(expected);
    apiKey = 'ctk_wrong';
    expect(await get('/channels/@tidewater?limit=1')).toEqual(expected);
    apiKey = poor.key;
  });

  it('keeps status, code and Retry-After of failures and limits that pass, without their message', async () => {
    for (const [code, status] of Object.entries({ rate_limited: 429, upstream_blocked: 502, upstream_busy: 503 })) {
      const message = 'Transcripts are not available at the moment.';
      const body = { statusCode: status, code, message, retryable: true };
      expect(await get(`/codes/${code}`)).toEqual({ status, retryAfter: '7', body });
    }
  });

  it.each(['http', 'tcp'] as const)('answers 502 when the service cannot be reached over %s', async (transport) => {
    const port = await freePort();
    const options = { baseUrl: `http://127.0.0.1:${port}`, connection: { host: '127.0.0.1', port }, apiKey: 'ctk_x' };
    const lonely = await estate({ ...options, transport, retries: 0 });
    expect(await get('/channels/@tidewater?limit=1', lonely.url)).toEqual(NO_RESPONSE);
    await lonely.program.close();
  });

  it('answers 502 with Retry-After when a proxy responds with a failure that passes, and hides its other pages', async () => {
    let page = 503;
    const proxy = createServer((_, response) => {
      response.writeHead(page, { 'Content-Type': 'text/html', 'Retry-After': '7' }).end('<h1>A proxy</h1>');
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const baseUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const behind = await estate({ transport: 'http', baseUrl, apiKey: 'ctk_x', retries: 0 });
    const passing = { ...NO_RESPONSE, retryAfter: '7', body: { ...NO_RESPONSE.body, code: 'unexpected_response' } };
    for (page of [429, 500, 502, 503, 504])
      expect([page, await get('/channels/@tidewater?limit=1', behind.url)]).toEqual([page, passing]);
    const hidden = { status: 502, retryAfter: null, body: NOT_AVAILABLE };
    for (page of [401, 403, 404])
      expect([page, await get('/channels/@tidewater?limit=1', behind.url)]).toEqual([page, hidden]);
    await behind.program.close();
    proxy.close();
  });

  it('answers 502 when there is no token', async () => {
    const given = token;
    token = () => Promise.reject(new Error('The provider is down.'));
    expect(await get('/channels/@tidewater?limit=1')).toEqual(NO_RESPONSE);
    token = given;
  });

  it('decides for every code of the service, with its status there', async () => {
    for (const [code, { status }] of Object.entries(ERRORS)) {
      const answer = await get(`/codes/${code}`);
      if (HIDDEN.includes(code)) expect([code, answer.body]).toEqual([code, NOT_AVAILABLE]);
      else expect([code, answer.status, answer.body]).toMatchObject([code, status, { code }]);
    }
    expect((await get('/codes/added_later')).body).toEqual(NOT_AVAILABLE);
  });

  it.each(['rpc', 'graphql', 'ws'])('leaves errors to programs that answer otherwise, such as by %s', async (type) => {
    const host = new ExecutionContextHost([]);
    host.setType(type);
    const error = new ChannelTranscriptsError('Internals.', undefined, 'channel_not_found', false, 'r', undefined, {});
    const filter = new ChannelTranscriptsExceptionFilter();
    if (type === 'rpc') await expect(lastValueFrom(filter.catch(error, host) ?? EMPTY)).rejects.toBe(error);
    else expect(() => filter.catch(error, host)).toThrow(error);
  });
});
