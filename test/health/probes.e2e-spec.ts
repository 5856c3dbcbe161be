import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ShutdownState } from '../../src/http/shutdown-state.js';
import { redisIsInstalled, RedisServer } from '../cache/redis-server.js';
import { startService, type ServiceResponse, type TestService } from '../service.js';
import { until } from '../until.js';

const ready = (service: TestService): Promise<ServiceResponse> => service.request('GET', '/health/ready');

describe('the probes', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ interruptible: true });
  });
  afterAll(() => service.close());
  afterEach(() => {
    service.link.join();
    Object.assign(service.app.get(ShutdownState), { stopping: false, refusing: false });
  });

  it('name every dependency and whether it is critical', async () => {
    const { status, body } = await ready(service);
    expect([status, body]).toEqual([
      200,
      {
        status: 'ok',
        stopping: false,
        dependencies: { database: { status: 'up', critical: true }, cache: { status: 'up', critical: false } },
      },
    ]);
  });

  it('do not reveal the address of an unavailable dependency', async () => {
    service.link.cut();
    await until(async () => (await ready(service)).status === 503);
    const { body, text } = await ready(service);
    expect(body.dependencies.database).toEqual({ status: 'down', critical: true });
    expect(text).not.toMatch(/127\.0\.0\.1|ECONN|postgres/);
    service.link.join();
    await until(async () => (await ready(service)).status === 200);
  });

  it('respond while the database is unresponsive, and liveness does not query it', async () => {
    await until(async () => (await ready(service)).status === 200);
    service.link.silence();
    await until(async () => (await ready(service)).status === 503);
    // The check of the database does not end before its timeout.
    const order: string[] = [];
    const readiness = ready(service).then(() => order.push('ready'));
    const liveness = await service.request('GET', '/health/live');
    order.push('live');
    await readiness;
    expect([liveness.status, liveness.text]).toEqual([200, '{"status":"ok"}']);
    expect(order).toEqual(['live', 'ready']);
    service.link.join();
    await until(async () => (await ready(service)).status === 200, 20_000);
  });

  it('report not ready while the service still serves, and respond when it is at capacity', async () => {
    const { key } = await service.organization();
    const state = service.app.get(ShutdownState);
    state.stopping = true;
    const leaving = await ready(service);
    expect([leaving.status, leaving.body.status, leaving.body.stopping]).toEqual([503, 'unavailable', true]);
    const served = await service.get('/usage', key);
    expect([served.status, served.headers.connection]).toEqual([200, 'close']);
    state.refusing = true;
    const refused = await service.get('/usage', key);
    expect([refused.status, refused.body.error.code]).toEqual([503, 'service_unavailable']);
    expect((await ready(service)).status).toBe(503);
    expect((await service.request('GET', '/health/live')).status).toBe(200);
  });
});

const describeWithRedis = redisIsInstalled ? describe : describe.skip;
const suffix = redisIsInstalled ? '' : ' (skipped: there is no redis-server on this machine)';

describeWithRedis(`the probes of a service with Redis${suffix}`, () => {
  let redis: RedisServer;
  let service: TestService;

  beforeAll(async () => {
    redis = await RedisServer.start();
    service = await startService({ environment: { REDIS_URL: redis.url } });
  });
  afterAll(async () => {
    await service.close();
    await redis.close();
  });
  beforeEach(() => until(async () => (await ready(service)).body.status === 'ok'));
  afterEach(() => redis.thaw());

  it('stay ready and report degraded while Redis is unavailable, and ok when it is available again', async () => {
    await redis.kill();
    await until(async () => (await ready(service)).body.status === 'degraded');
    const { status, body } = await ready(service);
    expect(status).toBe(200);
    expect(body.dependencies).toEqual({
      database: { status: 'up', critical: true },
      cache: { status: 'down', critical: false },
    });
    await redis.start();
    await until(async () => (await ready(service)).body.status === 'ok');
  });

  it('respond while Redis is connected but unresponsive', async () => {
    redis.freeze();
    await until(async () => (await ready(service)).body.status === 'degraded');
  });

  it('share one query to Redis when they are concurrent', async () => {
    await redis.command('CONFIG', 'RESETSTAT');
    // It responds afterwards to the queries received while it was silent.
    redis.freeze();
    const responses = await Promise.all(Array.from({ length: 60 }, () => ready(service)));
    redis.thaw();
    expect(responses.map(({ body }) => body.status as string)).toEqual(Array<string>(60).fill('degraded'));
    await until(async () => (await ready(service)).body.status === 'ok');
    const stats = String(await redis.command('INFO', 'commandstats'));
    const checks = Number(/cmdstat_set:calls=(\d+)/.exec(stats)?.[1]);
    expect(checks).toBeGreaterThan(0);
    expect(checks).toBeLessThan(30);
  });
});
