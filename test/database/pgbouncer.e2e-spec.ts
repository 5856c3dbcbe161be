import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { Environment } from '../../src/config/environment.js';
import { isConnectionFailure } from '../../src/database/database-errors.js';
import { openDatabase, type OpenDatabase } from '../../src/database/data-source.js';
import { MIGRATIONS } from '../../src/database/migrations/all-migrations.js';
import { JobRun } from '../jobs/job-run.js';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';
import { holdLock } from './lock-table.js';
import { PgBouncer, pgbouncerIsInstalled } from './pgbouncer.js';
import { createTestDatabase, runQuery, type TestDatabase } from './test-database.js';

const describeWith = pgbouncerIsInstalled ? describe : describe.skip;
const suffix = pgbouncerIsInstalled ? '' : ' (skipped: there is no pgbouncer on this machine)';

const serverUrl = (): string => process.env['TEST_DATABASE_URL'] ?? '';

/** Backends of PgBouncer in the database, as the server sees them. */
const serverPids = async (url: string): Promise<unknown[]> =>
  (
    await runQuery(
      url,
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY pid`,
    )
  ).map(({ pid }) => pid);

describeWith(`a database behind PgBouncer in transaction pooling${suffix}`, () => {
  let database: TestDatabase;
  let bouncer: PgBouncer;
  const opened: OpenDatabase[] = [];

  const open = async (): Promise<DataSource> => {
    const environment = Object.assign(new Environment(), { DATABASE_URL: bouncer.url(database.url) });
    const one = await openDatabase(environment, { as: 'service', entities: [], migrations: MIGRATIONS });
    opened.push(one);
    return one.dataSource;
  };

  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
    await bouncer.stop();
    await database.drop();
  });

  it('is migrated once by processes that start concurrently, even with one server connection, which holds no lock afterwards', async () => {
    bouncer = await PgBouncer.start(serverUrl(), { default_pool_size: 1 });
    await Promise.all([open(), open(), open()]);
    const done = `SELECT count(*)::int AS done FROM migrations`;
    expect(await runQuery(database.url, done)).toEqual([{ done: MIGRATIONS.length }]);
    expect(await serverPids(database.url)).toHaveLength(1);
    const locks = `SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    expect(await runQuery(database.url, locks)).toEqual([{ locks: 0 }]);
  });

  it('reports a wrong password as such, although it refuses startup parameters', async () => {
    bouncer = await PgBouncer.start(serverUrl());
    const url = new URL(bouncer.url(database.url));
    url.password = 'wrong';
    const environment = Object.assign(new Environment(), { DATABASE_URL: url.href });
    await expect(openDatabase(environment, { as: 'service', entities: [], migrations: [] })).rejects.toMatchObject({
      name: 'DatabaseUnreachableError',
      message: expect.stringContaining('authentication failed'),
    });
  });

  it.each([
    ['refuses startup parameters', {}],
    ['ignores startup parameters', { ignore_startup_parameters: 'statement_timeout,options' }],
    ['pools sessions', { pool_mode: 'session', default_pool_size: 2 }],
  ])(
    'that %s: every statement and transaction has its timeouts and its isolation, and leaves none behind',
    async (_case, settings) => {
      bouncer = await PgBouncer.start(serverUrl(), { default_pool_size: 1, ...settings });
      await runQuery(
        database.url,
        `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET default_transaction_isolation = 'serializable'`,
      );
      const dataSource = await open();
      const inForce = `SELECT current_setting('statement_timeout') AS statement,
      current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('transaction_isolation') AS isolation`;
      const expected = [{ statement: '5s', idle: '15s', isolation: 'read committed' }];
      expect(await dataSource.query(inForce)).toEqual(expected);
      expect(await dataSource.transaction((manager) => manager.query<unknown>(inForce))).toEqual(expected);
      // The same server connection, used by another client.
      expect(await runQuery(bouncer.url(database.url), inForce)).toEqual([
        { statement: '0', idle: '0', isolation: 'serializable' },
      ]);
    },
  );

  it('rolls back a failed statement and a failed transaction, and continues to work', async () => {
    bouncer = await PgBouncer.start(serverUrl(), { default_pool_size: 1 });
    const dataSource = await open();
    await dataSource.query('CREATE TABLE visits (id integer PRIMARY KEY)');
    await expect(dataSource.query('INSERT INTO visits VALUES (1), (1)')).rejects.toMatchObject({ code: '23505' });
    const failing = dataSource.transaction(async (manager) => {
      await manager.query('INSERT INTO visits VALUES ($1)', [2]);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await dataSource.query('SELECT * FROM visits')).toEqual([]);
    expect(await dataSource.query('INSERT INTO visits VALUES ($1) RETURNING id', [3])).toEqual([{ id: 3 }]);
  });

  it('also closes the connection to a server that became read-only', async () => {
    bouncer = await PgBouncer.start(serverUrl(), { default_pool_size: 1 });
    const dataSource = await open();
    await dataSource.query('CREATE TABLE visits (id integer)');
    const before = await serverPids(database.url);
    const name = new URL(database.url).pathname.slice(1);
    // For connections that begin from now on; and for the one that is there, as a demotion does it.
    await runQuery(bouncer.url(database.url), 'SET default_transaction_read_only = on');
    const failure: unknown = await dataSource.query('INSERT INTO visits VALUES (1)').catch((error: unknown) => error);
    expect(isConnectionFailure(failure)).toBe(true);
    await until(async () => (await serverPids(database.url)).every((pid) => !before.includes(pid)));
    await runQuery(database.url, `ALTER DATABASE ${name} RESET default_transaction_read_only`);
    await dataSource.query('INSERT INTO visits VALUES (2)');
    expect(await dataSource.query('SELECT id FROM visits')).toEqual([{ id: 2 }]);
  });
});

