import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { JWK } from 'jose';
import { Authentication } from '../../src/auth/authentication.js';
import { RequestContext } from '../../src/http/server/request-context.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { AUDIENCE, newKey, TestIdentityProvider } from './identity-provider.js';

const JWKS = '/jwks';
const MINUTE_MS = 60_000;

let provider: TestIdentityProvider;
let service: TestService;
let passedMs = 0;

/** Lets time pass for what measures it by the monotonic clock. */
function pass(ms: number): void {
  passedMs += ms;
}

beforeEach(() => {
  const { performance } = globalThis;
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + passedMs);
});
afterEach(() => void jest.restoreAllMocks());

let providerKeys: JWK[];
beforeAll(async () => {
  provider = await TestIdentityProvider.start([{ id: 'reports', claims: { org_id: 'acme' } }]);
  providerKeys = [...provider.keys];
});
afterAll(() => provider.stop());

/** For each test a service that has not read the keys of the provider. */
function useProvider(): void {
  beforeEach(async () => {
    await provider.useKeys(...providerKeys);
    await provider.requests();
    service = await startService({
      environment: { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, TRUST_PROXY: '1' },
    });
    const { id } = await service.organization();
    await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
  });
  afterEach(() => service.close());
}

let addresses = 0;

/** Calls come from different addresses: one that sends many invalid tokens is refused. */
function fromAddress(): { 'X-Forwarded-For': string } {
  addresses += 1;
  return { 'X-Forwarded-For': `198.18.${addresses >> 8}.${addresses & 255}` };
}

async function call(token: string): Promise<{ status: number; code: string | undefined; retryAfter: unknown }> {
  const { status, body, headers: sent } = await service.get('/usage', token, fromAddress());
  return { status, code: body.error?.code, retryAfter: sent['retry-after'] };
}

const ok = { status: 200 };
const unknownKey = { status: 401, code: 'invalid_token' };
const unavailable = { status: 503, code: 'service_unavailable' };
const claims = { client_id: 'reports', org_id: 'acme' };

describe('the keys of the provider', () => {
  useProvider();

  it('are read once for any number of calls at once, and again when a token has a new one', async () => {
    const token = await provider.token('reports');
    await provider.requests();
    const first = await Promise.all(Array.from({ length: 20 }, () => call(token)));
    expect(first).toEqual(Array(20).fill(expect.objectContaining(ok)));
    expect(await provider.requests()).toEqual({ '/.well-known/openid-configuration': 1, [JWKS]: 1 });

    const [old] = provider.keys;
    await provider.useKeys(await newKey('second'), ...(old ? [old] : []));
    pass(MINUTE_MS);
    expect(await call(await provider.token('reports'))).toMatchObject(ok);
    expect(await call(token)).toMatchObject(ok);
    expect((await provider.requests())[JWKS]).toBe(1);
  });

  it('are read once a minute, however many tokens have invented ones', async () => {
    await call(await provider.token('reports'));
    await provider.requests();
    for (const minute of [0, 1, 2]) {
      const flood = Array.from({ length: 100 }, (_, index) => provider.sign(claims, { kid: `${minute}-${index}` }));
      const responses = await Promise.all((await Promise.all(flood)).map(call));
      expect(responses).toEqual(Array(100).fill(expect.objectContaining(unknownKey)));
      expect((await provider.requests())[JWKS] ?? 0).toBe(minute === 0 ? 0 : 1);
      pass(MINUTE_MS);
    }
  });

  it('are renewed ten minutes later beside the calls, once for any number of them at once', async () => {
    const token = await provider.token('reports');
    expect(await call(token)).toMatchObject(ok);
    // A client of the provider needs a key for RS256.
    await provider.useKeys(await newKey('second', 'RS256'));
    await provider.requests();
    pass(9 * MINUTE_MS);
    expect(await call(token)).toMatchObject(ok);
    expect(await provider.requests()).toEqual({});
    pass(MINUTE_MS);
    const calls = await Promise.all(Array.from({ length: 20 }, () => call(token)));
    expect(calls.filter(({ status }) => status === 200)).not.toEqual([]);
    await until(async () => (await call(token)).code === 'invalid_token');
    expect((await provider.requests())[JWKS]).toBe(1);
    expect(await call(await provider.token('reports'))).toMatchObject(ok);
  });

  it('that are younger do not wait for the provider, also when its last attempt failed', async () => {
    const token = await provider.token('reports');
    expect(await call(token)).toMatchObject(ok);
    await provider.stop();
    pass(MINUTE_MS);
    expect(await call(await provider.sign(claims, { kid: 'unknown' }))).toMatchObject(unavailable);
    await provider.restart();
    await provider.useKeys(await newKey('second'));
    pass(8 * MINUTE_MS);
    expect(await call(token)).toMatchObject(ok);
    expect(await provider.requests()).toEqual({});
    pass(MINUTE_MS);
    expect(await call(token)).toMatchObject(ok);
    await until(async () => (await call(token)).code === 'invalid_token');
  });
});

