import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';

const RATE = 10;

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

describeWithRedis(`a Redis that evicts by allkeys-lru${suffix}`, () => {
  let redis: RedisServer;
  let one: TestService;
  let other: TestService;

  beforeAll(async () => {
    redis = await RedisServer.start();
    // Exact, where Redis usually looks at five entries and evicts the oldest of them.
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    await redis.command('CONFIG', 'SET', 'maxmemory-samples', '64');
    const environment = { REDIS_URL: redis.url, RATE_LIMIT_PER_MINUTE: RATE };
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
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await redis.command('FLUSHALL');
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