describeWith(`a service behind PgBouncer in transaction pooling${suffix}`, () => {
  let bouncer: PgBouncer;
  let service: TestService;
  beforeAll(async () => {
    bouncer = await PgBouncer.start(serverUrl(), { default_pool_size: 5 });
    service = await startService({
      databaseUrl: (url) => Promise.resolve(bouncer.url(url)),
      // Polling `/usage` exceeds the default limit.
      environment: { RATE_LIMIT_PER_MINUTE: 0 },
    });
  });
  afterAll(async () => {
    await service.close();
    await bouncer.stop();
  });

  it('serves concurrent calls and charges each exactly', async () => {
    const { id, key } = await service.organization({ monthlyLimit: 1_000 });
    const calls = Array.from({ length: 5 }, (_call, index) => `/channels/@bench-3x${index + 1}/transcripts`);
    // The first call loads the YouTube adapter, which blocks the process from reading the database's responses meanwhile.
    const { key: other } = await service.organization();
    await until(async () => (await service.get('/channels/@bench-1x1/transcripts', other)).status === 200, 20_000);
    const responses = await Promise.all(calls.map((path) => service.get(path, key)));
    expect(responses.map(({ status }) => status)).toEqual(calls.map(() => 200));
    await until(async () => (await service.get('/usage', key)).body.reserved === 0);
    expect((await service.get('/usage', key)).body).toMatchObject({ organization: id, used: 15, reserved: 0 });
  });

  it('runs an archive job to its end and charges what it fetched', async () => {
    const run = await JobRun.create(service, await service.organization(), '@bench-60x2');
    await run.until('completed');
    expect((await run.verify()).summary).toMatchObject({ total: 60, fetched: 60, pending: 0 });
  });

  it('responds 503 for a locked organization, and charges it exactly once the lock is released', async () => {
    const { id, key } = await service.organization();
    const path = '/channels/@bench-3x77/transcripts';
    const release = await holdLock(service.databaseUrl, `SELECT 1 FROM organizations WHERE id = '${id}' FOR UPDATE`);
    expect(await service.get(path, key)).toMatchObject({ status: 503 });
    await release();
    expect((await service.get(path, key)).status).toBe(200);
    await until(async () => (await service.get('/usage', key)).body.reserved === 0);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 3, reserved: 0 });
  });
});
