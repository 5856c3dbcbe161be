import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  Get,
  Injectable,
  Module,
  Post,
  Query,
  UseGuards,
  type CanActivate,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { useMiddleware } from '../../src/bootstrap.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { Environment } from '../../src/config/environment.js';
import { HttpModule } from '../../src/http/http.module.js';
import { AllowsHead, AnyQuery, BodyBytesMax, Probe, Public, Reads } from '../../src/http/routes/route.decorators.js';
import { requiredScope, Routes } from '../../src/http/routes/routes.js';
import { Field } from '../../src/http/routes/field.js';
import { ShutdownState } from '../../src/http/server/connections.js';
import { createLogger, createRedactor } from '../../src/observability/logging/logger.js';
import { send, type HttpResponse } from '../harness/http-request.js';

describe('paths', () => {
  const ADMIN_TOKEN = 'an-admin-token-of-the-tests-5b90';
  let service: TestService;
  let organization: TestOrganization;
  let key: string;
  /** A path of every documented route, with a method and the required credential. */
  let routes: { path: string; method: string; token: string }[];

  beforeAll(async () => {
    service = await startService({
      environment: { ADMIN_TOKEN, CALLS_PER_KEY: 0, CALLS_PER_ORGANIZATION: 0, RATE_LIMIT_PER_MINUTE: 0 },
    });
    organization = await service.organization();
    ({ key } = organization);
    const { paths } = (await service.request('GET', '/docs-json')).body as { paths: Record<string, object> };
    routes = Object.entries(paths).map(([route, operations]) => ({
      path: route.replace('{id}', () => {
        if (route.startsWith('/channels/')) return '@tidewater';
        if (route.startsWith('/playlists/')) return 'UUtidewater_____________';
        if (route.startsWith('/videos/')) return 'tw-tea_____';
        return route.includes('/keys/{id}') ? organization.keyId : organization.id;
      }),
      method: Object.keys(operations)[0]?.toUpperCase() ?? '',
      token: route.startsWith('/admin') ? ADMIN_TOKEN : key,
    }));
  });
  afterAll(() => service.close());

  /** Sends a target byte for byte, which no client library would do, and gives the status and the error code. */
  async function request(
    method: string,
    target: string,
    token = '',
  ): Promise<[status: number, code: string | undefined]> {
    let [received, ended] = ['', false];
    const head = `${method} ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`;
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1', () => socket.write(head, 'latin1'));
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => (ended = true));
    await until(() => ended);
    return [Number(received.split(' ')[1]), /"error":\{"code":"([a-z_]+)"/.exec(received)?.[1]];
  }
  const encoded = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`;

  const first = (path: string, change: (letter: string) => string): string =>
    `/${change(path.charAt(1))}${path.slice(2)}`;
  const lastSlash = (path: string, to: string): string => path.replace(/\/([^/]*)$/, `${to}$1`);

  const SPELLINGS: [what: string, spell: (path: string) => string][] = [
    ['the first letter in upper case', (path) => first(path, (letter) => letter.toUpperCase())],
    ['the first letter percent-encoded', (path) => first(path, encoded)],
    ['the first letter percent-encoded twice', (path) => first(path, (letter) => encoded(letter).replace('%', '%25'))],
    ['a dot segment in front', (path) => `/.${path}`],
    ['a parent segment in front', (path) => `/x/..${path}`],
    ['an encoded parent segment in a whole URL', (path) => `http://127.0.0.1/x/%2e%2e${path}`],
    ['an encoded slash in front', (path) => `/%2f${path.slice(1)}`],
    ['a slash doubled inside', (path) => (path.lastIndexOf('/') > 0 ? lastSlash(path, '//') : `/${path}`)],
    ['a parent segment inside', (path) => lastSlash(path, '/x/../')],
    ['in upper case', (path) => path.toUpperCase()],
    ['a slash at the end', (path) => `${path}/`],
    ['an encoded slash at the end', (path) => `${path}%2F`],
    ['a dot at the end', (path) => `${path}.`],
    ['a parameter of a segment', (path) => `${path};a=b`],
    ['an encoded zero at the end', (path) => `${path}%00`],
    ['the last letter percent-encoded', (path) => path.slice(0, -1) + encoded(path.slice(-1))],
    ['a backslash at the end', (path) => `${path}\\`],
  ];

  describe('a route in an undocumented spelling', () => {
    it.each(SPELLINGS)('(%s) is not served, on every route', async (_what, spell) => {
      // An id may be percent-encoded; what else surrounds it is a part of it, which makes it unknown.
      const requested = routes.filter(
        ({ path }) => !path.includes(organization.id) && !path.includes(organization.keyId),
      );
      expect(requested.length).toBeGreaterThan(10);
      const pages = ['/docs', '/docs-json', '/docs/swagger-ui.css'].map((path) => ({ path, method: 'GET', token: '' }));
      for (const { path, method, token } of [...requested, ...pages]) {
        const [, code] = await request(method, spell(path), token);
        expect([spell(path), code]).toEqual([spell(path), expect.stringMatching(/not_found$|^method_not_allowed$/)]);
      }
    });

    it.each(['\t', '\f', '\xa0'])(
      '(%j at the end, which a URL parser would trim) is 400 on every route',
      async (end) => {
        for (const { path, method, token } of routes) {
          expect(await request(method, path + end, token)).toEqual([400, 'invalid_request']);
        }
      },
    );

    it('is not counted as a request of the route', async () => {
      await Promise.all(['/USAGE', '/usage/', '/%75sage'].map((path) => request('GET', path, key)));
      const { text } = await service.request('GET', '/metrics');
      expect(text).not.toMatch(/ct_http_requests_total\{[^}]*route="\/usage"[^}]*status="404"/);
    });
  });

  describe('a route in its documented spelling', () => {
    it('is found, on every route', async () => {
      for (const { path, token } of routes) {
        expect([path, ...(await request('TRACE', path, token))]).toEqual([path, 405, 'method_not_allowed']);
      }
    });

    it.each([
      '/channels/https://www.youtube.com/@tidewater/transcripts',
      '/channels/https:/www.youtube.com/@tidewater/transcripts',
      '/channels/https://www.youtube.com/@tidewater//transcripts',
      '/channels/www.youtube.com/@tidewater/videos/transcripts',
      '/channels/youtube.com/@tidewater/transcripts',
      '/channels/https%3A%2F%2Fwww.youtube.com%2F@tidewater/transcripts',
      '/channels/https%3A//www.youtube.com/%40tidewater/transcripts',
      '/channels/%74idewater/transcripts',
      'http://127.0.0.1/channels/@tidewater/transcripts',
      'https://elsewhere.example/channels/https://www.youtube.com/@tidewater/transcripts?limit=1',
    ])('%s leads to the channel', async (target) => {
      expect((await request('GET', target, key))[0]).toBe(200);
    });

    it.each(['http://127.0.0.1', 'http://127.0.0.1?x', 'http://a\\metrics', 'mailto:metrics', 'metrics', '?', '*'])(
      '%s does not match a route',
      async (target) => {
        expect([400, 404]).toContain((await request('GET', target))[0]);
      },
    );
  });

  describe('a path that is not served', () => {
    it.each([
      ['/Channels/@tidewater/transcripts', '/channels/{id}/transcripts'],
      ['/channel/@tidewater/transcripts', '/channels/{id}/transcripts'],
      ['/v1/channels/@tidewater/transcripts', '/channels/{id}/transcripts'],
      ['/Channels/https://www.youtube.com/@tidewater/transcripts?limit=1', '/channels/{id}/transcripts'],
      ['/usage/', '/usage'],
      ['/health/live/', '/health/live'],
      ['/docs/', '/docs'],
      ['/DOCS', '/docs'],
    ])('(%s) names the one that is meant, as the document has it', async (path, meant) => {
      const { status, body } = await service.request('GET', path);
      const message = `Not found. Did you mean ${meant}? See /docs for the available endpoints.`;
      expect([status, body.error]).toEqual([404, expect.objectContaining({ code: 'not_found', message })]);
    });

    it('names none without one, and repeats nothing of it', async () => {
      const { body } = await service.request('GET', `/${key}/wp-login.php`);
      expect(body.error.message).toBe('Not found. See /docs for the available endpoints.');
    });

    it('names no path of administration where that is off', async () => {
      const without = await startService();
      try {
        const { body } = await without.request('GET', '/Admin/organizations');
        expect(body.error.message).toBe('Not found. See /docs for the available endpoints.');
      } finally {
        await without.close();
      }
    });
  });
});

