import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ValueSigner } from '../../src/cache/cache-signatures.js';
import { RedisConnection } from '../../src/cache/redis-connection.js';
import { SharedDocuments } from '../../src/cache/shared-documents.js';
import { lockTable } from '../database/lock-table.js';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';
import { redisIsInstalled, RedisServer } from './redis-server.js';
import { CACHE_SECRET, signedEntries } from './signed-entries.js';

const PATH = '/channels/@tidewater/transcripts';
const VIDEOS = 5;
const FETCHED = { total: VIDEOS, succeeded: VIDEOS, cached: 0, fetched: VIDEOS };
const CACHED = { total: VIDEOS, succeeded: VIDEOS, cached: VIDEOS, fetched: 0 };

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

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
          environment: { REDIS_URL: redis.url, CACHE_SECRET, RATE_LIMIT_PER_MINUTE: 0, CALLS_PER_KEY: 0 },
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
    expect(Object.fromEntries([...ttls].map(([kind, seconds]) => [kind, [...seconds].sort((a, b) => a - b)]))).toEqual({
      id: [86_400],
      channel: [86_400],
      uploads: [120],
      // The reason for a missing transcript is cached for less time than a transcript, and the entry about a text expires
      // before the text does.
      transcript: [3_600, 86_400, 87_000],
    });
  });

  it('look up the videos of a call in one round trip, and read an unchanged text once', async () => {
    const [payer, reader] = [await one.organization(), await other.organization()];
    // No other test reads its texts.
    const path = '/channels/@fogsignalradio/transcripts?limit=3';
    await one.get(path, payer.key);
    const roundTrips = async (service: TestService, key: string): Promise<number> => {
      await redis.command('CONFIG', 'RESETSTAT');
      expect((await service.get(path, key)).body.summary).toMatchObject({ succeeded: 3, cached: 3 });
      const stats = String(await redis.command('INFO', 'commandstats'));
      const calls = (command: string) => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
      // The state of an egress is replaced by a script, at any time.
      expect(calls('set')).toBeLessThanOrEqual(calls('eval'));
      return calls('mget');
    };
    // The channel's id, the channel and its uploads are read by themselves.
    expect(await roundTrips(other, reader.key)).toBe(3 + 2);
    expect(await roundTrips(other, reader.key)).toBe(3 + 1);
    expect(await roundTrips(one, payer.key)).toBe(3 + 1);
  });

  it('never send a local copy after the text has changed', async () => {
    const [payer, reader] = [await one.organization(), await other.organization()];
    await one.get(PATH, payer.key);
    const before = (await other.get(PATH, reader.key)).body;
    const names = await keysOf(redis);
    const head = names.find((name) => name.includes(':transcript:') && !name.endsWith(':json')) ?? '';
    const entries = await signedEntries(redis);
    const { key, value } = await entries.read(head);
    const changed = Buffer.from('{"en":[]}');
    await entries.writeText(`${head}:json`, changed);
    await entries.write(head, { key, value: { ...value, jsonBytes: changed.length, crc32: crc32(changed) } });
    const after = (await other.get(PATH, reader.key)).body;
    const videoId = head.split(':')[2];
    for (const [index, entry] of after.results.entries())
      expect(entry.transcript).toEqual(entry.videoId === videoId ? { en: [] } : before.results[index].transcript);
    expect(after.summary).toMatchObject(CACHED);
  });

  it('treat unreadable entries as missing and replace them', async () => {
    const { key } = await one.organization();
    await one.get(PATH, key);
    const names = await keysOf(redis);
    expect(names.length).toBe(2 * VIDEOS + 3);
    const poisons: ((name: string) => Promise<unknown>)[] = [
      (name) => redis.command('SET', name, randomBytes(64)),
      (name) => redis.command('SET', name, ''),
      (name) => redis.command('SET', name, '{"details":{}}\n{"en":[]}'),
      async (name) => {
        await redis.command('DEL', name);
        await redis.command('RPUSH', name, 'a', 'list');
      },
      async (name) => {
        const length = Number(await redis.command('STRLEN', name));
        await redis.command('SETRANGE', name, String(length), '}');
      },
    ];
    for (const poison of poisons) {
      for (const name of names) await poison(name);
      const { status, body } = await one.get(PATH, key);
      expect([status, body.summary]).toMatchObject([200, FETCHED]);
      expect((await one.get(PATH, key)).body.summary).toMatchObject(CACHED);
    }
    expect(await used(one, key)).toEqual({ used: VIDEOS * (1 + poisons.length), reserved: 0 });
  });

  describe('a text that was evicted', () => {
    /** Of another channel in each test: the instance that is called has no copy of its texts. */
    let path: string;
    let before: any;
    let channels = 0;

    beforeEach(async () => {
      channels += 1;
      path = `/channels/@bench-${VIDEOS}x${200 + channels}/transcripts`;
      const { key } = await other.organization();
      before = (await other.get(path, key)).body;
    });

    /** Of this channel only: a service can store a text of the test before after its response. */
    const texts = async (): Promise<string[]> => {
      const ids: string[] = before.results.map(({ videoId }: { videoId: string }) => videoId);
      return (await keysOf(redis)).filter((name) => name.endsWith(':json') && ids.some((id) => name.includes(id)));
    };

    /** A damaged text is there for the look-up and missing when it is read, like one that is evicted in between. */
    const damage = (name: string): Promise<unknown> => redis.command('SETRANGE', name, '5', 'x');

    const reservations = (organizationId: string): Promise<Record<string, unknown>[]> =>
      one.query(`SELECT required, charged FROM quota_reservations WHERE organization_id = '${organizationId}'`);

    it.each(['identity', 'gzip'])('is fetched and charged like one that was never cached (%s)', async (encoding) => {
      const { key } = await one.organization();
      const [evicted = '', damaged = ''] = await texts();
      await redis.command('DEL', evicted);
      await damage(damaged);
      const url = `${one.url}${path}`;
      const response = await fetch(url, { headers: { Authorization: `Bearer ${key}`, 'Accept-Encoding': encoding } });
      const after = (await response.json()) as typeof before;
      expect(after.summary).toEqual({ total: VIDEOS, succeeded: VIDEOS, failed: 0, cached: VIDEOS - 2, fetched: 2 });
      const bare = (body: typeof before): unknown => body.results.map((entry: object) => ({ ...entry, cached: null }));
      expect(bare(after)).toEqual(bare(before));
      expect(await used(one, key)).toEqual({ used: 2, reserved: 0 });
      expect((await one.get(path, key)).body.summary).toMatchObject(CACHED);
    });

    it('before the call counts in its reservation, and the call is refused in advance without quota', async () => {
      const { key } = await one.organization({ monthlyLimit: 1 });
      for (const evicted of (await texts()).slice(0, 2)) await redis.command('DEL', evicted);
      const { status, body } = await one.get(path, key);
      expect([status, body.error]).toMatchObject([402, { code: 'plan_limit_exceeded', required: 2 }]);
      expect(one.fakeYoutube.requests.count({ kind: ['player', 'timedtext'] })).toBe(0);
    });

    it.each(['application/json', 'application/x-ndjson'])(
      'during the call is fetched concurrently with all other evicted texts, under one reservation (%s)',
      async (accept) => {
        const { id, key } = await one.organization();
        for (const name of await texts()) await damage(name);
        const hold = one.fakeYoutube.hold({ kind: 'timedtext' }, VIDEOS);
        const running = one.get(path, key, { Accept: accept });
        // With sequential fetches the second would not be requested before the first is complete.
        await hold.arrived;
        hold.release();
        expect((await running).text).toContain(`"cached":0,"fetched":${VIDEOS}}`);
        expect(await reservations(id)).toEqual([{ required: VIDEOS, charged: VIDEOS }]);
        expect(await used(one, key)).toEqual({ used: VIDEOS, reserved: 0 });
      },
    );

    it('during the call is never fetched for free: only as many texts as the quota allows are fetched', async () => {
      const { key } = await one.organization({ monthlyLimit: 1 });
      for (const name of (await texts()).slice(0, 2)) await damage(name);
      const { status, body } = await one.get(path, key);
      expect([status, body.summary]).toEqual([200, { total: VIDEOS, succeeded: 4, failed: 1, cached: 3, fetched: 1 }]);
      expect(body.results.flatMap((entry: { error?: object }) => entry.error ?? [])).toEqual([
        { code: 'upstream_failure', message: expect.stringContaining('evicted'), retryable: true },
      ]);
      expect(await used(one, key)).toEqual({ used: 1, reserved: 0 });
      const refused = await one.get(path, key);
      expect([refused.status, refused.body.error.code]).toEqual([402, 'plan_limit_exceeded']);
    });

    it('in one encoding is derived from the other, without a charge', async () => {
      const { key } = await one.organization({ monthlyLimit: 0 });
      await other.get(path, (await other.organization()).key, { 'Accept-Encoding': 'gzip' });
      for (const name of await texts()) await redis.command('DEL', name);
      const { body } = await one.get(path, key);
      expect(body.results).toEqual(before.results.map((entry: object) => ({ ...entry, cached: true })));
    });

    it('does not delay the response until a stalled database has settled it', async () => {
      const { id, key } = await one.organization();
      const [name = ''] = await texts();
      await damage(name);
      const hold = one.fakeYoutube.hold({ kind: 'timedtext' });
      const running = one.get(path, key);
      await hold.arrived;
      const release = await lockTable(one.databaseUrl, 'quota_reservations');
      try {
        hold.release();
        expect((await running).body.summary).toMatchObject({ succeeded: VIDEOS, fetched: 1 });
      } finally {
        await release();
      }
      await until(async () => (await reservations(id))[0]?.['charged'] === 1);
    });
  });

  // The last of this Redis: the instances reconnect to it after it did not respond.
  describe('the claims of two replicas', () => {
    let connections: RedisConnection[];
    let mine: SharedDocuments;
    let theirs: SharedDocuments;

    beforeAll(async () => {
      connections = await Promise.all([1, 2].map(() => RedisConnection.open(redis.url)));
      const signer = new ValueSigner(Buffer.from(CACHE_SECRET));
      [mine, theirs] = connections.map((connection) => new SharedDocuments({ connection, signer })) as [
        SharedDocuments,
        SharedDocuments,
      ];
      for (const connection of connections)
        await until(() => connection.run((client) => client.ping()).then(Boolean, () => false));
    });
    afterAll(() => connections.forEach((connection) => connection.onApplicationShutdown()));

    it('exclude each other until they are released', async () => {
      const release = await mine.claim('released', 60_000);
      expect(await theirs.claim('released', 60_000)).toBeNull();
      await release?.();
      expect(await theirs.claim('released', 60_000)).not.toBeNull();
    });

    it('that have expired release no later claim of another replica', async () => {
      const release = await mine.claim('expired', 60_000);
      await redis.command('DEL', 'expired');
      expect(await theirs.claim('expired', 60_000)).not.toBeNull();
      await release?.();
      expect(await mine.claim('expired', 60_000)).toBeNull();
    });

    it('that were granted while Redis did not respond are released once it does, and no others', async () => {
      expect(await theirs.claim('of another', 60_000)).not.toBeNull();
      redis.freeze();
      const [own, refused] = await Promise.all([mine.claim('own', 60_000), mine.claim('of another', 60_000)]);
      redis.thaw();
      expect([own, refused]).not.toContain(null);
      await until(async () => {
        await own?.();
        return (await theirs.claim('own', 60_000)) !== null;
      });
      await refused?.();
      expect(await theirs.claim('of another', 60_000)).toBeNull();
    });
  });
});

