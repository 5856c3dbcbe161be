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
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { useMiddleware } from '../../src/bootstrap.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { Environment } from '../../src/config/environment.js';
import { HttpModule } from '../../src/http/http.module.js';
import { AllowsHead, AnyQuery, BodyBytesMax, Probe, Public, Reads } from '../../src/http/routes/route.decorators.js';
import { requiredScope, Routes } from '../../src/http/routes/routes.js';
import { Field } from '../../src/http/routes/field.js';
import { ShutdownState } from '../../src/http/server/connections.js';
import { createLogger } from '../../src/observability/logging/logger.js';
import { createRedactor } from '../../src/observability/logging/logger.js';
import { send, type HttpResponse } from '../harness/http-request.js';

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