@Injectable()
class LetsIn implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

class BoatDto {
  @Field.text({ rule: 'a string', description: 'A boat.' })
  boat?: string;
}

/** Its handlers declare nothing but their guard and their parameters. */
@Controller('trial')
@UseGuards(LetsIn)
class StrictController {
  @Get(':id')
  read(): object {
    return {};
  }

  @Get(':id/found')
  find(@Query() { boat }: BoatDto): object {
    return { boat };
  }

  @Get(':id/named')
  findByName(@Query('boat') boat: string): object {
    return { boat };
  }

  @Post(':id')
  change(): object {
    return {};
  }

  @Post(':id/boats')
  add(@Body() { boat }: BoatDto): object {
    return { boat };
  }
}

@Controller('open')
@Public()
class DeclaredController {
  @Get()
  @AllowsHead()
  @AnyQuery()
  read(): object {
    return {};
  }

  @Post()
  @Reads()
  @BodyBytesMax(100)
  write(@Body() body: object): object {
    return body;
  }

  @Get('probe')
  @Probe()
  probe(): object {
    return {};
  }
}

@Controller('unguarded')
class UnguardedController {
  @Get('boats/:id')
  read(): object {
    return {};
  }
}

async function create(...controllers: Type[]): Promise<NestExpressApplication> {
  const environment = new Environment();
  @Module({ imports: [ConfigModule.forRoot(environment), HttpModule], controllers })
  class TrialModule {}
  const app = await NestFactory.create<NestExpressApplication>(TrialModule, {
    logger: false,
    abortOnError: false,
    bodyParser: false,
  });
  useMiddleware(app, environment, createLogger('silent', { write: () => undefined }, createRedactor()));
  await app.listen(0, '127.0.0.1');
  return app;
}

