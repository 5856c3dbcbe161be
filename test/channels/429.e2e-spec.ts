import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DataSource } from 'typeorm';
import { generateKey } from '../../src/organizations/api-key.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { AUDIENCE, TestIdentityProvider } from '../auth/identity-provider.js';
import { clientOf, messageUrl, request as send } from '../messages/message-client.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { redisIsInstalled, RedisServer } from '../cache/redis-server.js';

describe('429', () => {
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
  let stopped: { nowMs: number; wallMs: number } | undefined;
  afterEach(() => (stopped = undefined));

  /** Stops the clocks of the service, so many seconds after they were first stopped in the test. */
  function pass(seconds: number): void {
    const { nowMs, wallMs } = (stopped ??= { nowMs: now(), wallMs: wallClock() });
    jest.spyOn(performance, 'now').mockReturnValue(nowMs + seconds * 1000);
    jest.spyOn(Date, 'now').mockReturnValue(wallMs + seconds * 1000);
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
      pass(0);
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
      expect(waitSeconds).toBe(60);
      expect(rateOf(response)).toEqual([RATE, 0, waitSeconds]);
      expect((await service.get('/usage', key)).status).toBe(429);
    });

    it('is admitted after Retry-After but not two seconds earlier, regardless of attempts in between', async () => {
      pass(0);
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
});

describe('the keys and clients of one organization', () => {
  const KEYS = 20;
  const CALLS_PER_KEY = 10;
  const RATE = 2;
  let provider: TestIdentityProvider;
  /** With the limits of calls in flight as they are by default. */
  let service: TestService;
  /** Limited by rate. */
  let slow: TestService;

  beforeAll(async () => {
    provider = await TestIdentityProvider.start([]);
    const environment = { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0, OIDC_ISSUER: provider.issuer } as const;
    service = await startService({ environment: { ...environment, OIDC_AUDIENCE: AUDIENCE } });
    slow = await startService({ environment: { RATE_LIMIT_PER_MINUTE: RATE } });
  });

  afterAll(async () => {
    await Promise.all([service.close(), slow.close()]);
    await provider.stop();
  });

  /** Further keys of an organization. */
  async function keysOf(of: TestService, organizationId: string, count: number): Promise<string[]> {
    const issue = () => of.app.get(ApiKeysService).issue({ organizationId });
    return (await Promise.all(Array.from({ length: count }, issue))).map(({ key }) => key);
  }

  function callTool(of: TestService, key: string, name: string, args: object): Promise<ServiceResponse> {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
    return of.request('POST', '/mcp', { ...headers, Authorization: `Bearer ${key}` }, JSON.stringify(message));
  }

  it('with 200 calls at once have 40 of them in flight, and leave the others to other organizations', async () => {
    const [{ id }, other] = [await service.organization(), await service.organization()];
    await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
    const clients = Array.from({ length: KEYS / 2 }, (_, index) =>
      provider.sign({ client_id: `client-${index}`, org_id: 'acme', sub: 'x' }),
    );
    const keys = [...(await keysOf(service, id, KEYS / 2 + 1)), ...(await Promise.all(clients))];
    const spare = keys.shift() ?? '';
    const cached = '/channels/@tidewater/transcripts?limit=1';
    expect((await service.get(cached, other.key)).status).toBe(200);

    const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, 1);
    const running = keys.flatMap((key, index) =>
      Array.from({ length: CALLS_PER_KEY }, (_, call) => {
        const path = `/channels/@1-videos-no-${index * CALLS_PER_KEY + call + 1}/transcripts`;
        return service.get(path, key);
      }),
    );
    let ended = 0;
    for (const call of running) void call.then(() => (ended += 1));
    await hold.arrived;
    // On a busy machine the last calls arrive later: 40 are held, all others are refused.
    await until(() => ended === running.length - 40);
    const message = 'Concurrency limit of 40 requests for all keys of your organization reached.';
    const refused = await service.get('/channels/x!/transcripts', spare);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect(refused.body.error.message).toContain(message);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const free = await service.get(cached, other.key);
    expect([free.status, free.body.summary?.cached]).toEqual([200, 1]);
    const tool = await callTool(service, spare, 'list_channel_uploads', { channel: '@tidewater' });
    expect(tool.text).toContain(message);
    const client = clientOf(messageUrl(service));
    try {
      expect((await send(client, { apiKey: spare, id: '@tidewater' })).error.error.message).toContain(message);
      const { error, events } = await send(client, { apiKey: other.key, id: '@tidewater', limit: 1 });
      expect([error, events.at(-1)?.type]).toEqual([undefined, 'summary']);
    } finally {
      await client.close();
    }
    expect((await service.get('/usage', spare)).status).toBe(200);
    hold.release();
    service.fakeYoutube.reset();
    const statuses = (await Promise.all(running)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(40);
    expect(statuses.filter((status) => status === 429)).toHaveLength(160);
    expect((await service.get('/channels/x!/transcripts', spare)).status).toBe(404);
    const metrics = await scrape(service);
    expect(sumOf(metrics, 'ct_limit_refusals_total', { reason: 'organization_in_flight' })).toBe(163);
  });

  it('have ten times the rate of a key together', async () => {
    const [{ id }, other] = [await slow.organization(), await slow.organization()];
    const [spare = '', ...keys] = await keysOf(slow, id, 11);
    for (const key of keys)
      for (let call = 0; call < RATE; call += 1) expect((await slow.get('/usage', key)).status).toBe(200);
    // A key that repeats refused calls takes nothing from the others.
    const response = await slow.get('/usage', spare);
    const waitSeconds = Number(response.headers['retry-after']);
    const { error } = response.body;
    expect([response.status, error.message]).toEqual([
      429,
      `Rate limit of 20 requests per minute for all keys of your organization exceeded. Retry after ${waitSeconds} seconds.`,
    ]);
    expect(response.headers).toMatchObject({
      'x-ratelimit-limit': '20',
      'x-ratelimit-remaining': '0',
      'ratelimit-policy': '"minute";q=20;w=60',
    });
    const [mcp = ''] = await keysOf(slow, id, 1);
    expect((await callTool(slow, mcp, 'get_usage', {})).text).toContain('for all keys of your organization');
    // Their operations on jobs are counted apart, and other organizations too.
    expect((await slow.get('/jobs', spare)).status).toBe(200);
    const free = await slow.get('/usage', other.key);
    expect([free.status, free.headers['x-ratelimit-limit']]).toEqual([200, String(RATE)]);
  });
});

describe('429 of replicas', () => {
  const RATE = 12;
  let redis: RedisServer;
  let replicas: [TestService, TestService];

  // Skipped without Redis; continuous integration installs it.
  (redisIsInstalled ? describe : describe.skip)('two replicas with one Redis', () => {
    beforeAll(async () => {
      redis = await RedisServer.start();
      const limits = { REDIS_URL: redis.url, RATE_LIMIT_PER_MINUTE: RATE };
      const first = await startService({ environment: limits });
      const shared = { DATABASE_URL: first.databaseUrl, YOUTUBE_BASE_URL: first.fakeYoutube.url };
      replicas = [first, await startService({ environment: { ...limits, ...shared } })];
      await until(async () => (await Promise.all(replicas.map(ready))).every((status) => status === 'ok'));
    });
    afterAll(async () => {
      await Promise.all(replicas.map((replica) => replica.close()));
      await redis.close();
    });
    afterEach(async () => {
      replicas[0].fakeYoutube.reset();
      await redis.kill();
      // Until both have noticed, a readiness of before is no sign that they use the new one.
      await until(async () => (await Promise.all(replicas.map(ready))).every((status) => status === 'degraded'));
      await redis.start();
      await until(async () => (await Promise.all(replicas.map(ready))).every((status) => status === 'ok'));
    });

    it('grant a key exactly its rate limit, for any distribution of its calls', async () => {
      const { key } = await replicas[0].organization();
      const responses = await spread(40, (replica) => replica.get('/usage', key));
      expect(statuses(responses)).toEqual([...Array<number>(RATE).fill(200), ...Array<number>(40 - RATE).fill(429)]);
      const left = responses
        .filter(({ status }) => status === 200)
        .map(({ headers }) => headers['x-ratelimit-remaining']);
      expect(left.map(Number).sort((a, b) => a - b)).toEqual([...Array(RATE).keys()]);
    });

    it('grant an organization exactly ten times the rate of a key, for any distribution of its keys and calls', async () => {
      const { id } = await replicas[0].organization();
      const issue = () => replicas[0].app.get(ApiKeysService).issue({ organizationId: id });
      const keys = await Promise.all(Array.from({ length: 12 }, issue));
      const responses = await spread(12 * RATE, (replica, index) => replica.get('/usage', keys[index % 12]?.key ?? ''));
      expect(statuses(responses)).toEqual([
        ...Array<number>(10 * RATE).fill(200),
        ...Array<number>(2 * RATE).fill(429),
      ]);
    });

    it('use local counts when Redis is killed, and each logs it once', async () => {
      const { key } = await replicas[0].organization();
      await spread(RATE - 2, (replica) => replica.get('/usage', key));
      const before = warnings().length;
      await redis.kill();
      // The count of the process starts at zero.
      const answers = await Promise.all(Array.from({ length: 20 }, () => replicas[0].get('/usage', key)));
      expect(statuses(answers)).toEqual([...Array<number>(RATE).fill(200), ...Array<number>(20 - RATE).fill(429)]);
      await replicas[1].get('/usage', key);
      await until(() => warnings().length > before + 1);
      const lines = warnings().slice(before);
      expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(['cache_away', 'cache_away']);
    });

    it('hold back no call while Redis is unresponsive', async () => {
      const { key } = await replicas[0].organization();
      redis.freeze();
      // It responds while Redis is still frozen.
      expect((await replicas[0].get('/channels/x!/transcripts', key)).status).toBe(404);
      redis.thaw();
    });

    it('use local counts while Redis refuses writes', async () => {
      const { key } = await replicas[0].organization();
      // As after a failover: the connection still leads to the server that has become a replica.
      await redis.command('REPLICAOF', '127.0.0.1', '1');
      const answers = await Promise.all(Array.from({ length: 20 }, () => replicas[0].get('/usage', key)));
      expect(statuses(answers)).toEqual([...Array<number>(RATE).fill(200), ...Array<number>(20 - RATE).fill(429)]);
    });
  });

  /** The log of both services: in one process they share a logger. */
  function warnings(): string[] {
    return replicas.flatMap(({ logs }) => logs).filter((line) => line.includes('"level":"warn"'));
  }

  async function ready(replica: TestService): Promise<unknown> {
    return (await replica.request('GET', '/health/ready')).body?.status;
  }

  /** Sends all requests concurrently, alternating between the replicas. */
  function spread(
    count: number,
    request: (replica: TestService, index: number) => Promise<ServiceResponse>,
  ): Promise<ServiceResponse[]> {
    return Promise.all(Array.from({ length: count }, (_, index) => request(replicas[index % 2 === 0 ? 0 : 1], index)));
  }

  function statuses(answers: readonly ServiceResponse[]): number[] {
    return answers.map(({ status }) => status).sort((a, b) => a - b);
  }
});
