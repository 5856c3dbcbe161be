import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';

const VIDEOS = 3;
const PATH = `/channels/@${VIDEOS}-videos-no-60/transcripts`;
const FETCHED = { succeeded: VIDEOS, cached: 0, fetched: VIDEOS };
const CACHED = { succeeded: VIDEOS, cached: VIDEOS, fetched: 0 };

interface Refusal {
  why: string;
  cause: string;
  strike: (redis: RedisServer) => Promise<unknown>;
  heal: (redis: RedisServer) => Promise<unknown>;
}

const REFUSALS: readonly Refusal[] = [
  {
    why: 'it has become a read-only replica',
    cause: 'READONLY',
    strike: (redis) => redis.command('REPLICAOF', '127.0.0.1', '1'),
    heal: (redis) => redis.command('REPLICAOF', 'NO', 'ONE'),
  },
  {
    why: 'its memory is full and it evicts nothing',
    cause: 'OOM',
    strike: (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
    heal: (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '0'),
  },
  {
    why: 'the user may only read',
    cause: 'NOPERM',
    strike: (redis) => redis.command('ACL', 'SETUSER', 'default', '-set'),
    heal: (redis) => redis.command('ACL', 'SETUSER', 'default', '+set'),
  },
];

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

const cacheOf = async (service: TestService): Promise<unknown> => {
  const { status, body } = await service.request('GET', '/health/ready');
  return [status, body.status, body.dependencies.cache.status];
};
const untilCacheIs = (service: TestService, expected: 'up' | 'down'): Promise<void> =>
  until(async () => String(await cacheOf(service)).endsWith(expected));

describeWithRedis(`a Redis that responds but refuses writes${suffix}`, () => {
  let redis: RedisServer;
  let service: TestService;

  beforeEach(async () => {
    redis = await RedisServer.start();
    service = await startService({ environment: { REDIS_URL: redis.url } });
    await untilCacheIs(service, 'up');
  });
  afterEach(async () => {
    await service.close();
    await redis.close();
  });

  const events = (): string[] =>
    service.logs.flatMap((line) => /"event":"(cache_write[^"]*)"/.exec(line)?.slice(1) ?? []);

  it.each(REFUSALS)(
    '($why) charges no repeated call, reports degraded readiness, and is counted and logged once',
    async (refusal) => {
      const { key } = await service.organization();
      await refusal.strike(redis);
      const summaries = [];
      for (let call = 0; call < 3; call += 1) summaries.push((await service.get(PATH, key)).body.summary);
      expect(summaries).toMatchObject([FETCHED, CACHED, CACHED]);
      expect((await service.get('/usage', key)).body).toMatchObject({ used: VIDEOS, reserved: 0 });

      await untilCacheIs(service, 'down');
      expect(await cacheOf(service)).toEqual([200, 'degraded', 'down']);
      const metrics = await scrape(service);
      expect(sumOf(metrics, 'ct_dependency_up', { dependency: 'cache' })).toBe(0);
      expect(sumOf(metrics, 'ct_cache_write_failures_total', { reason: 'refused' })).toBeGreaterThan(VIDEOS);
      expect(events()).toEqual(['cache_writes_refused']);
      expect(service.logs.find((line) => line.includes('cache_writes_refused'))).toContain(refusal.cause);

      await refusal.heal(redis);
      await untilCacheIs(service, 'up');
    },
  );
});