describeWithRedis(`a service whose Redis is unavailable${suffix}`, () => {
  let redis: RedisServer;
  let service: TestService;
  let key: string;
  /** Of other channels in each test, of which the service has no copies. */
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
    path = `/channels/@bench-${VIDEOS}x${300 + channels}/transcripts`;
    otherPath = `/channels/@bench-3x${300 + channels}/transcripts`;
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
    expect((await keysOf(redis)).filter((name) => name.endsWith(':json'))).toHaveLength(3);
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
      // What was fetched before is served from copies, and what is fetched meanwhile as well.
      expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
      for (const expected of [{ fetched: 3 }, { cached: 3, fetched: 0 }])
        expect((await service.get(otherPath, key)).body.summary).toMatchObject(expected);
      expect(await used(service, key)).toEqual({ used: VIDEOS + 3, reserved: 0 });
      expect(loggedNow()).toEqual(['cache_away']);
      await redis.start();
      await untilReadinessIs(service, OK);
      // It is empty now, which is accepted: an operator may have emptied it on purpose.
      expect((await service.get(path, key)).body.summary).toMatchObject(FETCHED);
      expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
      expect((await keysOf(redis)).filter((name) => name.endsWith(':json'))).toHaveLength(VIDEOS);
      expect(await used(service, key)).toEqual({ used: 2 * VIDEOS + 3, reserved: 0 });
      expect(loggedNow()).toEqual(['cache_away', 'cache_back']);
    });

    it('is not delayed by a Redis that is connected but unresponsive', async () => {
      redis.freeze();
      const startedAtMs = performance.now();
      expect((await service.get(path, key)).body.summary).toMatchObject(FETCHED);
      // One response times out after a second, or two when the failure is detected during the call.
      expect(performance.now() - startedAtMs).toBeLessThan(8_000);
      expect(await readiness(service)).toEqual(DEGRADED);
      expect((await service.get(path, key)).body.summary).toMatchObject(CACHED);
      expect(loggedNow()).toEqual(['cache_away']);
      redis.thaw();
      await untilReadinessIs(service, OK);
      expect(loggedNow()).toEqual(['cache_away', 'cache_back']);
      expect(await used(service, key)).toEqual({ used: VIDEOS, reserved: 0 });
    });

    it('completes and charges the running call', async () => {
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, VIDEOS);
      const running = service.get(path, key);
      await hold.arrived;
      await redis.kill();
      hold.release();
      expect((await running).body.summary).toMatchObject(FETCHED);
      expect(await used(service, key)).toEqual({ used: VIDEOS, reserved: 0 });
    });
  });
});
