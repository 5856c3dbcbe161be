import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DataSource } from 'typeorm';
import { generateKey } from '../../src/organizations/api-key.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

const PATH = '/channels/@tidewater/transcripts?limit=1';
const RATE = 4;
const AT_ONCE = 2;
const FAILURES = 20;

/** Limited by rate. */
let service: TestService;
/** Limited by calls in flight. */
let narrow: TestService;

beforeAll(async () => {
  [service, narrow] = await Promise.all([
    startService({ environment: { RATE_LIMIT_PER_MINUTE: RATE, TRUST_PROXY: 'loopback' } }),
    startService({ environment: { RATE_LIMIT_PER_MINUTE: 0, CALLS_PER_KEY: AT_ONCE } }),
  ]);
});
afterAll(() => Promise.all([service.close(), narrow.close()]));
afterEach(() => {
  jest.restoreAllMocks();
  narrow.fakeYoutube.reset();
});

const now = performance.now.bind(performance);
const wallClock = Date.now.bind(Date);

/** Moves the service's clocks ahead of the true ones. */
function pass(seconds: number): void {
  jest.spyOn(performance, 'now').mockImplementation(() => now() + seconds * 1000);
  jest.spyOn(Date, 'now').mockImplementation(() => wallClock() + seconds * 1000);
}

function rateOf({ headers }: ServiceResponse): (number | undefined)[] {
  return ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].map((name) =>
    headers[name] === undefined ? undefined : Number(headers[name]),
  );
}

async function times<T>(count: number, request: () => Promise<T>): Promise<T[]> {
  const responses: T[] = [];
  while (responses.length < count) responses.push(await request());
  return responses;
}

describe('a key over its rate limit', () => {
  it('sees its remaining requests decrease over all routes, and is then refused with Retry-After', async () => {
    const { key } = await service.organization();
    expect(rateOf(await service.get(PATH, key))).toEqual([RATE, 3, 60]);
    const usage = await service.get('/usage', key);
    expect([usage.status, ...rateOf(usage).slice(0, 2)]).toEqual([200, RATE, 2]);
    await times(2, () => service.get('/usage', key));
    const response = await service.get(PATH, key);
    expect(response.status).toBe(429);
    const waitSeconds = Number(response.headers['retry-after']);
    expect(response.body.error).toEqual({
      code: 'rate_limited',
      message: `Rate limit of ${RATE} requests per minute exceeded. Retry after ${waitSeconds} seconds.`,
      retryable: true,
      docs: '/docs/errors#rate_limited',
      requestId: response.headers['x-request-id'],
    });
    expect(waitSeconds).toBeGreaterThan(50);
    expect(waitSeconds).toBeLessThanOrEqual(60);
    expect(rateOf(response)).toEqual([RATE, 0, waitSeconds]);
    expect((await service.get('/usage', key)).status).toBe(429);
  });

  it('is admitted after Retry-After but not two seconds earlier, regardless of attempts in between', async () => {
    const { key } = await service.organization();
    await times(RATE, () => service.get('/usage', key));
    const [refused] = await times(RATE, () => service.get('/usage', key));
    const waitSeconds = Number(refused?.headers['retry-after']);
    pass(waitSeconds - 2);
    expect((await service.get('/usage', key)).status).toBe(429);
    pass(waitSeconds);
    expect((await service.get('/usage', key)).status).toBe(200);
  });

  it('is refused after the plan check, and before its parameters and the channel are checked', async () => {
    const free = await service.organization({ plan: 'free' });
    const refusals = await times(RATE + 1, () => service.get(PATH, free.key));
    expect(refusals.map(({ status }) => status)).toEqual(Array(RATE + 1).fill(403));
    expect(refusals.map((answer) => rateOf(answer)[1])).toEqual([3, 2, 1, 0, 0]);
    expect(refusals.at(-1)?.headers['retry-after']).toBeUndefined();
    expect((await service.get('/usage', free.key)).status).toBe(429);

    const { key } = await service.organization();
    const wrong = await times(RATE, () => service.get('/channels/x!/transcripts?limit=0', key));
    expect(wrong.map(({ status }) => status)).toEqual(Array(RATE).fill(400));
    expect((await service.get('/channels/x!/transcripts?limit=0', key)).status).toBe(429);
  });
});

