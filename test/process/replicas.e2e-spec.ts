import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { runCli } from '../admin/run-cli.js';
import { redisIsInstalled, RedisServer } from '../cache/redis-server.js';
import { SCHEMA } from '../../src/database/migrate.js';
import { createTestDatabase, runQuery } from '../database/test-database.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../harness/until.js';
import { Program } from './program.js';

// Several processes are started at once.

const VIDEOS = 3;
const CALLS = 60;
/** The lists of so many begin at a time in two processes: half of the slots, two requests a call. */
const LISTED_AT_ONCE = 24;
const USED_BEFORE = 5;
/** Longer than a lease, which lasts 15 seconds longer than the deadline of its call. */
const LEASE_OVER_MS = 120_000;

const ADMIN_TOKEN = 'an-admin-token-of-the-replicas-42';
const WITHOUT_LIMITS = {
  RATE_LIMIT_PER_MINUTE: '0',
  CALLS_PER_KEY: '0',
  CALLS_PER_ORGANIZATION: '0',
  CALLS_PER_PROCESS: '0',
  UPSTREAM_CONCURRENCY: String(CALLS),
};

let fakeYoutube: FakeYoutube;
let database: QuotaDatabase;
let programs: Program[] = [];
let urls: [string, string];
// The tests below name channels up to 76.
let channels = 100;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
  // The processes of the first block run the migrations.
  const empty = await createTestDatabase();
  await startTwo({ DATABASE_URL: empty.url, ADMIN_TOKEN, ...WITHOUT_LIMITS });
  database = await QuotaDatabase.open(empty);
});
afterAll(async () => {
  await killBoth();
  await fakeYoutube.close();
  await database.close();
});
afterEach(() => fakeYoutube.reset());

/** Starts two processes at once. */
async function startTwo(variables: Record<string, string>): Promise<void> {
  programs = [1, 2].map(() => Program.run('main.js', { YOUTUBE_BASE_URL: fakeYoutube.url, ...variables }));
  const [first = '', second = ''] = await Promise.all(programs.map((program) => program.url()));
  urls = [first, second];
}

async function killBoth(): Promise<void> {
  await Promise.all(programs.map((program) => program.stop('SIGKILL')));
}

const get = (url: string, path: string, key: string): Promise<Response> =>
  fetch(url + path, { headers: { Authorization: `Bearer ${key}` } });

/** A channel that is not cached. */
const newChannel = (videos = VIDEOS): string => `/channels/@${videos}-videos-no-${(channels += 1)}/transcripts`;

async function customer(monthlyLimit: number): Promise<{ id: string; keyId: string; key: string }> {
  const { organizationId } = await database.newCustomer(monthlyLimit);
  const { key, id: keyId } = await database.keys.issue({ organizationId });
  return { id: organizationId, keyId, key };
}

