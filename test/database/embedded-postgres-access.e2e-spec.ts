import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { Environment } from '../../src/config/environment.js';
import { openDatabase } from '../../src/database/data-source.js';
import { MIGRATIONS } from '../../src/database/migrations/all-migrations.js';
import { runMigrations } from '../../src/database/migrations.js';
import { until } from '../until.js';
import {
  canRunAs,
  copyTestCluster,
  IS_ROOT,
  postmasterPid,
  SHORT_WAITS,
  STRANGER,
  useDataDirectory,
} from './cluster-user.js';
import { startServer } from './programs/server.mjs';
import { runQuery } from './test-database.js';

const SERVICE_ROLE = 'channel_transcripts';
const SETTINGS = ['fsync=off', 'shared_buffers=16MB'];

/** The address in a URL of the embedded PostgreSQL. */
const socketDirectoryOf = (url: string): string => new URL(url).searchParams.get('host') ?? '';

async function killPostmaster(dataDir: string): Promise<void> {
  process.kill((await postmasterPid(dataDir)) ?? 0, 'SIGKILL');
}

describe('the embedded PostgreSQL accepts no other user', () => {
  const { start, dataDir } = useDataDirectory('block', 'cluster');
  let url: string;

  beforeAll(async () => {
    url = await start('service').url();
  });

  it('it listens on no port, and only its owner can enter the directory of its socket', async () => {
    expect(await runQuery(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }]);
    const directory = socketDirectoryOf(url);
    expect(directory).toBe(join(dataDir(), 'postgres/cluster'));
    const { mode, uid } = await stat(directory);
    expect([mode & 0o777, IS_ROOT ? uid > 0 : uid === process.getuid?.()]).toEqual([0o700, true]);
  });

  it('the role of the service has no privileges beyond its database', async () => {
    const [role] = await runQuery(url, 'SELECT * FROM pg_roles WHERE rolname = current_user');
    expect(role).toMatchObject({
      ...{ rolname: SERVICE_ROLE, rolsuper: false, rolcreaterole: false, rolcreatedb: false },
      ...{ rolreplication: false, rolbypassrls: false },
    });
    await runQuery(url, 'CREATE TABLE lines (line text)');
    for (const statement of [
      `COPY lines FROM PROGRAM 'id'`,
      `COPY lines TO PROGRAM 'cat'`,
      `COPY lines FROM '/etc/passwd'`,
      `SELECT pg_read_file('/etc/passwd')`,
      `SELECT lo_import('/etc/passwd')`,
      'CREATE ROLE other',
      'CREATE DATABASE other',
      'ALTER SYSTEM SET work_mem = 64',
      'SET ROLE app',
      'SELECT * FROM pg_authid',
    ]) {
      await expect(runQuery(url, statement)).rejects.toThrow(/permission denied/);
    }
  });

  it('the superuser is not connected while the service runs', async () => {
    const roles = `SELECT DISTINCT usename FROM pg_stat_activity WHERE backend_type = 'client backend'`;
    expect(await runQuery(url, roles)).toEqual([{ usename: SERVICE_ROLE }]);
  });

  (IS_ROOT ? it : it.skip)('another user can neither connect nor listen in its place after a crash', async () => {
    // Only the directory of the socket denies access.
    await chmod(join(dataDir(), '..'), 0o711);
    const path = `${socketDirectoryOf(url)}/.s.PGSQL.5432`;
    const asStranger = (code: string): string =>
      spawnSync(process.execPath, ['-e', code], { ...STRANGER, cwd: '/', encoding: 'utf8' }).stdout.trim();
    const say = `.on('error', ({ code }) => console.log(code))`;
    expect(asStranger(`require('net').connect(${JSON.stringify(path)})${say}`)).toBe('EACCES');
    expect(asStranger(`require('net').createServer()${say}.listen(${JSON.stringify(path)})`)).toBe('EACCES');
  });
});

describe('the embedded PostgreSQL of an unprivileged user', () => {
  const { start, dataDir } = useDataDirectory();
  /** `nobody`, since PostgreSQL runs only under existing accounts. */
  const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', IS_ROOT ? [flag, 'nobody'] : [flag], { encoding: 'utf8' })),
  );
  const owner = IS_ROOT ? { uid, gid } : {};

  (!IS_ROOT || canRunAs(owner) ? it : it.skip)(
    'runs as that user, who owns the socket directory, and root can connect',
    async () => {
      await mkdir(dataDir());
      if (IS_ROOT) {
        await chmod(join(dataDir(), '..'), 0o711);
        await chown(dataDir(), uid, gid);
      }
      const url = await start('service', dataDir(), { owner }).url();
      expect(await stat(socketDirectoryOf(url))).toMatchObject({ uid });
      const command = start('command');
      expect(await command.url()).toBe(url);
      expect(await runQuery(url, 'SELECT current_user AS role')).toEqual([{ role: SERVICE_ROLE }]);
    },
  );
});