class Call extends RequestContext {
  readonly credentialLocation = '';
  readonly address = undefined;

  constructor(readonly credential: string) {
    super('test');
  }

  setHeader(): void {
    // Nobody reads them.
  }

  disconnect(): void {
    // It has no connection.
  }
}

describe('a provider of any content', () => {
  let server: Server;
  let issuer: string;
  let asked: string[];
  /** The key set that it publishes; undefined while it fails. */
  let keys: object[] | undefined;
  let whileAsked: () => void;
  let other: TestService;
  const start = async () => {
    [asked, keys, whileAsked] = [[], undefined, () => undefined];
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      whileAsked();
      const content = request.url === JWKS ? { keys } : { issuer, jwks_uri: `${issuer}${JWKS}` };
      response.writeHead(keys ? 200 : 500).end(JSON.stringify(content));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    other = await startService({ environment: { OIDC_ISSUER: issuer, OIDC_AUDIENCE: AUDIENCE, TRUST_PROXY: '1' } });
  };
  const stop = async () => {
    await other.close();
    server.close();
  };

  const publicOf = ({ kty, kid, use, alg, crv, n, e, x, y }: JWK): Partial<Record<keyof JWK, unknown>> => ({
    ...{ kty, kid, use, alg, crv, n, e, x, y },
  });
  const signed = (key?: JWK) => provider.sign({ ...claims, iss: issuer }, { key });

  const unusable: [string, string, Record<string, unknown>][] = [
    ['a modulus of 1024 bits', 'RS256', { n: Buffer.alloc(128, 0xa5).toString('base64url') }],
    ['a modulus that is none', 'RS256', { n: '!' }],
    ['an empty modulus', 'PS256', { n: '' }],
    ['a point that is not on the curve', 'ES256', { x: Buffer.alloc(32, 1).toString('base64url') }],
    ['a private key', 'EdDSA', { d: Buffer.alloc(32, 1).toString('base64url') }],
    ['a key for encryption', 'RS256', { use: 'enc' }],
    ['a key of an unknown type', 'ES512', { kty: 'XX' }],
  ];

  describe('with one key that cannot be used', () => {
    beforeAll(start);
    afterAll(stop);
    beforeEach(() => {
      asked.length = 0;
      pass(MINUTE_MS);
    });

    it.each(unusable)('with %s is asked for it again, as for an unknown one', async (name, alg, broken) => {
      const [good, key] = [await newKey('good'), await newKey(name, alg)];
      keys = [publicOf(good), { ...publicOf(key), ...broken }];
      const token = await signed(key);
      for (let count = 0; count < 3; count += 1) {
        const { status, body } = await other.get('/usage', token, fromAddress());
        expect([status, body.error.code, body.error.message]).toEqual([
          ...[401, 'invalid_token'],
          'The access token is signed with a key that the provider does not publish in a usable form (kid).',
        ]);
      }
      expect(asked).toHaveLength(2);
      keys = [publicOf(good), publicOf(key)];
      pass(MINUTE_MS);
      // The token is accepted, and its organization is none of this service.
      expect((await other.get('/usage', token)).body.error.code).toBe('organization_not_linked');
      expect(asked).toHaveLength(4);
      expect(other.logs.join('')).not.toContain('"stack"');
    });
  });

  describe('which the service has not read', () => {
    beforeEach(start);
    afterEach(stop);

    it.each([...unusable.slice(0, 1), ['nothing', 'RS256', undefined] as const])(
      'with %s and no usable key counts as one that fails: known keys go on, and otherwise tokens are 503',
      async (_name, alg, broken) => {
        const key = await newKey('key', alg);
        const token = await signed(key);
        keys = broken ? [{ ...publicOf(key), ...broken }] : [];
        expect((await other.get('/usage', token)).status).toBe(503);
        keys = [publicOf(key)];
        pass(5_000);
        expect((await other.get('/usage', token)).status).toBe(403);
        keys = broken ? [{ ...publicOf(key), ...broken }] : [];
        pass(10 * MINUTE_MS);
        asked.length = 0;
        expect((await other.get('/usage', token)).status).toBe(403);
        await until(() => other.logs.filter((line) => line.includes('identity_provider_unavailable')).length === 2);
        expect(asked).toHaveLength(2);
        expect((await other.get('/usage', await signed(await newKey('unknown')))).status).toBe(503);
        expect((await other.get('/usage', token)).status).toBe(403);
      },
    );

    it('accepts tokens that do not name their key while only one fits', async () => {
      const [key, second] = [await newKey('first'), await newKey('second', 'RS256')];
      keys = [publicOf(key), publicOf(second)];
      const unnamed = { ...key };
      delete unnamed.kid;
      const token = await signed(unnamed);
      expect((await other.get('/usage', token)).body.error.code).toBe('organization_not_linked');
      keys = [publicOf(key), publicOf(await newKey('third'))];
      pass(10 * MINUTE_MS);
      await until(async () => (await other.get('/usage', token)).body.error.code === 'invalid_token');
      expect((await other.get('/usage', token)).body.error.message).toBe(
        'The access token does not name the key that it is signed with (kid).',
      );
    });

    it('that takes long to fail is asked again only after a pause', async () => {
      whileAsked = () => pass(20_000);
      const token = await signed();
      for (let count = 0; count < 3; count += 1) expect((await other.get('/usage', token)).status).toBe(503);
      expect(asked).toEqual(['/.well-known/openid-configuration']);
      pass(5_000);
      expect((await other.get('/usage', token)).status).toBe(503);
      expect(asked).toHaveLength(2);
    });

    it('that accepts requests and stays silent keeps no call with a known key waiting, however old the key is', async () => {
      const key = await newKey('key');
      const token = await signed(key);
      keys = [publicOf(key)];
      expect((await other.get('/usage', token)).body.error.code).toBe('organization_not_linked');
      const request = server.listeners('request')[0] as (request: object, response: object) => void;
      const unanswered: object[] = [];
      server.removeAllListeners('request').on('request', (one) => unanswered.push(one));
      pass(10 * MINUTE_MS);
      expect((await other.get('/usage', token)).body.error.code).toBe('organization_not_linked');
      await until(() => unanswered.length === 1);
      // The attempt goes on, and ends only by its time-out.
      for (let count = 0; count < 3; count += 1)
        expect((await other.get('/usage', token)).body.error.code).toBe('organization_not_linked');
      expect(other.logs.join('')).not.toContain('identity_provider_unavailable');
      server.removeAllListeners('request').on('request', request);
    });

    it('is not asked for a call that is refused anyway', async () => {
      const context = new Call(await signed());
      await other.app.get(Authentication).recordUnverified(context);
      expect(asked).toEqual([]);
    });
  });
});

