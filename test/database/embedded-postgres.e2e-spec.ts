import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Environment } from '../../src/config/environment.js';
import { openDatabase } from '../../src/database/data-source.js';
import { canRunAs, IS_ROOT, postmasterPid, STRANGER, useDataDirectory } from './cluster-user.js';
import { runQuery } from './test-database.js';

const SERVICE_ROLE = 'channel_transcripts';

describe('the embedded PostgreSQL', () => {
  const { start, dataDir } = useDataDirectory('test', 'cluster');

  it('commands that start and end concurrently always find a database, and no PostgreSQL remains running', async () => {
    await start('service').close();
    const comeAndGo = async (): Promise<number | null> => {
      const command = start('command');
      expect(await runQuery(await command.url(), 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
      return (await command.close()).code;
    };
    // All have to end before the directory is removed, even when one fails.
    const inTurn = async (): Promise<(number | null)[]> => [await comeAndGo(), await comeAndGo()];
    const ends = await Promise.allSettled([inTurn(), inTurn()]);
    expect(ends).toEqual(Array(2).fill({ status: 'fulfilled', value: [0, 0] }));
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });
});

describe('the embedded PostgreSQL in an empty directory', () => {
  const { start, dataDir } = useDataDirectory();

  it('processes that start concurrently share one database, and the last to end stops it', async () => {
    const [one, two, three] = [start('service'), start('command'), start('command')];
    const urls = await Promise.all([one.url(), two.url(), three.url()]);
    expect(new Set(urls).size).toBe(1);
    expect((await readdir(dataDir())).sort()).toEqual(['postgres', 'postgres.log']);

    await Promise.all([one.close(), two.close()]);
    expect(await runQuery(urls[0], 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    await three.close();
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });

  /** `nobody`, since PostgreSQL runs only under existing accounts. */
  const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', IS_ROOT ? [flag, 'nobody'] : [flag], { encoding: 'utf8' })),
  );
  const user = IS_ROOT ? { uid, gid } : {};

  (!IS_ROOT || canRunAs(user) ? it : it.skip)(
    'runs as an unprivileged user, beside whom root can connect',
    async () => {
      await mkdir(dataDir());
      if (IS_ROOT) {
        await chmod(join(dataDir(), '..'), 0o711);
        await chown(dataDir(), uid, gid);
      }
      const url = await start('service', dataDir(), user).url();
      expect(await stat(join(dataDir(), 'postgres'))).toMatchObject({ uid });
      expect(await start('command').url()).toBe(url);
      expect(await runQuery(url, 'SELECT current_user AS role')).toEqual([{ role: SERVICE_ROLE }]);
    },
  );
});

describe('the embedded PostgreSQL of a service', () => {
  const { start, dataDir } = useDataDirectory('block');
  let url: string;

  beforeAll(async () => {
    url = await start('service').url();
  });

  it('a first start creates a database with the required settings', async () => {
    const settings = `
      SELECT current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS zone,
             current_setting('data_checksums') AS checksums, datname AS database, datcollate AS collation
        FROM pg_database WHERE datname = current_database()`;
    expect(await runQuery(url, settings)).toEqual([
      { encoding: 'UTF8', zone: 'UTC', checksums: 'on', database: 'channel_transcripts', collation: 'C' },
    ]);
  });

  it('a command beside the service does not stop the database', async () => {
    const command = start('command');
    expect(await command.url()).toBe(url);
    expect(await command.close()).toEqual({ code: 0, errorOutput: '' });
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });

  it('a second service on the same directory is refused with one line, and the first continues', async () => {
    const { code, errorOutput } = await start('service').ending();
    expect(code).toBe(1);
    expect(errorOutput).toBe(
      `EmbeddedPostgresError: Another service runs on the data directory ${dataDir()}: ` +
        'stop it first, or give this one a DATA_DIR of its own.\n',
    );
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });

  it('it listens on no port, and only its owner can enter the directory of its socket', async () => {
    expect(await runQuery(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }]);
    const directory = new URL(url).searchParams.get('host') ?? '';
    expect(directory).toBe(join(dataDir(), 'postgres'));
    const { mode, uid } = await stat(directory);
    expect([mode & 0o777, IS_ROOT ? uid > 0 : uid === process.getuid?.()]).toEqual([0o700, true]);
  });

  it('the role of the service has no privileges beyond its database, and the superuser cannot log in', async () => {
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
      'SET ROLE postgres',
      'SELECT * FROM pg_authid',
    ]) {
      await expect(runQuery(url, statement)).rejects.toThrow(/permission denied/);
    }
    const superuser = url.replace(`${SERVICE_ROLE}@`, 'postgres@');
    await expect(runQuery(superuser, 'SELECT 1')).rejects.toThrow(/no pg_hba.conf entry for host .* user "postgres"/);
  });

  (IS_ROOT ? it : it.skip)('another user can neither connect nor listen in its place', async () => {
    // Only the directory of the socket denies access.
    await chmod(join(dataDir(), '..'), 0o711);
    const path = join(dataDir(), 'postgres/.s.PGSQL.5432');
    const asStranger = (code: string): string =>
      spawnSync(process.execPath, ['-e', code], { ...STRANGER, cwd: '/', encoding: 'utf8' }).stdout.trim();
    const say = `.on('error', ({ code }) => console.log(code))`;
    expect(asStranger(`require('net').connect(${JSON.stringify(path)})${say}`)).toBe('EACCES');
    expect(asStranger(`require('net').createServer()${say}.listen(${JSON.stringify(path)})`)).toBe('EACCES');
  });
});

describe('a service that uses the embedded PostgreSQL', () => {
  const { dataDir } = useDataDirectory('test', 'cluster');
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

  const openAndClose = async (as: 'service' | 'command' = 'service'): Promise<void> => {
    const environment = Object.assign(new Environment(), { DATA_DIR: dataDir() });
    await (await openDatabase(environment, { as, entities: [], migrations: [] })).close();
  };

  it('logs that it is intended for evaluation and development, and a warning in production', async () => {
    await openAndClose();
    expect(logged).toEqual([
      { event: 'embedded_postgres', message: expect.stringContaining('for evaluation and development') },
    ]);
    logged.length = 0;
    process.env['NODE_ENV'] = 'production';
    await openAndClose('command');
    expect(logged).toEqual([]);
    await openAndClose();
    expect(logged).toContainEqual({
      event: 'embedded_postgres_in_production',
      message: expect.stringMatching(/OpenSSL 1\.1\.1 and ICU 60.* Set DATABASE_URL/),
    });
  });
});
