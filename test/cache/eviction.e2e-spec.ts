import { expect, it } from '@jest/globals';
import { startService } from '../service.js';
import { until } from '../until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';

const itWithRedis = redisIsInstalled ? it : it.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

itWithRedis(`the service warns of a policy of Redis that evicts entries in use${suffix}`, async () => {
  const redis = await RedisServer.start();
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
  const service = await startService({ environment: { REDIS_URL: redis.url } });
  try {
    await until(async () => (await service.request('GET', '/health/ready')).body.status === 'ok');
    const warned = (): string[] => service.logs.filter((line) => line.includes('cache_eviction_policy'));
    expect(warned()).toEqual([]);
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb');
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'volatile-ttl');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => Promise.resolve(warned().length === 1));
    expect(warned()[0]).toContain('volatile-ttl');
  } finally {
    await service.close();
    await redis.close();
  }
});
