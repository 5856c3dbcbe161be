import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';
import { CACHE_SECRET, signedEntries } from './signed-entries.js';

const PATH = '/channels/@tidewater/transcripts';
const VIDEOS = 5;
const OTHER_SECRET = 'another-secret-of-thirty-two-characters';

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

describeWithRedis(`entries of a shared cache${suffix}`, () => {
  let redis: RedisServer;
  /** Fills the cache. */
  let one: TestService;
  /** Reads it: what it has in its own memory is only what it has verified. */
  let other: TestService;
  /** With another secret. */
  let stranger: TestService;
  let genuine: any;
  let key: string;

  beforeAll(async () => {
    redis = await RedisServer.start();
    const start = (secret: string): Promise<TestService> =>
      startService({ environment: { REDIS_URL: redis.url, CACHE_SECRET: secret, RATE_LIMIT_PER_MINUTE: 0 } });
    [one, other, stranger] = await Promise.all([start(CACHE_SECRET), start(CACHE_SECRET), start(OTHER_SECRET)]);
    for (const service of [one, other, stranger])
      await until(async () => (await service.request('GET', '/health/ready')).body.status === 'ok');
    ({ key } = await other.organization());
  });
  afterAll(async () => {
    await Promise.all([one, other, stranger].map((service) => service.close()));
    await redis.close();
  });
  beforeEach(async () => {
    await redis.command('FLUSHALL');
    genuine = (await one.get(PATH, (await one.organization()).key)).body;
  });

  /** Without the states of the egresses, which belong to no call. */
  const names = async (): Promise<string[]> =>
    ((await redis.command('KEYS', 'ct*')) as string[]).filter((name) => !name.startsWith('ct:egress'));
  const texts = async (): Promise<string[]> => (await names()).filter((name) => name.endsWith(':json'));
  const results = (body: any): unknown => body.results.map((entry: object) => ({ ...entry, cached: null }));
  const unreadable = async (service: TestService): Promise<number> =>
    sumOf(await scrape(service), 'ct_cache_unreadable_entries_total');

  it('signed with another secret are counted as misses and never served', async () => {
    const before = await unreadable(other);
    const forger = await signedEntries(redis, OTHER_SECRET);
    const entries = await signedEntries(redis);
    for (const name of await names()) {
      if (name.endsWith(':json')) await forger.writeText(name, Buffer.from('{"en":[{"text":"forged"}]}'));
      else await forger.write(name, await entries.read(name));
    }
    const { status, body } = await other.get(PATH, key);
    expect([status, body.summary]).toMatchObject([200, { fetched: VIDEOS, failed: 0 }]);
    expect(results(body)).toEqual(results(genuine));
    // The channel's id, the channel, its uploads, and each video, which is looked up again before it is fetched.
    expect((await unreadable(other)) - before).toBe(3 + 2 * VIDEOS);
  });

  it('are rejected under the key of another entry of the same kind', async () => {
    const [first = '', ...rest] = await texts();
    const known = first.replace(/:json$/, '');
    for (const text of rest) {
      await redis.command('SET', text.replace(/:json$/, ''), await redis.bytes(known));
      await redis.command('SET', text, await redis.bytes(first));
    }
    const { body } = await other.get(PATH, key);
    expect(body.summary).toMatchObject({ cached: 1, fetched: VIDEOS - 1 });
    expect(results(body)).toEqual(results(genuine));
  });

  it('are misses with a missing or truncated signature', async () => {
    const [text = ''] = await texts();
    const name = text.replace(/:json$/, '');
    const stored = await redis.bytes(name);
    for (const bytes of [stored.subarray(16), stored.subarray(24), stored.subarray(0, 15), stored.subarray(1)]) {
      await redis.command('SET', name, bytes);
      const { body } = await other.get(PATH, key);
      expect(body.summary).toMatchObject({ cached: VIDEOS - 1, fetched: 1 });
      expect(results(body)).toEqual(results(genuine));
    }
  });

  it('are misses after a change of the secret, without further effects', async () => {
    const { key: strangersKey } = await stranger.organization();
    const { status, body } = await stranger.get(PATH, strangersKey);
    expect([status, body.summary]).toMatchObject([200, { fetched: VIDEOS, failed: 0 }]);
    expect((await stranger.get(PATH, strangersKey)).body.summary).toMatchObject({ cached: VIDEOS });
    // Each service logs it once, not per entry; in one process they share a logger.
    const logs = [one, other, stranger].flatMap((service) => service.logs);
    expect(logs.filter((line) => line.includes('cache_entry_unreadable')).length).toBeLessThanOrEqual(2);
  });

  it('are shared by services that derive the secret from the same DATABASE_URL', async () => {
    const environment = { REDIS_URL: redis.url, DATABASE_URL: one.databaseUrl };
    const [first, second] = await Promise.all([startService({ environment }), startService({ environment })]);
    try {
      for (const service of [first, second])
        await until(async () => (await service.request('GET', '/health/ready')).body.status === 'ok');
      const { key: firstKey } = await first.organization();
      const path = '/channels/@bench-2x70/transcripts';
      expect((await first.get(path, firstKey)).body.summary).toMatchObject({ fetched: 2 });
      expect((await second.get(path, firstKey)).body.summary).toMatchObject({ cached: 2 });
      expect((await other.get(path, key)).body.summary).toMatchObject({ fetched: 2 });
    } finally {
      await Promise.all([first.close(), second.close()]);
    }
  });
});