describe('a key at its concurrency limit', () => {
  it('is refused another call for transcripts or uploads, before its parameters are checked, until a call ends', async () => {
    const { id, key } = await narrow.organization();
    const hold = narrow.fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE);
    const running = [1, 2].map((seed) => narrow.get(`/channels/@1-videos-no-${seed}/transcripts`, key));
    await hold.arrived;
    const refused = await narrow.get('/channels/x!/transcripts?limit=0', key);
    expect(refused.status).toBe(429);
    expect(refused.body.error).toEqual({
      code: 'rate_limited',
      message: 'Concurrency limit of 2 requests for this key reached. Retry when a running request has ended.',
      retryable: true,
      docs: '/docs/errors#rate_limited',
      requestId: refused.headers['x-request-id'],
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await narrow.get('/channels/@tidewater/uploads', key)).status).toBe(429);
    for (const [method, path, status] of [
      ['GET', '/usage', 200],
      ['POST', '/jobs', 400],
      ['POST', '/webhooks', 400],
      ['POST', '/webhooks/whk_000000000000000000000000/rotate', 409],
      ['POST', '/webhooks/whk_000000000000000000000000/test', 404],
    ] as const) {
      const answer = await narrow.request(method, path, { Authorization: `Bearer ${key}` });
      expect([path, answer.status]).toEqual([path, status]);
    }
    const other = await narrow.app.get(ApiKeysService).issue({ organizationId: id });
    expect((await narrow.get('/channels/x!/transcripts', other.key)).status).toBe(404);
    hold.release();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await narrow.get('/channels/@1-videos-no-1/transcripts', key)).status).toBe(200);
  });

  it('regains a slot when a client disconnects', async () => {
    const { key } = await narrow.organization();
    const hold = narrow.fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE);
    const leaving = new AbortController();
    const request = { headers: { Authorization: `Bearer ${key}` }, signal: leaving.signal };
    for (const seed of [3, 4])
      void fetch(`${narrow.url}/channels/@1-videos-no-${seed}/transcripts`, request).catch(() => undefined);
    await hold.arrived;
    expect((await narrow.get('/channels/x!/transcripts', key)).status).toBe(429);
    leaving.abort();
    await until(async () => (await narrow.get('/channels/x!/transcripts', key)).status === 404);
  });

  it('regains the slot of a call that is refused later or fails', async () => {
    const { key } = await narrow.organization({ monthlyLimit: 0 });
    const refusals = [
      ['/channels/@tidewater/transcripts?limit=0', 400],
      ['/channels/x!/transcripts', 404],
      ['/channels/@fogsignalradio/transcripts', 402],
    ] as const;
    for (const [path, status] of refusals) expect((await narrow.get(path, key)).status).toBe(status);
    // The address rests after this refusal, which refuses the calls that follow.
    narrow.fakeYoutube.setFaults({ kind: 'captcha' });
    await times(AT_ONCE, async () =>
      expect((await narrow.get('/channels/@1-videos-no-9/transcripts', key)).status).toBe(502),
    );
  });
});

describe('an address that keeps failing to authenticate', () => {
  const from = (address: string, headers: Record<string, string> = {}) =>
    service.request('GET', '/usage', { 'X-Forwarded-For': address, ...headers });

  it('is refused with 429 instead of 401 after the limit, but never with a key that was valid recently', async () => {
    const { key } = await service.organization();
    await service.get('/usage', key);
    const failures = await times(FAILURES, () => from('192.0.2.1'));
    expect(new Set(failures.map(({ status }) => status))).toEqual(new Set([401]));
    const refused = await from('192.0.2.1', { Authorization: 'Bearer wrong' });
    expect([refused.status, refused.body.error.code, refused.body.error.retryable]).toEqual([
      429,
      'rate_limited',
      true,
    ]);
    const waitSeconds = Number(refused.headers['retry-after']);
    expect(rateOf(refused)).toEqual([FAILURES, 0, waitSeconds]);
    expect((await from('192.0.2.1', { Authorization: `Bearer ${key}` })).status).toBe(200);
    expect((await from('192.0.2.2')).status).toBe(401);
    pass(waitSeconds);
    expect((await from('192.0.2.1')).status).toBe(401);
  });

  it('(IPv6) counts as its /64 network', async () => {
    await times(FAILURES, () => from('2001:db8:0:1::1'));
    expect((await from('2001:db8:0:1:ffff::2')).status).toBe(429);
    expect((await from('2001:db8:0:2::1')).status).toBe(401);
  });

  it('is refused without a query, with any key that was not valid recently', async () => {
    const flooding = { 'X-Forwarded-For': '192.0.2.3' };
    const [used, unused] = [await service.organization(), await service.organization()];
    expect((await service.get('/usage', used.key, flooding)).status).toBe(200);
    await times(FAILURES + 1, () => service.request('GET', '/usage', flooding));
    const query = jest.spyOn(service.app.get(DataSource), 'query');
    const keys = [unused.key, ...Array.from({ length: 50 }, generateKey)];
    const refused = await Promise.all(keys.map((key) => service.get('/usage', key, flooding)));
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
    expect(query.mock.calls.filter(([text]) => text.includes('api_keys'))).toEqual([]);
    expect((await service.get('/usage', used.key, flooding)).status).toBe(200);
    await service.app.get(ApiKeysService).revoke(used.keyId);
    expect((await service.get('/usage', used.key, flooding)).status).toBe(429);
  });
});

describe('a rate limit of 0', () => {
  it('disables the limit', async () => {
    const unlimited = await startService({
      environment: { RATE_LIMIT_PER_MINUTE: 0, CALLS_PER_KEY: 0, CALLS_PER_ORGANIZATION: 0, CALLS_PER_PROCESS: 0 },
    });
    try {
      const { key } = await unlimited.organization();
      const hold = unlimited.fakeYoutube.hold({ kind: 'timedtext' });
      const running = Array.from({ length: 70 }, () => unlimited.get(PATH, key));
      await hold.arrived;
      hold.release();
      const responses = await Promise.all(running);
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
      expect(rateOf(responses[0] as ServiceResponse)).toEqual([undefined, undefined, undefined]);
    } finally {
      await unlimited.close();
    }
  });
});