describe('a route', () => {
  let app: NestExpressApplication;
  let url: string;

  beforeAll(async () => {
    app = await create(StrictController, DeclaredController);
    url = await app.getUrl();
  });
  afterAll(() => app.close());

  const call = (method: string, path: string, body?: string): Promise<HttpResponse> =>
    send(url, method, path, { headers: body === undefined ? {} : { 'Content-Type': 'application/json' }, body });

  async function refusal(method: string, path: string, body?: string): Promise<unknown[]> {
    const { status, text } = await call(method, path, body);
    const { error } = JSON.parse(text) as { error: { code: string; details?: { field: string }[] } };
    return [status, error.code, ...(error.details ?? []).map(({ field }) => field)];
  }

  it('that declares nothing refuses HEAD, with the methods that it has', async () => {
    const { status, headers } = await call('HEAD', '/trial/a');
    expect([status, headers.allow]).toEqual([405, 'GET, POST']);
    expect((await call('GET', '/trial/a')).status).toBe(200);
  });

  it('that declares nothing refuses every query parameter, also one that its handler reads by itself', async () => {
    expect(await refusal('GET', '/trial/a?page=2')).toEqual([400, 'invalid_request', 'page']);
    expect(await refusal('POST', '/trial/a?__proto__=2')).toEqual([400, 'invalid_request', '__proto__']);
    expect(await refusal('GET', '/trial/a/named?boat=tern')).toEqual([400, 'invalid_request', 'boat']);
  });

  it('that declares nothing refuses a body with fields, in another type, that is too large, or that is no object', async () => {
    expect(await refusal('POST', '/trial/a', '{"boat":"tern"}')).toEqual([400, 'invalid_request', 'boat']);
    for (const body of ['[]', 'null', '"boat"', '1', 'true'])
      expect((await call('POST', '/trial/a', body)).text).toContain('The body must be a JSON object.');
    for (const body of ['{', 'boat', ' '])
      expect((await call('POST', '/trial/a', body)).text).toContain('The body is not valid JSON in UTF-8.');
    expect(await refusal('POST', '/trial/a', JSON.stringify({ boat: 'x'.repeat(17_000) }))).toEqual([
      413,
      'invalid_request',
      'body',
    ]);
    const text = await send(url, 'POST', '/trial/a', { headers: { 'Content-Type': 'text/plain' }, body: 'boat' });
    expect(text.status).toBe(415);
    for (const empty of [undefined, '', '{}']) expect((await call('POST', '/trial/a', empty)).status).toBe(201);
  });

  it('accepts the parameters and the fields of its DTOs, and no others', async () => {
    expect((await call('GET', '/trial/a/found?boat=tern')).text).toBe('{"boat":"tern"}');
    expect(await refusal('GET', '/trial/a/found?oar=2')).toEqual([400, 'invalid_request', 'oar']);
    expect((await call('POST', '/trial/a/boats', '{"boat":"tern"}')).text).toBe('{"boat":"tern"}');
    expect(await refusal('POST', '/trial/a/boats', '{"oar":2}')).toEqual([400, 'invalid_request', 'oar']);
    expect(await refusal('POST', '/trial/a/boats?boat=tern', '{}')).toEqual([400, 'invalid_request', 'boat']);
  });

  it('requires the scope write unless it is a GET, or declares that it reads only', () => {
    const scopes = app.get(Routes).all.map(({ method, path, scope }) => [`${method} ${path}`, scope]);
    expect(Object.fromEntries(scopes)).toMatchObject({
      ...{ 'GET /trial/{id}': 'read', 'POST /trial/{id}': 'write', 'POST /trial/{id}/boats': 'write' },
      ...{ 'GET /open': 'read', 'POST /open': 'read' },
    });
    const message = (): object => ({});
    expect(requiredScope([message, StrictController])).toBe('write');
    Reads()(message);
    expect(requiredScope([message, StrictController])).toBe('read');
  });

  it('that declares HEAD, any query or a larger body has them', async () => {
    expect((await call('HEAD', '/open?page=2')).status).toBe(200);
    expect((await call('PUT', '/open')).headers.allow).toBe('GET, POST, HEAD');
    expect((await call('POST', '/open', '{"boat":"tern"}')).text).toBe('{"boat":"tern"}');
    expect((await refusal('POST', '/open', JSON.stringify({ boat: 'x'.repeat(100) })))[0]).toBe(413);
  });

  it('is refused at the end of a shutdown, unless it is a probe', async () => {
    app.get(ShutdownState).refusing = true;
    expect(await refusal('GET', '/trial/a')).toEqual([503, 'service_unavailable']);
    expect((await call('GET', '/open/probe')).status).toBe(200);
    app.get(ShutdownState).refusing = false;
  });
});

describe('the start', () => {
  it('fails on a route without a guard, which it names in one line', async () => {
    await expect(create(StrictController, UnguardedController)).rejects.toThrow(
      /^GET \/unguarded\/boats\/:id \(UnguardedController\.read\) has no guard: .*@Public\(\)\.$/,
    );
  });
});
