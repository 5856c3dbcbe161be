import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';
import { SlowLine } from './slow-line.js';

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

/** So slow that the entries of all calls take several times as long as Redis may be silent. */
const BYTES_PER_SECOND = 1_000_000;
const CHANNELS = 8;
const VIDEOS = 40;

const pathTo = (channel: number): string => `/channels/@bench-${VIDEOS}x${channel + 400}/transcripts?limit=${VIDEOS}`;
const channels = Array.from({ length: CHANNELS }, (_channel, index) => index);

describeWithRedis(`a new replica whose Redis is behind a slow line${suffix}`, () => {
  const environment = { RATE_LIMIT_PER_MINUTE: 0, CALLS_PER_KEY: 0, CALLS_PER_ORGANIZATION: 0 };
  let redis: RedisServer;
  let line: SlowLine;
  let filled: TestService;
  let replica: TestService;

  beforeAll(async () => {
    redis = await RedisServer.start();
    line = await SlowLine.open(redis.url, BYTES_PER_SECOND);
    filled = await startService({ environment: { ...environment, REDIS_URL: redis.url } });
    replica = await startService({ environment: { ...environment, REDIS_URL: line.url } });
    await until(async () => {
      const { body } = await replica.request('GET', '/health/ready');
      return body.dependencies.cache.status === 'up';
    });
  });
  afterAll(async () => {
    await filled.close();
    await replica.close();
    await line.close();
    await redis.close();
  });

  it('waits while replies arrive, and fetches and charges nothing that Redis has', async () => {
    const payer = await filled.organization();
    for (const channel of channels)
      expect((await filled.get(pathTo(channel), payer.key)).body.summary).toMatchObject({ succeeded: VIDEOS });
    const { key } = await replica.organization({ monthlyLimit: 0 });
    const before = line.relayedBytes;
    const calls = await Promise.all(channels.map((channel) => replica.get(pathTo(channel), key)));
    expect(line.relayedBytes - before).toBeGreaterThan(2 * BYTES_PER_SECOND);
    expect(calls.map(({ body }): unknown => body.summary)).toEqual(
      calls.map(() => ({ total: VIDEOS, succeeded: VIDEOS, failed: 0, cached: VIDEOS, fetched: 0 })),
    );
    expect(replica.fakeYoutube.requests.total).toBe(0);
  });
});
