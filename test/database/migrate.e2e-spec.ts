import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { migrateDatabase } from '../../src/database/data-source.js';
import { lockMigrations } from '../../src/database/migrate.js';
import { Client } from 'pg';
import { startService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { holdLock, WAITING_FOR_LOCKS } from './lock-table.js';
import { SchemaFolder } from './schema-folder.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';

const FIRST = 'migrations/0001-first.sql';
const SECOND = 'migrations/0002-second.sql';
const VALUES = 'CREATE TABLE measurements (value integer NOT NULL);\n';
const ANSWER = "CREATE OR REPLACE FUNCTION answer() RETURNS text LANGUAGE sql AS 'SELECT ''one''::text';\n";

let database: TestDatabase;
let schema: SchemaFolder;

beforeEach(async () => {
  database = await createTestDatabase();
  schema = await SchemaFolder.create({ [FIRST]: VALUES, 'functions/answer.sql': ANSWER });
});
afterEach(async () => {
  await database.drop();
  await schema.delete();
});

const migrate = (): Promise<void> => migrateDatabase(database.url, schema.path);
const refusal = (): Promise<unknown> => migrate().catch((error: unknown) => error);
const refused = (message: string | RegExp): unknown =>
  expect.objectContaining({ name: 'MigrationError', message: expect.stringMatching(message) });

const applied = async (): Promise<unknown[]> =>
  (await database.query('SELECT name FROM schema_migrations ORDER BY applied_at')).map(({ name }) => name);
const columns = async (): Promise<unknown[]> =>
  (
    await database.query("SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('measurements') AND attnum > 0")
  ).map(({ attname }) => attname);
const answer = async (): Promise<unknown> => (await database.query('SELECT answer()'))[0]?.['answer'];

describe('a database', () => {
  it('gets the migrations in order, then the functions, and on the next start nothing', async () => {
    await schema.write(SECOND, 'ALTER TABLE measurements ADD unit text;\n');
    await migrate();
    const names = ['0001-first.sql', '0002-second.sql', 'answer.sql'];
    expect([await applied(), await columns(), await answer()]).toEqual([names, ['value', 'unit'], 'one']);
    const records = 'SELECT * FROM schema_migrations ORDER BY name';
    const before = await database.query(records);
    await migrate();
    expect(await database.query(records)).toEqual(before);
  });

  it('is migrated once by processes that start at the same time', async () => {
    await schema.write(SECOND, 'INSERT INTO measurements VALUES (1);\n');
    await Promise.all([migrate(), migrate(), migrate()]);
    expect(await database.query('SELECT count(*)::integer AS count FROM measurements')).toEqual([{ count: 1 }]);
  });

  it('gets a further migration, and the function whose text has changed', async () => {
    await schema.write('functions/other.sql', 'CREATE FUNCTION other() RETURNS void LANGUAGE sql AS $$ $$;\n');
    await migrate();
    await schema.write(SECOND, 'ALTER TABLE measurements ADD unit text;\n');
    await schema.write('functions/answer.sql', ANSWER.replace('one', 'two'));
    // Not repeatable, so that a start fails which applies a file that did not change.
    await migrate();
    expect([await columns(), await answer()]).toEqual([['value', 'unit'], 'two']);
  });

  it('gets functions that use each other, whatever their files are called', async () => {
    await schema.write(
      'functions/above.sql',
      "CREATE FUNCTION above() RETURNS text LANGUAGE sql AS 'SELECT answer()';\n",
    );
    await migrate();
    expect(await database.query('SELECT above()')).toEqual([{ above: 'one' }]);
  });

  it('gets the whole schema of the service', async () => {
    await migrateDatabase(database.url);
    await migrateDatabase(database.url);
    expect(await database.query('SELECT clock_now() > now() AS passed')).toEqual([{ passed: true }]);
  });
});

describe('a start is refused with one line', () => {
  it('when an applied migration has another text now', async () => {
    await migrate();
    await schema.write(FIRST, `${VALUES}-- A late thought.\n`);
    expect(await refusal()).toEqual(
      refused(/^Migration 0001-first\.sql is not the 0001-first\.sql that was applied .*\.$/),
    );
  });

  it('when an applied migration has another name now', async () => {
    await migrate();
    await schema.remove(FIRST);
    await schema.write('migrations/0001-renamed.sql', VALUES);
    expect(await refusal()).toEqual(refused(/^Migration 0001-renamed\.sql is not the 0001-first\.sql that .*\.$/));
  });

  it('when the database is newer, and its functions stay as they are', async () => {
    await schema.write(SECOND, 'ALTER TABLE measurements ADD unit text;\n');
    await migrate();
    await schema.remove(SECOND);
    await schema.write('functions/answer.sql', ANSWER.replace('one', 'before'));
    expect(await refusal()).toEqual(
      refused(/^The database is newer than this program: it has migration 0002-second\.sql\..*\.$/),
    );
    expect(await answer()).toBe('one');
  });

  it('when the tables are of a version before the first release', async () => {
    await database.query('CREATE TABLE organizations (id text)');
    expect(await refusal()).toEqual(refused(/^The database has tables of a version before the first release.*\.$/));
    expect(await database.query("SELECT to_regclass('schema_migrations') AS records")).toEqual([{ records: null }]);
  });

  it.each(['0003-gap.sql', '0001-twice.sql', '0002_Odd.sql'])('when a migration is called %s', async (name) => {
    await schema.write(`migrations/${name}`, VALUES);
    expect(await refusal()).toEqual(refused(/ is not the name of migration [12]\.$/));
  });

  it('when a migration fails, of which nothing stays', async () => {
    await schema.write(SECOND, 'ALTER TABLE measurements ADD unit text;\nSELECT 1 / 0;\n');
    expect(await refusal()).toEqual(refused(/^0002-second\.sql failed: division by zero\.$/));
    expect([await applied(), await columns()]).toEqual([['0001-first.sql'], ['value']]);
    await schema.write(SECOND, 'ALTER TABLE measurements ADD unit text;\n');
    await migrate();
    expect(await columns()).toEqual(['value', 'unit']);
  });

  it('when a function fails, and the other functions stay as they were', async () => {
    await migrate();
    await schema.write('functions/answer.sql', ANSWER.replace('one', 'two'));
    await schema.write('functions/broken.sql', 'CREATE FUNCTION broken() RETURNS nothing LANGUAGE sql AS $$ $$;\n');
    expect(await refusal()).toEqual(refused(/^broken\.sql failed: type "nothing" does not exist\.$/));
    expect(await answer()).toBe('one');
  });
});

describe('a migration that waits for a lock', () => {
  it('lets calls reserve quota meanwhile, and is applied when the lock is free', async () => {
    const service = await startService();
    try {
      const { key } = await service.organization({ monthlyLimit: 10 });
      const changed = await SchemaFolder.ofTheService();
      await changed.add('ALTER TABLE organizations ADD remark text;\n');
      // As pg_dump holds it.
      const release = await holdLock(service.databaseUrl, 'LOCK TABLE organizations IN ACCESS SHARE MODE');
      const migration = migrateDatabase(service.databaseUrl, changed.path);
      for (const channel of ['@2-videos-no-1', '@2-videos-no-2', '@2-videos-no-3']) {
        await until(async () => (await service.query(WAITING_FOR_LOCKS)).length > 0);
        expect((await service.get(`/channels/${channel}/transcripts`, key)).status).toBe(200);
      }
      await release();
      await migration;
      expect(await service.query('SELECT remark FROM organizations')).toEqual([{ remark: null }]);
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 6 });
      await changed.delete();
    } finally {
      await service.close();
    }
  });
});