/** Data of an earlier version: one role for everything. Copied by each test, as making it takes seconds. */
let earlierData: string;

beforeAll(async () => {
  earlierData = await mkdtemp(join(process.env['TEST_FOLDER'] ?? tmpdir(), 'earlier-data-'));
  await chmod(earlierData, 0o711);
  await copyTestCluster(earlierData);
  const earlier = await startServer(earlierData, SETTINGS);
  await runQuery(earlier.url, 'CREATE DATABASE channel_transcripts');
  const url = new URL(earlier.url);
  url.pathname = '/channel_transcripts';
  await runMigrations(url.href, MIGRATIONS);
  await runQuery(url.href, `INSERT INTO organizations (id, name, plan) VALUES ('org_1', 'Acme', 'pro')`);
  // Kinds of objects that no migration creates yet.
  await runQuery(
    url.href,
    `CREATE SCHEMA more; CREATE TABLE more.items (id serial PRIMARY KEY, at int GENERATED ALWAYS AS IDENTITY);
     CREATE TYPE mood AS ENUM ('ok'); CREATE TYPE pair AS (a int, b int); CREATE DOMAIN short AS varchar(9);
     CREATE SEQUENCE alone; CREATE VIEW names AS SELECT name FROM organizations;
     CREATE PROCEDURE nothing() LANGUAGE sql AS 'SELECT 1'`,
  );
  await earlier.stop();
});

afterAll(() => rm(earlierData, { recursive: true }));

async function copyEarlierData(to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  // Including owners and modes, which cp of Node.js does not preserve.
  await promisify(execFile)('cp', ['-a', earlierData, to]);
}

describe('a data directory of an earlier version, in which the superuser owned everything', () => {
  const { start, dataDir } = useDataDirectory();

  beforeEach(() => copyEarlierData(dataDir()));

  it('opens with its data, which the role of the service owns from then on', async () => {
    const service = start();
    const url = await service.url();
    expect(await runQuery(url, 'SELECT name FROM organizations')).toEqual([{ name: 'Acme' }]);
    const owners = `
      SELECT DISTINCT owner::regrole::text FROM (
        SELECT datdba AS owner FROM pg_database WHERE datname = current_database()
        UNION ALL SELECT relowner FROM pg_class WHERE oid >= 16384 AND relkind <> 't'
        UNION ALL SELECT proowner FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT typowner FROM pg_type WHERE oid >= 16384
        UNION ALL SELECT nspowner FROM pg_namespace WHERE oid >= 16384) owned`;
    expect(await runQuery(url, owners)).toEqual([{ owner: SERVICE_ROLE }]);
    // The change of a later migration.
    await runQuery(
      url,
      'ALTER TABLE organizations ADD COLUMN note text; DROP FUNCTION quota_prune_batch; DROP TABLE migrations',
    );
    await expect(runQuery(url, `COPY organizations FROM PROGRAM 'id'`)).rejects.toThrow('permission denied');

    expect(await service.close()).toEqual({ code: 0, errorOutput: '' });
    expect(await runQuery(await start().url(), 'SELECT name, note FROM organizations')).toEqual([
      { name: 'Acme', note: null },
    ]);
  });

  it('is taken over while its PostgreSQL still runs, which then listens on no port', async () => {
    const { url: earlierUrl } = await startServer(dataDir(), SETTINGS);
    const [service, command] = [start('service'), start('command')];
    const [url] = await Promise.all([service.url(), command.url()]);
    expect(await runQuery(url, 'SELECT name FROM organizations')).toEqual([{ name: 'Acme' }]);
    expect(await runQuery(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }]);
    const refused = await new Promise((resolve) => {
      connect(Number(new URL(earlierUrl).port), '127.0.0.1')
        .once('connect', () => resolve('connected'))
        .once('error', () => resolve('refused'));
    });
    expect(refused).toBe('refused');
  });

  it('stays in use by a running service of that version; a command works beside it', async () => {
    const earlier = await startServer(dataDir(), SETTINGS);
    const client = new pg.Client({ connectionString: earlier.url });
    await client.connect();
    // The lock that the earlier version's service holds.
    await client.query('SELECT pg_advisory_lock_shared(1), pg_advisory_lock(2)');
    const command = start('command', dataDir(), { times: SHORT_WAITS });
    const service = start('service', dataDir(), { times: SHORT_WAITS });
    expect(await runQuery(await command.url(), 'SELECT name FROM organizations')).toEqual([{ name: 'Acme' }]);
    expect((await service.ending()).errorOutput).toContain('DataDirectoryInUseError');
    expect((await command.close()).code).toBe(0);
    expect((await client.query('SELECT 1 AS alive')).rows).toEqual([{ alive: 1 }]);
    await client.end();
    await earlier.stop();
  });
});