describe('two processes on one database', () => {
  it('run each migration once when they start concurrently on an empty database, and both of them serve', async () => {
    const ready = await Promise.all(urls.map((url) => fetch(`${url}/health/ready`)));
    expect(ready.map(({ status }) => status)).toEqual([200, 200]);
    const applied = await runQuery(database.url, 'SELECT name FROM schema_migrations WHERE number IS NOT NULL');
    const files = await readdir(join(SCHEMA, 'migrations'));
    expect(applied.map(({ name }) => name).sort()).toEqual(files.sort());
  });

  it('log how to create the first organization when there is none', async () => {
    await until(() => programs.every(({ stdout }) => stdout.includes('no_organization')));
    for (const { stdout } of programs) expect(stdout).toContain('npm run cli -- org create');
  });

  it.each([0, 1, 37])(
    `serve and charge exactly %i of ${CALLS} concurrent calls when that is the remaining quota, and refuse the others with 402`,
    async (remaining) => {
      const { id, keyId, key } = await customer(USED_BEFORE + remaining);
      const payer = { organizationId: id, keyId };
      await database.quota.settle(await database.reserved(payer, USED_BEFORE), USED_BEFORE);
      // Held at the listing of the channel, so that they reach the reservation concurrently.
      const hold = fakeYoutube.hold({ kind: 'browse-uploads' }, LISTED_AT_ONCE);
      // A call needs one transcript: the channel has one video, which is not cached.
      const calls = Array.from({ length: CALLS }, (_, index) => get(urls[index % 2 ? 1 : 0], newChannel(1), key));
      await hold.arrived;
      hold.release();
      const responses = await Promise.all(calls);
      const bodies = await Promise.all(
        responses.map((response) => response.json() as Promise<{ summary?: { fetched: number } }>),
      );
      const served = responses.flatMap(({ status }, index) =>
        status === 200 ? [bodies[index]?.summary?.fetched] : [],
      );
      expect(served).toEqual(Array<number>(remaining).fill(1));
      expect(responses.filter(({ status }) => status === 402)).toHaveLength(CALLS - remaining);
      expect(await database.quota.usage(id)).toMatchObject({
        used: USED_BEFORE + remaining,
        reserved: 0,
        remaining: 0,
      });
      expect(await database.quota.verify(id)).toMatchObject({
        exact: true,
        periods: [{ used: USED_BEFORE + remaining, settledCalls: 1 + remaining }],
      });
    },
  );

  it.each<[how: string, revoke: (keyId: string) => Promise<unknown>]>([
    [
      'through one process',
      (keyId) =>
        fetch(`${urls[0]}/admin/keys/${keyId}`, {
          method: 'DELETE',
          headers: { Authorization: `Bearer ${ADMIN_TOKEN}` },
        }),
    ],
    ['by an admin command', (keyId) => runCli(['key', 'revoke', keyId], { DATABASE_URL: database.url })],
  ])('a key revoked %s is refused by both processes from the next call on', async (_how, revoke) => {
    const { key, keyId } = await customer(100);
    const statuses = async (): Promise<number[]> =>
      (await Promise.all(urls.map((url) => get(url, '/usage', key)))).map(({ status }) => status);
    expect(await statuses()).toEqual([200, 200]);
    await revoke(keyId);
    expect(await statuses()).toEqual([401, 401]);
  });

  it('a plan or limit changed through one process applies in the other from the next call on', async () => {
    const { id, key } = await customer(100);
    const change = async (body: object): Promise<void> => {
      const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' };
      const changed = { method: 'PATCH', headers, body: JSON.stringify(body) };
      expect((await fetch(`${urls[0]}/admin/organizations/${id}`, changed)).status).toBe(200);
    };
    const path = `/channels/@${VIDEOS}-videos-no-71/transcripts`;
    await change({ monthlyLimit: VIDEOS - 1 });
    expect((await get(urls[1], path, key)).status).toBe(402);
    await change({ monthlyLimit: VIDEOS });
    expect((await get(urls[1], path, key)).status).toBe(200);
    await change({ plan: 'free' });
    expect((await get(urls[1], path, key)).status).toBe(403);
  });

  // The last ones, because they end the processes.
  it('the reservation of a killed process counts in the other one until its lease ends, which then grants exactly the rest', async () => {
    const { id, key } = await customer(2 * VIDEOS);
    const hold = fakeYoutube.hold({ kind: 'timedtext' });
    const cut = get(urls[0], `/channels/@${VIDEOS}-videos-no-72/transcripts`, key).then((response) => response.text());
    await hold.arrived;
    await programs[0]?.stop('SIGKILL');
    await expect(cut).rejects.toThrow();
    hold.release();
    const usage = async (): Promise<unknown> => (await get(urls[1], '/usage', key)).json();
    expect(await usage()).toMatchObject({ used: 0, reserved: VIDEOS, remaining: VIDEOS });
    const path = (channel: number): string => `/channels/@${VIDEOS}-videos-no-${channel}/transcripts`;
    const call = async (channel: number): Promise<number> => {
      const answer = await get(urls[1], path(channel), key);
      await answer.arrayBuffer();
      return answer.status;
    };
    expect([await call(73), await call(74)]).toEqual([200, 402]);
    await database.clock.stop(new Date(Date.now() + LEASE_OVER_MS));
    expect(await call(74)).toBe(200);
    expect(await call(75)).toBe(402);
    expect(await database.quota.usage(id)).toMatchObject({ used: 2 * VIDEOS, reserved: 0, remaining: 0 });
    expect(await database.quota.verify(id)).toMatchObject({ exact: true });
  });
});

// Skipped without Redis; continuous integration installs it.
(redisIsInstalled ? describe : describe.skip)('two processes with one Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    await killBoth();
    redis = await RedisServer.start();
    await startTwo({ DATABASE_URL: database.url, REDIS_URL: redis.url });
  });
  afterAll(async () => {
    await killBoth();
    await redis.close();
  });

  it('a transcript fetched by one process is free through the other, even when the first was killed', async () => {
    const [payer, next] = [await customer(100), await customer(0)];
    const path = `/channels/@${VIDEOS}-videos-no-76/transcripts`;
    expect(await (await get(urls[0], path, payer.key)).json()).toMatchObject({ summary: { fetched: VIDEOS } });
    await programs[0]?.stop('SIGKILL');
    const requestsBefore = fakeYoutube.requests.list.length;
    expect(await (await get(urls[1], path, next.key)).json()).toMatchObject({
      summary: { cached: VIDEOS, fetched: 0 },
    });
    expect(fakeYoutube.requests.list).toHaveLength(requestsBefore);
  });
});