describe('the readiness of the service', () => {
  useProvider();

  const dependency = { critical: false };
  const ready = () => service.request('GET', '/health/ready');
  const isUp = async () => String((await ready()).body.dependencies.identityProvider.status) === 'up';

  it('names the provider without tokens, and does not depend on it', async () => {
    const first = await ready();
    expect(first.body.dependencies.identityProvider).toEqual({ ...dependency, status: 'up' });
    // That check has begun to read the keys.
    await until(async () => (await provider.requests())[JWKS] === 1);
    await provider.stop();
    pass(10 * MINUTE_MS);
    await until(async () => !(await isUp()));
    const { status, body, text } = await ready();
    expect([status, body.status, text.includes('127.0.0.1')]).toEqual([200, 'degraded', false]);
    expect(body.dependencies.identityProvider).toEqual({ ...dependency, status: 'down' });
    const { text: metrics } = await service.request('GET', '/metrics');
    expect(metrics).toContain('ct_dependency_up{dependency="identityProvider",critical="false"} 0');
    await provider.restart();
    expect(await isUp()).toBe(false);
    pass(MINUTE_MS);
    await until(isUp);
  });
});

describe('without the provider', () => {
  useProvider();

  it('the service starts, refuses tokens with 503 and accepts API keys; it accepts tokens when the provider is back', async () => {
    const token = await provider.token('reports');
    const unknown = await provider.sign(claims, { kid: 'unknown' });
    await provider.stop();
    for (const sent of [token, unknown]) expect(await call(sent)).toMatchObject({ ...unavailable, retryAfter: '5' });
    const { key } = await service.organization();
    expect(await call(key)).toMatchObject(ok);
    await provider.restart();
    pass(5_000);
    expect(await call(token)).toMatchObject(ok);
    // A service of another test may still write to the log.
    const logged = service.logs.filter((line) => line.includes('identity_provider_unavailable'));
    expect(logged.filter((line) => line.includes(provider.issuer))).toHaveLength(1);
  });

  it('known keys go on, for any time, and unknown ones are 503, also in a flood', async () => {
    const token = await provider.sign({ ...claims, exp: Math.floor(Date.now() / 1000) + 86_400 });
    const unknown = await provider.sign(claims, { kid: 'unknown' });
    expect(await call(token)).toMatchObject(ok);
    await provider.stop();
    // It was read a moment ago: the key did not exist then.
    expect(await call(unknown)).toMatchObject(unknownKey);
    pass(60 * MINUTE_MS);
    for (let count = 0; count < 25; count += 1) expect(await call(unknown)).toMatchObject(unavailable);
    expect(await call(token)).toMatchObject(ok);
    await provider.restart();
    expect(await call(unknown)).toMatchObject(unavailable);
    expect((await provider.requests())[JWKS]).toBeUndefined();
    pass(MINUTE_MS);
    expect(await call(unknown)).toMatchObject(unknownKey);
    expect(await call(token)).toMatchObject(ok);
  });
});