describe('a data directory that cannot contain a socket', () => {
  const { start, dataDir } = useDataDirectory();
  const long = (): string => join(dataDir(), 'd'.repeat(100));

  it('(path too long): the socket is in a private temporary directory, which is removed when PostgreSQL stops', async () => {
    await copyEarlierData(long());
    const service = start('service', long());
    const url = await service.url();
    const directory = socketDirectoryOf(url);
    expect(directory.startsWith(dataDir())).toBe(false);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await stat(directory)).uid).toBe((await stat(join(long(), 'postgres/cluster'))).uid);
    const command = start('command', long());
    expect(await command.url()).toBe(url);
    await command.close();

    await killPostmaster(long());
    await until(async () => (await runQuery(url, 'SELECT 1').catch(() => [])).length > 0);
    await service.close();
    // Stops a PostgreSQL that the service restarted without connecting to it.
    await start('command', long()).close();
    await expect(stat(directory)).rejects.toThrow('ENOENT');
  });

  it('(file system without sockets): the socket is in a private temporary directory', async () => {
    const cluster = join(dataDir(), 'postgres/cluster');
    await copyEarlierData(dataDir());
    // PostgreSQL cannot remove it and therefore creates no socket.
    await mkdir(join(cluster, '.s.PGSQL.5432'));
    const url = await start().url();
    expect(socketDirectoryOf(url)).not.toBe(cluster);
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });
});

describe('the connections of a service to the embedded PostgreSQL', () => {
  const { dataDir } = useDataDirectory();
  const logged: unknown[] = [];
  const nodeEnv = process.env['NODE_ENV'];

  beforeEach(() => {
    const record = (message: unknown): void => void logged.push(message);
    const logger: LoggerService = { log: record, warn: record, error: record };
    logged.length = 0;
    Logger.overrideLogger(logger);
  });
  afterEach(() => {
    process.env['NODE_ENV'] = nodeEnv;
    Logger.overrideLogger(new ConsoleLogger());
  });

  const open = (path: string, as: 'service' | 'command' = 'service') =>
    openDatabase(Object.assign(new Environment(), { DATA_DIR: path }), { as, entities: [], migrations: [] });

  it('follow PostgreSQL to a new socket when it restarts after a crash', async () => {
    const path = join(dataDir(), 'd'.repeat(100));
    await copyEarlierData(path);
    const opened = await open(path);
    try {
      const lockFile = join(path, 'postgres/cluster/postmaster.pid');
      const directory = async (): Promise<string> =>
        (await readFile(lockFile, 'utf8').catch(() => '')).split('\n')[4] ?? '';
      const before = await directory();
      await killPostmaster(path);
      await rm(before, { recursive: true, force: true });
      // Another user takes the name.
      await mkdir(before);
      if (IS_ROOT) await chown(before, STRANGER.uid, STRANGER.gid);
      else await chmod(before, 0o777);
      await until(async () => ![before, ''].includes(await directory()));
      const alive = () => opened.dataSource.query<unknown>('SELECT 1 AS alive').catch(() => undefined);
      await until(async () => (await alive()) !== undefined);
      await rm(before, { recursive: true, force: true });
    } finally {
      await opened.close();
    }
  });

  it('are logged as intended for evaluation and development, with a warning in production', async () => {
    await copyEarlierData(dataDir());
    await (await open(dataDir())).close();
    expect(logged).toEqual([
      { event: 'embedded_postgres', message: expect.stringContaining('for evaluation and development') },
    ]);
    logged.length = 0;
    process.env['NODE_ENV'] = 'production';
    await (await open(dataDir(), 'command')).close();
    expect(logged).toEqual([]);
    await (await open(dataDir())).close();
    expect(logged).toContainEqual({
      event: 'embedded_postgres_in_production',
      message: expect.stringMatching(/OpenSSL 1\.1\.1 and ICU 60.* Set DATABASE_URL/),
    });
  });
});