/** The tests' server has the locks of other tests as well. */
const HOLDER = `
  SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

describe('a start while another process migrates', () => {
  /** A process of this version, which waits for a table. */
  const migrateSlowly = async (): Promise<{ end: () => Promise<void>; pid: unknown }> => {
    await migrate();
    await schema.write(SECOND, 'LOCK TABLE measurements;\n');
    const release = await holdLock(database.url, 'LOCK TABLE measurements IN ACCESS SHARE MODE');
    const migration = migrate();
    await until(async () => (await database.query(HOLDER)).length > 0);
    const [holder] = await database.query(HOLDER);
    return { end: async () => release().then(() => migration), pid: holder?.['pid'] };
  };
  const since = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
  const holderOf = (pid: unknown): string =>
    `Another process migrates this database: the backend ${String(pid)} of PostgreSQL \\(channel-transcripts migration, .*\\) has the lock, since ${since}\\.`;

  it('says once who has the lock and since when, and is migrated when that has ended', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const other = await migrateSlowly();
    const waits = () => warn.mock.calls.filter(([line]) => JSON.stringify(line).includes('has the lock'));
    // Each look at the clock is a second later.
    let clock = performance.now();
    const now = jest.spyOn(performance, 'now').mockImplementation(() => (clock += 1_000));
    const waiting = migrateDatabase(database.url, schema.path, 10_000);
    try {
      await new Promise<void>((resolve) =>
        now.mockImplementation(() => (waits().length > 0 && resolve(), (clock += 1_000))),
      );
    } finally {
      now.mockRestore();
    }
    await other.end();
    await waiting;
    expect(waits()).toEqual([
      [
        {
          event: 'migration_waits',
          message: expect.stringMatching(new RegExp(`^${holderOf(other.pid)} Waiting for it\\.$`)),
        },
      ],
    ]);
    warn.mockRestore();
  });

  it('ends with one line that names it after MIGRATION_WAIT_SECONDS', async () => {
    const other = await migrateSlowly();
    const failure = await migrateDatabase(database.url, schema.path, 1).catch((error: unknown) => error);
    expect(failure).toEqual(
      refused(new RegExp(`^${holderOf(other.pid)} Waited 1 s \\(MIGRATION_WAIT_SECONDS\\)\\. If it does not end: .*$`)),
    );
    await other.end();
  });

  it('waits for one of the former version, whose lock is that of its session', async () => {
    const former = new Client({ connectionString: database.url });
    await former.connect();
    await former.query('SELECT pg_advisory_lock(4771902381)');
    expect(await migrateDatabase(database.url, schema.path, 1).catch((error: unknown) => error)).toEqual(
      refused(/has the lock/),
    );
    await former.end();
    await migrate();
  });

  it('ends after MIGRATION_WAIT_SECONDS also when no backend has the lock', async () => {
    const holder = { query: () => Promise.resolve({ rows: [] }) } as unknown as Client;
    expect(await lockMigrations(holder, 1).catch((error: unknown) => error)).toEqual(
      refused(/^Another process .*unknown.* Waited 1 s/),
    );
  });

  it('ends when its own lock is lost', async () => {
    await migrate();
    await schema.write(SECOND, 'LOCK TABLE measurements;\n');
    const release = await holdLock(database.url, 'LOCK TABLE measurements IN ACCESS SHARE MODE');
    const migration = refusal();
    await until(async () => (await database.query(HOLDER)).length > 0);
    await database.query(`SELECT pg_terminate_backend(pid) FROM (${HOLDER}) holder`);
    expect(await migration).toBeInstanceOf(Error);
    await release();
    expect(await applied()).not.toContain('0002-second.sql');
  });
});

describe('a migration outside a transaction', () => {
  const INDEX = `-- no transaction
