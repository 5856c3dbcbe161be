import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { RejectionMetrics } from '../../src/rate-limit/rejection-metrics.js';
import { CallsInFlight } from '../../src/rate-limit/calls-in-flight.js';
import { RedisConnection } from '../../src/cache/redis-connection.js';
import { SharedCounts } from '../../src/cache/shared-counts.js';
import { Environment } from '../../src/config/environment.js';
import { redisIsInstalled, RedisServer } from '../cache/redis-server.js';
import { startService, type ServiceResponse, type TestService } from '../service.js';
import { measureWithin, until } from '../until.js';

const RATE = 12;
const AT_ONCE = 3;
const ADDRESS_FAILURES = 20;

let redis: RedisServer;
let replicas: [TestService, TestService];

// Skipped without Redis; continuous integration installs it.
(redisIsInstalled ? describe : describe.skip)('two replicas with one Redis', () => {
  beforeAll(async () => {
    redis = await RedisServer.start();
    const limits = { REDIS_URL: redis.url, RATE_LIMIT_PER_MINUTE: RATE, CALLS_PER_KEY: AT_ONCE };
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

  it('grant a key the next call after Retry-After and not earlier', async () => {
    const { key, keyId } = await replicas[0].organization();
    await spread(RATE, (replica) => replica.get('/usage', key));
    const refused = await replicas[1].get('/usage', key);
    expect(refused.status).toBe(429);
    const waitSeconds = Number(refused.headers['retry-after']);
    await shift(`ct:rate:${keyId}`, waitSeconds - 2);
    expect((await replicas[0].get('/usage', key)).status).toBe(429);
    await shift(`ct:rate:${keyId}`, 2);
    expect((await replicas[0].get('/usage', key)).status).toBe(200);
  });

  it('grant a key no additional calls when Redis loses its counts within the minute', async () => {
    const { key, keyId } = await replicas[0].organization();
    expect(statuses(await spread(RATE - 2, (replica) => replica.get('/usage', key)))).not.toContain(429);
    // As under memory pressure: each replica adds the calls that it made with the next one.
    await redis.command('DEL', `ct:rate:${keyId}`);
    const answers = [await replicas[0].get('/usage', key), await replicas[1].get('/usage', key)];
    expect(statuses(answers)).toEqual([200, 200]);
    expect(await redis.command('ZCARD', `ct:rate:${keyId}`)).toBe(RATE);
    expect(new Set(statuses(await spread(6, (replica) => replica.get('/usage', key))))).toEqual(new Set([429]));
  });

  it('admit exactly the allowed number of concurrent calls of a key over both', async () => {
    const { key } = await replicas[0].organization();
    const hold = replicas[0].fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE);
    const calls = spread(9, (replica, index) => replica.get(`/channels/@bench-1x${index + 20}/transcripts`, key));
    await hold.arrived;
    const refused = await Promise.all(replicas.map((replica) => replica.get('/channels/x!/transcripts', key)));
    expect(statuses(refused)).toEqual([429, 429]);
    expect(refused[0]?.body.error.message).toContain('Concurrency limit');
    hold.release();
    expect(statuses(await calls)).toEqual([...Array<number>(AT_ONCE).fill(200), ...Array<number>(6).fill(429)]);
    // The response is complete before its slot is released.
    await until(async () => (await namesLike('ct:calls:*')).length === 0);
  });

  it('release the slots of a killed process when their lease ends', async () => {
    const { key, keyId } = await replicas[0].organization();
    const name = `ct:calls:${keyId}`;
    const hold = replicas[0].fakeYoutube.hold({ kind: 'timedtext' });
    const running = replicas[0].get('/channels/@bench-1x40/transcripts', key);
    await hold.arrived;
    const [lease] = await entriesOf(name);
    const leaseSeconds = ((lease?.atMs ?? 0) - Date.now()) / 1000;
    expect(leaseSeconds).toBeGreaterThan(55);
    expect(leaseSeconds).toBeLessThanOrEqual(60);
    expect(await redis.command('PTTL', name)).toBeGreaterThan(0);
    for (const killed of ['a', 'b']) await redis.command('ZADD', name, String(lease?.atMs), killed);
    expect((await replicas[1].get('/channels/x!/transcripts', key)).status).toBe(429);
    await shift(name, leaseSeconds);
    expect((await replicas[1].get('/channels/x!/transcripts', key)).status).toBe(404);
    hold.release();
    expect((await running).status).toBe(200);
  });

  it('renew the slot of a running call, and restore it when Redis evicts it', async () => {
    const leaseMs = 300;
    const connection = await RedisConnection.open(redis.url);
    const shared = new SharedCounts(connection);
    await until(async () => (await shared.run('return { 1 }', 'any', [])) !== undefined);
    const calls = new CallsInFlight(shared, new Environment(), new RejectionMetrics(new Registry()), leaseMs);
    let end: () => void = () => undefined;
    await calls.acquire('slow-reader', new Promise((resolve) => (end = resolve)));
    const name = 'ct:calls:slow-reader';
    const leaseEnd = async (): Promise<number> => (await entriesOf(name))[0]?.atMs ?? 0;
    const first = await leaseEnd();
    expect(first).toBeGreaterThan(0);
    await until(async () => (await leaseEnd()) > first + 2 * leaseMs);
    await redis.command('DEL', name);
    await until(async () => (await entriesOf(name)).length === 1);
    end();
    await until(async () => (await namesLike('ct:calls:*')).length === 0);
    await calls.beforeApplicationShutdown();
    expect(calls.count).toBe(0);
    connection.onApplicationShutdown();
  });

  it('store no key or count permanently in Redis', async () => {
    const { key } = await replicas[0].organization();
    await replicas[0].get('/usage', key);
    await replicas[0].request('GET', '/usage');
    const names = await namesLike('*');
    expect(names).toHaveLength(2);
    for (const name of names) {
      expect(name).not.toContain('ctk_');
      expect(await redis.command('PTTL', name)).toBeGreaterThan(0);
    }
  });

  it('use local counts when Redis is killed, and each logs it once', async () => {
    const { key } = await replicas[0].organization();
    await spread(RATE - 2, (replica) => replica.get('/usage', key));
    const before = warnings().length;
    await redis.kill();
    // Half of the calls so far were this replica's, and still count.
    const answers = await Promise.all(Array.from({ length: 20 }, () => replicas[0].get('/usage', key)));
    const granted = RATE - (RATE - 2) / 2;
    expect(statuses(answers)).toEqual([...Array<number>(granted).fill(200), ...Array<number>(20 - granted).fill(429)]);
    await until(() => warnings().length > before + 1);
    const lines = warnings().slice(before);
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(['cache_away', 'cache_away']);

    const other = await replicas[0].organization();
    const hold = replicas[0].fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE);
    const calls = Array.from({ length: 5 }, (_, index) =>
      replicas[0].get(`/channels/@bench-1x${index + 50}/transcripts`, other.key),
    );
    let refused = 0;
    for (const call of calls) void call.then(({ status }) => (refused += Number(status === 429)));
    await hold.arrived;
    await until(() => refused === 2);
    hold.release();
    expect(statuses(await Promise.all(calls))).toEqual([200, 200, 200, 429, 429]);
  });

  it('delay no call by more than a second when Redis is unresponsive, and leak no slot', async () => {
    const { key } = await replicas[0].organization();
    const hold = replicas[0].fakeYoutube.hold({ kind: 'timedtext' });
    const running = replicas[0].get('/channels/@bench-1x60/transcripts', key);
    await hold.arrived;
    const slowestMs = await measureWithin(1_000, async () => {
      redis.thaw();
      await until(async () => (await ready(replicas[0])) === 'ok');
      redis.freeze();
      const startedMs = performance.now();
      expect((await replicas[0].get('/channels/x!/transcripts', key)).status).toBe(404);
      return performance.now() - startedMs;
    });
    expect(slowestMs).toBeLessThanOrEqual(1_000);
    hold.release();
    expect((await running).status).toBe(200);
    redis.thaw();
    await until(async () => (await namesLike('ct:calls:*')).length === 0);
  });

  it('log once that Redis refuses writes, and use local counts meanwhile', async () => {
    const { key } = await replicas[0].organization();
    // As after a failover: the connection still leads to the server that has become a replica.
    await redis.command('REPLICAOF', '127.0.0.1', '1');
    const answers = await Promise.all(Array.from({ length: 20 }, () => replicas[0].get('/usage', key)));
    expect(statuses(answers)).toEqual([...Array<number>(RATE).fill(200), ...Array<number>(20 - RATE).fill(429)]);
    expect(warnings().filter((line) => line.includes('limits_by_process'))).toHaveLength(1);
  });

  it('share the failure count of an address', async () => {
    // After all other tests: from here on, new keys of this address are refused, too. One failure is counted already.
    const failures = await spread(ADDRESS_FAILURES - 1, (replica) => replica.request('GET', '/usage'));
    expect(new Set(statuses(failures))).toEqual(new Set([401]));
    expect(statuses(await spread(2, (replica) => replica.request('GET', '/usage')))).toEqual([429, 429]);
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

async function namesLike(pattern: string): Promise<string[]> {
  return (await redis.command('KEYS', pattern)) as string[];
}

async function entriesOf(name: string): Promise<{ entry: string; atMs: number }[]> {
  const reply = (await redis.command('ZRANGE', name, '0', '-1', 'WITHSCORES')) as string[];
  return reply.flatMap((entry, index) => (index % 2 === 0 ? [{ entry, atMs: Number(reply[index + 1]) }] : []));
}

/** Makes every entry of a sorted set older, as if the time had passed. */
async function shift(name: string, seconds: number): Promise<void> {
  for (const { entry, atMs } of await entriesOf(name)) {
    await redis.command('ZADD', name, String(atMs - seconds * 1000), entry);
  }
}
