import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SharedCache } from '../../src/cache/shared-cache.js';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';
import { CACHE_SECRET } from './signed-entries.js';

const VIDEOS = 6;
const FILLER = Buffer.alloc(20_000);
const RATE = 10;

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

describeWithRedis(`a Redis that evicts by allkeys-lru${suffix}`, () => {
  let redis: RedisServer;
  let one: TestService;
  let other: TestService;

  /** The path of a channel of each test, which is not cached when the test starts. */
  let hot: string;
  let tests = 0;

  beforeAll(async () => {
    redis = await RedisServer.start();
    // Exact, where Redis usually looks at five entries and evicts the oldest of them.
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    await redis.command('CONFIG', 'SET', 'maxmemory-samples', '64');
    const environment = { REDIS_URL: redis.url, CACHE_SECRET, RATE_LIMIT_PER_MINUTE: RATE };
    [one, other] = await Promise.all([startService({ environment }), startService({ environment })]);
    for (const service of [one, other])
      await until(async () => (await service.request('GET', '/health/ready')).body.status === 'ok');
  });
  afterAll(async () => {
    await one.close();
    await other.close();
    await redis.close();
  });
  beforeEach(async () => {
    hot = `/channels/@bench-${VIDEOS}x${(tests += 1) + 300}/transcripts`;
    // What the test before used would return to Redis later.
    for (const service of [one, other]) await service.app.get(SharedCache).sendTouches();
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await redis.command('FLUSHALL');
  });

  const keys = async (pattern: string): Promise<string[]> => (await redis.command('KEYS', pattern)) as string[];
  const idleSeconds = async (pattern: string): Promise<number[]> =>
    Promise.all((await keys(pattern)).map(async (name) => Number(await redis.command('OBJECT', 'IDLETIME', name))));
  const untilIdle = (pattern: string): Promise<void> =>
    until(async () => Math.min(...(await idleSeconds(pattern))) >= 1, 10_000);
  async function fill(name: string, count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) await redis.command('SET', `${name}:${index}`, FILLER);
  }

  it('retains texts that one process serves from local copies, for the other processes', async () => {
    const { key } = await one.organization();
    await one.get(hot, key);
    await untilIdle('ct*:json');
    await fill('newer', 50);
    await untilIdle('newer:*');
    expect((await one.get(hot, key)).body.summary).toMatchObject({ cached: VIDEOS });
    // As is done every few seconds.
    await one.app.get(SharedCache).sendTouches();
    const usedBytes = Number(/^used_memory:(\d+)/m.exec(String(await redis.command('INFO', 'memory')))?.[1]);
    await redis.command('CONFIG', 'SET', 'maxmemory', String(usedBytes));
    await fill('newest', 30);
    expect((await keys('newer:*')).length).toBeLessThan(40);
    const reader = await other.organization({ monthlyLimit: 0 });
    const { status, body } = await other.get(hot, reader.key);
    expect([status, body.summary]).toMatchObject([200, { cached: VIDEOS, fetched: 0 }]);
  });

  it('regains an evicted text that a process still uses', async () => {
    const { key } = await one.organization();
    await one.get(hot, key);
    for (const name of await keys('ct*:json')) await redis.command('DEL', name);
    await one.get(hot, key);
    await one.app.get(SharedCache).sendTouches();
    expect(await keys('ct*:json')).toHaveLength(VIDEOS);
    const reader = await other.organization({ monthlyLimit: 0 });
    expect((await other.get(hot, reader.key)).body.summary).toMatchObject({ cached: VIDEOS, fetched: 0 });
  });

  it('does not charge a call for a text whose other encoding is still cached', async () => {
    const { key } = await one.organization();
    await one.get(hot, key);
    await fetch(`${one.url}${hot}`, { headers: { Authorization: `Bearer ${key}`, 'Accept-Encoding': 'gzip' } }).then(
      (response) => response.text(),
    );
    expect(await keys('ct*:deflated')).toHaveLength(VIDEOS);
    for (const name of await keys('ct*:json')) await redis.command('DEL', name);
    const reader = await other.organization({ monthlyLimit: 0 });
    const [before, after] = [await one.get(hot, key), await other.get(hot, reader.key)];
    expect(after.body).toEqual(before.body);
  });

  it('does not reset the rate limit of a key when it evicts its counts', async () => {
    const { key, keyId } = await one.organization();
    const shared = `ct:rate:${keyId}`;
    const call = async (service: TestService): Promise<number> => (await service.get('/usage', key)).status;
    // The replica's own database knows nothing of the key, so both counts are made by the one process here.
    for (let calls = 0; calls < RATE - 2; calls += 1) expect(await call(one)).toBe(200);
    await redis.command('DEL', shared);
    expect([await call(one), await call(one), await call(one)]).toEqual([200, 200, 429]);
    expect(await redis.command('ZCARD', shared)).toBe(RATE);
  });

  // The last one, because it changes the policy.
  it('logs a warning at startup that another policy evicts entries in use', async () => {
    // In one process they share a logger.
    const warned = (): string[] =>
      [one, other].flatMap(({ logs }) => logs.filter((line) => line.includes('cache_eviction_policy')));
    expect(warned()).toEqual([]);
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb');
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'volatile-ttl');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => Promise.resolve(warned().length === 2));
    expect(warned()[0]).toContain('volatile-ttl');
  });
});