-- A comment; of two lines;
DROP INDEX CONCURRENTLY IF EXISTS measurements_value;
CREATE UNIQUE INDEX CONCURRENTLY measurements_value
  ON measurements (value);
`;
  const indexes = (): Promise<unknown> =>
    database.query(
      "SELECT indexrelid::regclass::text AS name, indisvalid AS valid FROM pg_index WHERE NOT indisprimary AND indrelid = to_regclass('measurements')",
    );

  beforeEach(() => schema.write(SECOND, INDEX));

  it('creates an index concurrently, once when several processes start', async () => {
    await Promise.all([migrate(), migrate(), migrate()]);
    expect(await indexes()).toEqual([{ name: 'measurements_value', valid: true }]);
  });

  it('waits for an open transaction without keeping others from writing', async () => {
    await schema.remove(SECOND);
    await migrate();
    await schema.write(SECOND, INDEX);
    const release = await holdLock(database.url, 'INSERT INTO measurements VALUES (1)');
    const migration = migrate();
    await until(async () => (await database.query(WAITING_FOR_LOCKS)).length > 0);
    await database.query('INSERT INTO measurements VALUES (2)');
    await release();
    await migration;
    expect(await indexes()).toEqual([{ name: 'measurements_value', valid: true }]);
  });

  it('is repeated from its first statement after it failed, which leaves an invalid index', async () => {
    await schema.write(FIRST, `${VALUES}INSERT INTO measurements VALUES (1), (1);\n`);
    expect(await refusal()).toEqual(refused(/^0002-second\.sql failed: could not create unique index/));
    expect([await applied(), await indexes()]).toEqual([
      ['0001-first.sql'],
      [{ name: 'measurements_value', valid: false }],
    ]);
    await database.query('DELETE FROM measurements');
    await migrate();
    expect(await indexes()).toEqual([{ name: 'measurements_value', valid: true }]);
  });
});
