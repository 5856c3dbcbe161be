import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { SlowLine } from './slow-line.js';

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

describe('Redis', () => {
  const PATH = '/channels/@tidewater/transcripts';
  const VIDEOS = 5;
  const FETCHED = { total: VIDEOS, succeeded: VIDEOS, cached: 0, fetched: VIDEOS };
  const CACHED = { total: VIDEOS, succeeded: VIDEOS, cached: VIDEOS, fetched: 0 };

  /** Without the states of the egresses, which are written in the background and belong to no call. */
  async function keysOf(redis: RedisServer): Promise<string[]> {
    return ((await redis.command('KEYS', '*')) as string[]).filter((name) => !name.startsWith('ct:egress'));
  }

  async function readiness(service: TestService): Promise<unknown> {
    const { status, body } = await service.request('GET', '/health/ready');
    return { http: status, status: body.status, cache: body.dependencies.cache };
  }
  const OK = { http: 200, status: 'ok', cache: { status: 'up', critical: false } };
  const DEGRADED = { http: 200, status: 'degraded', cache: { status: 'down', critical: false } };

  const untilReadinessIs = (service: TestService, expected: typeof OK): Promise<void> =>
    until(async () => JSON.stringify(await readiness(service)) === JSON.stringify(expected));

  const used = async (service: TestService, key: string): Promise<unknown> => {
    const { body } = await service.get('/usage', key);
    return { used: body.used, reserved: body.reserved };
  };

  /** The changes of Redis in these lines of the log. */
  const logged = (lines: readonly string[]): string[] =>
    lines.flatMap((line) => /"event":"(cache_(?:away|back))"/.exec(line)?.slice(1) ?? []);

  describeWithRedis(`two instances that share a Redis${suffix}`, () => {
    let redis: RedisServer;
    let one: TestService;
    let other: TestService;

    beforeAll(async () => {
      redis = await RedisServer.start();
      [one, other] = (await Promise.all(
        [1, 2].map(() =>
          startService({
            environment: {
              REDIS_URL: redis.url,
              RATE_LIMIT_PER_MINUTE: 0,
              CALLS_PER_KEY: 0,
              CALLS_PER_ORGANIZATION: 0,
            },
          }),
        ),
      )) as [TestService, TestService];
      await Promise.all([one, other].map((service) => untilReadinessIs(service, OK)));
    });
    afterAll(async () => {
      await one.close();
      await other.close();
      await redis.close();
    });
    beforeEach(async () => {
      one.fakeYoutube.reset();
      other.fakeYoutube.reset();
      await redis.command('FLUSHALL');
    });

    it('share fetched transcripts byte for byte, without another request to the platform', async () => {
      const payer = await one.organization();
      const { key } = await other.organization({ monthlyLimit: 0 });
      const fetched = await one.get(PATH, payer.key);
      const cached = await other.get(PATH, key);
      expect([fetched.body.summary, cached.body.summary]).toMatchObject([FETCHED, CACHED]);
      expect(cached.body.results).toEqual(fetched.body.results.map((entry: object) => ({ ...entry, cached: true })));
      expect(other.fakeYoutube.requests.total).toBe(0);
      expect(await used(one, payer.key)).toEqual({ used: VIDEOS, reserved: 0 });
    });

    it('set an expiry on every entry', async () => {
      const { key } = await one.organization();
      await one.get('/channels/@harbourlight/transcripts', key);
      const ttls = new Map<string, Set<number>>();
      for (const name of await keysOf(redis)) {
        const kind = name.split(':')[1] ?? '';
        const seconds = Math.ceil(Number(await redis.command('PTTL', name)) / 1_000 / 60) * 60;
        ttls.set(kind, (ttls.get(kind) ?? new Set()).add(seconds));
      }
      expect(
        Object.fromEntries([...ttls].map(([kind, seconds]) => [kind, [...seconds].sort((a, b) => a - b)])),
      ).toEqual({
        channel_id: [86_400],
        channel_name: [86_400],
        // For as long as the channel, so that the next read takes over what it states.
        list: [86_400],
        // A deleted video has no date. A week for texts and for their lack: by their dates the videos are older than three days.
        transcript: [3_600, 604_800],
      });
    });

    it('look up the videos of a call in one round trip, cached or not, and again only in their own memory', async () => {
      const [payer, reader] = [await one.organization(), await other.organization()];
      // No other test reads its texts.
      const path = '/channels/@fogsignalradio/transcripts?limit=3';
      const roundTrips = async (service: TestService, key: string, cached = 3): Promise<number> => {
        await redis.command('CONFIG', 'RESETSTAT');
        expect((await service.get(path, key)).body.summary).toMatchObject({ succeeded: 3, cached });
        const stats = String(await redis.command('INFO', 'commandstats'));
        return Number(/cmdstat_mget:calls=(\d+)/.exec(stats)?.[1] ?? 0);
      };
      // The channel's id, the channel and its uploads are read by themselves.
      expect(await roundTrips(one, payer.key, 0)).toBe(3 + 1);
      expect(await roundTrips(other, reader.key)).toBe(3 + 1);
      expect(await roundTrips(other, reader.key)).toBe(0);
      expect(await roundTrips(one, payer.key)).toBe(0);
    });

    it.each<[what: string, channel: number, poison: (name: string) => Promise<unknown>]>([
      ['random bytes', 400, (name) => redis.command('SET', name, randomBytes(64), 'KEEPTTL')],
      ['lists', 401, (name) => redis.command('DEL', name).then(() => redis.command('RPUSH', name, 'a', 'list'))],
    ])('count entries in Redis that became %s as missing, and replace them', async (_what, channel, poison) => {
      const [payer, reader] = [await one.organization(), await other.organization()];
      const path = `/channels/@${VIDEOS}-videos-no-${channel}/transcripts`;
      const { results } = (await one.get(path, payer.key)).body;
      const names = await keysOf(redis);
      expect(names.length).toBe(VIDEOS + 3);
      for (const name of names) await poison(name);
      const fetched = (await other.get(path, reader.key)).body;
      expect(fetched).toMatchObject({ results, summary: FETCHED });
      expect((await other.get(path, reader.key)).body.summary).toMatchObject(CACHED);
      expect(await used(other, reader.key)).toEqual({ used: VIDEOS, reserved: 0 });
    });

    it('send what a call found at its start, also when Redis loses it meanwhile', async () => {
      const accept = 'application/x-ndjson';
      const [payer, reader] = [await one.organization(), await other.organization({ monthlyLimit: 1 })];
      const path = `/channels/@${VIDEOS}-videos-no-${accept.length + 500}/transcripts`;
      const [newest] = (await one.get(path, payer.key)).body.results;
      const [missing = ''] = (await keysOf(redis)).filter((name) => name.includes(`:transcript:${newest.videoId}:`));
      await redis.command('DEL', missing);
      const hold = other.fakeYoutube.hold({ kind: 'timedtext' });
      const running = other.get(path, reader.key, { Accept: accept });
      await hold.arrived;
      await redis.command('FLUSHALL');
      hold.release();
      expect((await running).text).toContain(`"cached":${VIDEOS - 1},"fetched":1}`);
      expect(await used(other, reader.key)).toEqual({ used: 1, reserved: 0 });
    });
  });

  describeWithRedis(`a service whose Redis is unavailable${suffix}`, () => {
    let redis: RedisServer;
    let service: TestService;
    let key: string;
    /** Of other channels in each test, which the service has not cached. */
    let path: string;
    let otherPath: string;
    let channels = 0;
    let linesBefore: number;

    beforeAll(async () => {
      redis = await RedisServer.reserve();
      service = await startService({ environment: { REDIS_URL: redis.url } });
    });
    afterAll(async () => {
      await service.close();
      await redis.close();
    });
    beforeEach(async () => {
      service.fakeYoutube.reset();
      channels += 1;
      path = `/channels/@${VIDEOS}-videos-no-${300 + channels}/transcripts`;
      otherPath = `/channels/@3-videos-no-${300 + channels}/transcripts`;
      linesBefore = service.logs.length;
      ({ key } = await service.organization());
    });

    const loggedNow = (): string[] => logged(service.logs.slice(linesBefore));

    it('from its start on serves calls, and uses Redis as soon as it is available', async () => {
      expect(await readiness(service)).toEqual(DEGRADED);
      expect((await service.get(path, key)).body.summary).toMatchObject(FETCHED);
      expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
      await redis.start();
      await untilReadinessIs(service, OK);
      expect((await service.get(otherPath, key)).body.summary).toMatchObject({ fetched: 3 });
      expect((await keysOf(redis)).filter((name) => name.includes(':transcript:'))).toHaveLength(3);
      expect(logged(service.logs)).toEqual(['cache_away', 'cache_back']);
    });

    describe('during its run', () => {
      beforeEach(async () => {
        if (!redis.running) await redis.start();
        await redis.command('FLUSHALL');
        await untilReadinessIs(service, OK);
        linesBefore = service.logs.length;
      });
      afterEach(() => redis.thaw());

      it('charges nothing twice meanwhile, logs the outage once, and uses Redis again when it is available', async () => {
        await service.get(path, key);
        await redis.kill();
        await untilReadinessIs(service, DEGRADED);
        // What was fetched before is in the memory of the process, and what is fetched meanwhile as well.
        expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
        for (const expected of [{ fetched: 3 }, { cached: 3, fetched: 0 }])
          expect((await service.get(otherPath, key)).body.summary).toMatchObject(expected);
        expect(await used(service, key)).toEqual({ used: VIDEOS + 3, reserved: 0 });
        expect(loggedNow()).toEqual(['cache_away']);
        await redis.start();
        await untilReadinessIs(service, OK);
        // It is empty now, and the memory of the process is not.
        expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
        expect(await used(service, key)).toEqual({ used: VIDEOS + 3, reserved: 0 });
        expect(loggedNow()).toEqual(['cache_away', 'cache_back']);
      });

      it('is not delayed by a Redis that is connected but unresponsive', async () => {
        redis.freeze();
        expect((await service.get(path, key)).body.summary).toMatchObject(FETCHED);
        expect(await readiness(service)).toEqual(DEGRADED);
        expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
        expect(loggedNow()).toEqual(['cache_away']);
        redis.thaw();
        await untilReadinessIs(service, OK);
        expect(loggedNow()).toEqual(['cache_away', 'cache_back']);
        expect(await used(service, key)).toEqual({ used: VIDEOS, reserved: 0 });
      });
    });
  });
});

describe('a Redis that refuses writes', () => {
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
});

describe('a slow connection to Redis', () => {
  /** So slow that the entries of all calls take several times as long as Redis may be silent. */
  const BYTES_PER_SECOND = 400_000;
  const CHANNELS = 8;
  const VIDEOS = 16;
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
});
