import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DataSource } from 'typeorm';
import { ShutdownState } from '../../src/http/server/connections.js';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from '../../src/database/embedded/embedded-postgres.js';
import { copyTestCluster } from '../database/cluster-user.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { useOwnTimeouts } from '../jest/wide-timeouts.js';

const ready = (service: TestService): Promise<ServiceResponse> => service.request('GET', '/health/ready');

describe('the probes', () => {
  let service: TestService;

  beforeAll(async () => {
    // Some connections become silent.
    useOwnTimeouts();
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

  it('ask PostgreSQL at most once a second, however many calls come', async () => {
    const query = jest.spyOn(service.app.get(DataSource), 'query');
    // The clock stands still, a second later, so that what is checked then is soon too old.
    const now = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_000);
    try {
      const snapshots = () => query.mock.calls.filter(([text]) => text.includes('pg_export_snapshot')).length;
      for (let calls = 0; calls < 20; calls += 1) expect((await ready(service)).status).toBe(200);
      await Promise.all(Array.from({ length: 20 }, () => ready(service)));
      expect(snapshots()).toBe(1);
      now.mockReturnValue(performance.now() + 1_000);
      await ready(service);
      expect(snapshots()).toBe(2);
    } finally {
      now.mockRestore();
      query.mockRestore();
    }
    // What was checked then is no longer recent.
    const checkedAtMs = performance.now() + 2_000;
    await until(() => performance.now() > checkedAtMs);
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
    // Again each time: a check within the second before has opened a new connection for the next one.
    await until(async () => {
      service.link.silence();
      return (await ready(service)).status === 503;
    });
    // The check of the database does not end before its timeout.
    const order: string[] = [];
    const readiness = ready(service).then(() => order.push('ready'));
    const liveness = await service.request('GET', '/health/live');
    order.push('live');
    await readiness;
    expect([liveness.status, liveness.text]).toEqual([200, '{"status":"ok"}']);
    expect(order).toEqual(['live', 'ready']);
    service.link.join();
    await until(async () => (await ready(service)).status === 200);
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

describe('readiness', () => {
  it('fails while the database can write no file, as on a full disk, and recovers', async () => {
    const dataDir = await mkdtemp(join(process.env['TEST_FOLDER'] ?? tmpdir(), 'full-disk-'));
    await copyTestCluster(dataDir);
    const embedded = await EmbeddedPostgres.open(dataDir, 'service');
    const service = await startService({ databaseUrl: () => Promise.resolve(embedded.url) });
    try {
      expect((await ready(service)).status).toBe(200);
      await chmod(join(dataDir, 'postgres/pg_snapshots'), 0o500);
      await until(async () => (await ready(service)).body.dependencies.database.status === 'down');
      expect((await ready(service)).body.status).toBe('unavailable');
      await chmod(join(dataDir, 'postgres/pg_snapshots'), 0o700);
      await until(async () => (await ready(service)).body.status === 'ok');
    } finally {
      await service.close();
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
