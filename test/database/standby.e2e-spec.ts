import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DATABASE_TIMEOUTS } from '../../src/database/query-with-deadline.js';
import { EmbeddedPostgres } from '../../src/database/embedded/embedded-postgres.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { copyTestCluster } from './cluster-user.js';
import { runQuery } from './test-database.js';

const CONNECTIONS_MAX = 10;

describe('while the synchronous standby is unreachable', () => {
  let dataDir: string;
  let embedded: EmbeddedPostgres;
  let service: TestService;
  let calls = 0;

  beforeAll(async () => {
    Object.assign(DATABASE_TIMEOUTS, { callMs: 300, connectMs: 1_000, statementMs: 500, responseMs: 700, lockMs: 200 });
    dataDir = await mkdtemp(join(process.env['TEST_FOLDER'] ?? tmpdir(), 'standby-'));
    await copyTestCluster(dataDir);
    embedded = await EmbeddedPostgres.open(dataDir, 'service');
    service = await startService({ databaseUrl: () => Promise.resolve(embedded.url) });
  });
  afterAll(async () => {
    await service.close();
    await embedded.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const standby = async (name: string): Promise<void> => {
    await runQuery(embedded.url, `ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await runQuery(embedded.url, 'SELECT pg_reload_conf()');
  };
  const backends = async (condition = 'true'): Promise<number> =>
    (
      await runQuery(
        embedded.url,
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'channel-transcripts' AND ${condition}`,
      )
    ).length;
  const waiting = (): Promise<number> => backends("wait_event = 'SyncRep'");
  const ready = async () =>
    (await service.request('GET', '/health/ready')).body as {
      status: string;
      dependencies: { database: { status: string } };
    };
  const call = (key: string) => {
    calls += 1;
    return service.get(`/channels/@3-videos-no-${calls}/transcripts`, key);
  };

  it('calls are 503, backends are bounded, the service is not ready, and all of it ends with that', async () => {
    const customers = await Promise.all(
      Array.from({ length: 30 }, () => service.organization({ monthlyLimit: 1_000 })),
    );
    const [first] = customers;
    if (!first) throw new Error('There is no organization.');
    expect((await ready()).status).toBe('ok');
    await standby('gone');
    const seen: number[] = [];
    const statuses = new Set<number>();
    // Several times as many commits as there are connections, each of which waits for the standby.
    await until(async () => {
      for (const { status } of await Promise.all(customers.map(({ key }) => call(key)))) statuses.add(status);
      seen.push(await backends());
      return (await waiting()) >= CONNECTIONS_MAX && seen.length >= 12;
    });
    expect([...statuses]).toEqual([503]);
    expect(Math.max(...seen)).toBeLessThanOrEqual(2 * CONNECTIONS_MAX);
    await until(async () => (await ready()).dependencies.database.status === 'down');
    await standby('');
    await until(async () => (await waiting()) === 0);
    await until(async () => (await ready()).status === 'ok');
    await until(async () => (await call(first.key)).status === 200);
    const usage = async () => (await service.get('/usage', first.key)).body as { used: number; reserved: number };
    await until(async () => (await usage()).reserved === 0);
    expect(await usage()).toMatchObject({ used: 3 });
  });
});
