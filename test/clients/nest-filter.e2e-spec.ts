import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ChannelTranscripts,
  ChannelTranscriptsError,
  ChannelTranscriptsExceptionFilter,
  ChannelTranscriptsModule,
  type ChannelTranscriptsOptions,
} from '@channel-transcripts/nest';
import {
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
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { EMPTY, lastValueFrom } from 'rxjs';
import { ERRORS } from '../../src/domain/error-codes.js';
import { freePort } from '../harness/free-port.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';

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

describe('ChannelTranscriptsExceptionFilter', () => {
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
