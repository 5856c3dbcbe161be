import { beforeAll, describe, expect, it } from '@jest/globals';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { postmasterPid, SHORT_WAITS, useDataDirectory } from './cluster-user.js';
import { runQuery } from './test-database.js';

describe('the embedded PostgreSQL', () => {
  const { start, dataDir } = useDataDirectory('test', 'cluster');

  it('data is preserved over a restart', async () => {
    const first = start();
    await runQuery(await first.url(), 'CREATE TABLE stored AS SELECT 42 AS value');
    expect(await first.close()).toEqual({ code: 0, errorOutput: '' });
    expect(await postmasterPid(dataDir())).toBeUndefined();

    expect(await runQuery(await start().url(), 'SELECT value FROM stored')).toEqual([{ value: 42 }]);
  });

  it('a PostgreSQL that outlived a killed service is taken over, and stopped at shutdown', async () => {
    const killed = start();
    await killed.url();
    const pid = await postmasterPid(dataDir());
    await killed.kill();

    const next = start();
    await next.url();
    expect(await postmasterPid(dataDir())).toBe(pid);
    await next.close();
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });

  it('a service that ends before a command does not stop the database', async () => {
    const [service, command] = [start('service'), start('command')];
    const [url] = await Promise.all([command.url(), service.url()]);
    await service.close();
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });

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

  it('two processes that start concurrently on an empty directory share one database, and the last to end stops it', async () => {
    const [one, two, three] = [start('service'), start('command'), start('command')];
    const urls = await Promise.all([one.url(), two.url(), three.url()]);
    expect(new Set(urls).size).toBe(1);
    expect((await readdir(dataDir())).sort()).toEqual(['postgres', 'postgres.log']);

    await Promise.all([one.close(), two.close()]);
    expect(await runQuery(urls[0], 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    await three.close();
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });
});

describe('the embedded PostgreSQL of a service', () => {
  const { start, dataDir } = useDataDirectory('block');
  let url: string;

  beforeAll(async () => {
    url = await start('service').url();
  });

  it('a first start creates a database with the required settings', async () => {
    const [settings] = await runQuery(
      url,
      `SELECT current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS zone,
              current_setting('data_checksums') AS checksums, current_database() AS database,
              (SELECT datcollate FROM pg_database WHERE datname = current_database()) AS collation`,
    );
    expect(settings).toEqual({
      encoding: 'UTF8',
      zone: 'UTC',
      checksums: 'on',
      database: 'channel_transcripts',
      collation: 'C',
    });
  });

  it('only the owner can read the password, and a wrong password is refused', async () => {
    const wrong = new URL(url);
    wrong.password = 'wrong';
    expect((await stat(join(dataDir(), 'postgres/password'))).mode & 0o777).toBe(0o600);
    await expect(runQuery(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
  });

  it('a command beside the service does not stop the database', async () => {
    const command = start('command');
    expect(await command.url()).toBe(url);
    expect(await command.close()).toEqual({ code: 0, errorOutput: '' });
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });

  it('a second service on the same directory is refused with one line, and the first continues', async () => {
    const { code, errorOutput } = await start('service', dataDir(), { times: SHORT_WAITS }).ending();
    expect(code).toBe(1);
    expect(errorOutput).toBe(
      `DataDirectoryInUseError: Another service runs on the data directory ${dataDir()}: ` +
        'stop it first, or give this one a DATA_DIR of its own.\n',
    );
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });
});
