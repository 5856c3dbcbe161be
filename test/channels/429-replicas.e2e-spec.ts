import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { redisIsInstalled, RedisServer } from '../cache/redis-server.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

const RATE = 12;

let redis: RedisServer;
let replicas: [TestService, TestService];

// Skipped without Redis; continuous integration installs it.
(redisIsInstalled ? describe : describe.skip)('two replicas with one Redis', () => {
  beforeAll(async () => {
    redis = await RedisServer.start();
    const limits = { REDIS_URL: redis.url, RATE_LIMIT_PER_MINUTE: RATE };
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
    // Until both have noticed, a readiness of before is no sign that they use the new one.
    await until(async () => (await Promise.all(replicas.map(ready))).every((status) => status === 'degraded'));
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

  it('grant an organization exactly ten times the rate of a key, for any distribution of its keys and calls', async () => {
    const { id } = await replicas[0].organization();
    const issue = () => replicas[0].app.get(ApiKeysService).issue({ organizationId: id });
    const keys = await Promise.all(Array.from({ length: 12 }, issue));
    const responses = await spread(12 * RATE, (replica, index) => replica.get('/usage', keys[index % 12]?.key ?? ''));
    expect(statuses(responses)).toEqual([...Array<number>(10 * RATE).fill(200), ...Array<number>(2 * RATE).fill(429)]);
  });

  it('use local counts when Redis is killed, and each logs it once', async () => {
    const { key } = await replicas[0].organization();
    await spread(RATE - 2, (replica) => replica.get('/usage', key));
    const before = warnings().length;
    await redis.kill();
    // The count of the process starts at zero.
    const answers = await Promise.all(Array.from({ length: 20 }, () => replicas[0].get('/usage', key)));
    expect(statuses(answers)).toEqual([...Array<number>(RATE).fill(200), ...Array<number>(20 - RATE).fill(429)]);
    await replicas[1].get('/usage', key);
    await until(() => warnings().length > before + 1);
    const lines = warnings().slice(before);
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(['cache_away', 'cache_away']);
  });

  it('hold back no call while Redis is unresponsive', async () => {
    const { key } = await replicas[0].organization();
    redis.freeze();
    // It responds while Redis is still frozen.
    expect((await replicas[0].get('/channels/x!/transcripts', key)).status).toBe(404);
    redis.thaw();
  });

  it('use local counts while Redis refuses writes', async () => {
    const { key } = await replicas[0].organization();
    // As after a failover: the connection still leads to the server that has become a replica.
    await redis.command('REPLICAOF', '127.0.0.1', '1');
    const answers = await Promise.all(Array.from({ length: 20 }, () => replicas[0].get('/usage', key)));
    expect(statuses(answers)).toEqual([...Array<number>(RATE).fill(200), ...Array<number>(20 - RATE).fill(429)]);
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
