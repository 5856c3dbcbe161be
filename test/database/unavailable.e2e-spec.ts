import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createTestDatabase, runQuery } from './test-database.js';
import { DATABASE_TIMEOUTS } from '../../src/database/query-with-deadline.js';
import { EmbeddedPostgres } from '../../src/database/embedded/embedded-postgres.js';
import { copyTestCluster } from './cluster-user.js';

describe('a database that was available', () => {
  /** A role of this file alone, so that it can be locked out. */
  const ROLE = `caller_${randomBytes(6).toString('hex')}`;
  let service: TestService;
  let customer: TestOrganization;
  let database: string;
  let calls = 0;

  beforeAll(async () => {
    service = await startService({
      databaseUrl: async (text) => {
        const url = new URL(text);
        database = url.pathname.slice(1);
        await runQuery(text, `CREATE ROLE ${ROLE} LOGIN PASSWORD 'secret-of-the-test'`);
        await runQuery(text, `GRANT CREATE ON SCHEMA public TO ${ROLE}`);
        // For the extension btree_gin.
        await runQuery(text, `GRANT CREATE ON DATABASE ${database} TO ${ROLE}`);
        [url.username, url.password] = [ROLE, 'secret-of-the-test'];
        return url.href;
      },
    });
    customer = await service.organization({ monthlyLimit: 1_000 });
  });

  afterAll(async () => {
    await service.close();
    const other = await createTestDatabase();
    await runQuery(other.url, `DROP ROLE ${ROLE}`);
    await other.drop();
  });
  /** Connects to another database, since this one may refuse every connection. */
  const request = (statement: string): Promise<unknown> => runQuery(process.env['TEST_DATABASE_URL'] ?? '', statement);

  const disconnect = (): Promise<unknown> =>
    request(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${database}'`);

  /** For a channel that is not cached. */
  const call = (): Promise<ServiceResponse> => {
    calls += 1;
    return service.get(`/channels/@3-videos-no-${calls}/transcripts`, customer.key);
  };

  async function expectUnavailable(response: ServiceResponse): Promise<void> {
    expect([response.status, response.body?.error]).toMatchObject([
      503,
      { code: 'service_unavailable', retryable: true },
    ]);
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    await until(async () => (await service.request('GET', '/health/ready')).status === 503);
    const { dependencies } = (await service.request('GET', '/health/ready')).body;
    expect(dependencies.database.status).toBe('down');
  }

  /** A call succeeds, and all calls are charged exactly. */
  async function expectRecovered(usedBefore: number, fetched = 3): Promise<void> {
    let response = await call();
    await until(async () => response.status === 200 || (response = await call()).status === 200);
    await until(async () => (await usage()).reserved === 0);
    expect(await usage()).toMatchObject({ used: usedBefore + fetched, reserved: 0 });
  }

  const usage = async (): Promise<{ used: number; reserved: number }> =>
    (await service.get('/usage', customer.key)).body as { used: number; reserved: number };

  describe('a database that refuses the login', () => {
    it.each([
      ['of the role (28000)', () => `ALTER ROLE ${ROLE} NOLOGIN`, () => `ALTER ROLE ${ROLE} LOGIN`],
      [
        'of everybody (55000)',
        () => `ALTER DATABASE ${database} ALLOW_CONNECTIONS false`,
        () => `ALTER DATABASE ${database} ALLOW_CONNECTIONS true`,
      ],
    ])('%s is 503, and calls work again without a restart', async (_case, strike, heal) => {
      const { used } = await usage();
      await request(strike());
      await disconnect();
      try {
        await expectUnavailable(await call());
      } finally {
        await request(heal());
      }
      await expectRecovered(used);
    });
  });

  describe('a database server that became read-only', () => {
    it('makes calls 503 and the service not ready, until it accepts writes again', async () => {
      const { used } = await usage();
      await request(`ALTER ROLE ${ROLE} SET default_transaction_read_only = on`);
      await disconnect();
      await until(async () => (await service.get('/usage', customer.key)).status === 200);
      await expectUnavailable(await call());
      await request(`ALTER ROLE ${ROLE} RESET default_transaction_read_only`);
      await disconnect();
      await expectRecovered(used);
    });
  });
});

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
  /** The backends of the service that wait for the standby. */
  const waiting = async (): Promise<number> =>
    (
      await runQuery(
        embedded.url,
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'channel-transcripts' AND wait_event = 'SyncRep'`,
      )
    ).length;
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
    const customers: TestOrganization[] = [];
    // With these timeouts a busy machine fails a statement now and then.
    const create = () => service.organization({ monthlyLimit: 1_000 }).then((made) => customers.push(made));
    while (customers.length < 30) await create().catch(() => undefined);
    const [first] = customers;
    if (!first) throw new Error('There is no organization.');
    await until(async () => (await ready()).status === 'ok');
    await standby('gone');
    const seen: number[] = [];
    const statuses = new Set<number>();
    // Several times as many commits as there are connections, each of which waits for the standby.
    await until(async () => {
      for (const { status } of await Promise.all(customers.map(({ key }) => call(key)))) statuses.add(status);
      // Not those that are refused at this moment, which end at once.
      seen.push(await waiting());
      return Math.max(...seen) >= CONNECTIONS_MAX && seen.length >= 12;
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
