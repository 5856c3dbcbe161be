import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Environment } from '../../src/config/environment.js';
import { isDatabaseUnavailable } from '../../src/database/database-errors.js';
import { openDatabase, type OpenDatabase } from '../../src/database/data-source.js';
import { DATABASE_TIMEOUTS } from '../../src/database/query-with-deadline.js';
import { useOwnTimeouts } from '../jest/wide-timeouts.js';
import { until } from '../harness/until.js';
import { interruptibleLink } from './interruptible-link.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';

describe('the database of a process', () => {
  let database: TestDatabase;
  let opened: OpenDatabase[];

  const open = async (url = database.url): Promise<OpenDatabase> => {
    const environment = Object.assign(new Environment(), { DATABASE_URL: url });
    const one = await openDatabase(environment, { as: 'service', entities: [] });
    opened.push(one);
    return one;
  };

  beforeEach(async () => {
    useOwnTimeouts();
    database = await createTestDatabase('migrated');
    opened = [];
  });

  afterEach(async () => {
    await Promise.all(opened.map((one) => one.close()));
    await database.drop();
  });

  it('a statement of a call times out after five seconds and counts as the database being unavailable', async () => {
    const { dataSource } = await open();
    expect(await dataSource.query('SHOW statement_timeout')).toEqual([{ statement_timeout: '5s' }]);
    const failure: unknown = await dataSource.transaction(async (manager): Promise<unknown> => {
      await manager.query(`SET LOCAL statement_timeout = '20ms'`);
      return manager.query('SELECT pg_sleep(5)').catch((error: unknown) => error);
    });
    expect(isDatabaseUnavailable(failure)).toBe(true);
    // A server that stopped responding is noticed after that.
    expect(dataSource.options).toMatchObject({ extra: { query_timeout: 5_500 } });
  });

  it.each(['a statement', 'a transaction'])('a connection that refuses the write of %s is replaced', async (what) => {
    const { dataSource } = await open();
    const connection = (): Promise<unknown> => dataSource.query('SELECT pg_backend_pid()');
    const write = (): Promise<unknown> =>
      what === 'a statement'
        ? dataSource.query('CREATE TABLE written ()')
        : dataSource.transaction((manager) => manager.query('CREATE TABLE written ()'));
    const before = await connection();
    await dataSource.query('SET default_transaction_read_only = on');
    expect(await connection()).toEqual(before);
    expect(isDatabaseUnavailable(await write().catch((error: unknown) => error))).toBe(true);
    await write();
    expect(await connection()).not.toEqual(before);
  });

  it('no statement is compiled, which takes longer than to run it', async () => {
    expect(await database.query('SHOW jit')).toEqual([{ jit: 'on' }]);
    expect(await (await open()).dataSource.query('SHOW jit')).toEqual([{ jit: 'off' }]);
  });

  it('a commit waits until it is stored, whatever the server sets, unless that is stricter', async () => {
    const { dataSource } = await open();
    const setting = 'SHOW synchronous_commit';
    // The tests' server.
    expect(await database.query(setting)).toEqual([{ synchronous_commit: 'off' }]);
    expect(await dataSource.query(setting)).toEqual([{ synchronous_commit: 'on' }]);
    const name = new URL(database.url).pathname.slice(1);
    await dataSource.query(`ALTER DATABASE "${name}" SET synchronous_commit = remote_apply`);
    expect(await (await open()).dataSource.query(setting)).toEqual([{ synchronous_commit: 'remote_apply' }]);
  });

  it('unresponsive connections are closed and replaced', async () => {
    const link = await interruptibleLink(database.url);
    try {
      DATABASE_TIMEOUTS.responseMs = 1_000;
      const { dataSource } = await open(link.url);
      await Promise.all([1, 2, 3].map(() => dataSource.query('SELECT pg_sleep(0.05)')));
      link.silence();
      const failures = await Promise.all(
        [1, 2, 3].map(() => dataSource.query('SELECT 1').catch((error: unknown) => error)),
      );
      expect(failures.map(isDatabaseUnavailable)).toEqual([true, true, true]);
      await until(() =>
        dataSource.query('SELECT 1').then(
          () => true,
          () => false,
        ),
      );
    } finally {
      await link.close();
    }
  });

  it.each([
    [
      'a port without a listener',
      (url: URL) => (url.port = '1'),
      /^The database at 127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:1\.$/,
    ],
    [
      'a wrong password',
      (url: URL) => (url.password = 'hunter2'),
      /cannot be reached: password authentication failed for user "\w+"\.$/,
    ],
    [
      'a database that does not exist',
      (url: URL) => (url.pathname = '/nowhere'),
      /cannot be reached: database "nowhere" does not exist\.$/,
    ],
  ])('%s is reported in one line without the password', async (_case, change, message) => {
    const url = new URL(database.url);
    const password = url.password;
    change(url);
    const failure = await open(url.href).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'DatabaseUnreachableError', message: expect.stringMatching(message) });
    expect(String(failure)).not.toContain(password);
    expect(String(failure)).not.toContain('hunter2');
  });
});
