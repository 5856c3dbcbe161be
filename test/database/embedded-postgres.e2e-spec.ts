import { describe, expect, it } from '@jest/globals';
import { readdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../harness/until.js';
import { type ClusterUser, postmasterPid, useDataDirectory } from './cluster-user.js';
import { runQuery } from './test-database.js';

describe('the embedded PostgreSQL in an empty directory', () => {
  const { start, dataDir } = useDataDirectory();

  it('is shared by processes that start concurrently, and the last to end stops it', async () => {
    const [one, two, three] = [start('service'), start('command'), start('command')];
    const urls = await Promise.all([one.url(), two.url(), three.url()]);
    expect(new Set(urls).size).toBe(1);
    expect((await readdir(dataDir())).sort()).toEqual(['postgres', 'postgres.log']);

    await Promise.all([one.close(), two.close()]);
    expect(await runQuery(urls[0], 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    await three.close();
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });

  it('is private: it listens on no port, and only its owner can enter the directory of its socket', async () => {
    const url = await start('service').url();
    expect(await runQuery(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }]);
    const directory = new URL(url).searchParams.get('host') ?? '';
    expect(directory).toBe(join(dataDir(), 'postgres'));
    const { mode, uid } = await stat(directory);
    // Started by root it has a user of its own: any process of `nobody` could enter a directory of `nobody`.
    const isOwner = process.getuid?.() === 0 ? uid > 0 && uid !== 65_534 : uid === process.getuid?.();
    expect([mode & 0o777, isOwner]).toEqual([0o700, true]);
    const settings = `
      SELECT current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS zone, datcollate AS collation
        FROM pg_database WHERE datname = current_database()`;
    expect(await runQuery(url, settings)).toEqual([{ encoding: 'UTF8', zone: 'UTC', collation: 'C' }]);
  });

  it('is complete although its first start was interrupted before', async () => {
    const killed = start();
    const files = (): Promise<string[]> => readdir(dataDir()).catch(() => []);
    await until(async () => (await files()).some((name) => name.startsWith('initdb-')));
    await killed.kill();
    expect(await files()).not.toContain('postgres');
    expect(await runQuery(await start().url(), 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });
});

describe('the embedded PostgreSQL', () => {
  const { start, dataDir } = useDataDirectory('cluster');

  it('serves commands that start and end concurrently, and does not remain running', async () => {
    const comeAndGo = async (): Promise<number | null> => {
      const command = start('command');
      expect(await runQuery(await command.url(), 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
      return (await command.close()).code;
    };
    const inTurn = async (): Promise<(number | null)[]> => [await comeAndGo(), await comeAndGo()];
    // All have to end before the directory is removed, even when one fails.
    const ends = await Promise.allSettled([inTurn(), inTurn()]);
    expect(ends).toEqual(Array(2).fill({ status: 'fulfilled', value: [0, 0] }));
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });

  it('of a service stays when a command ends, and refuses a second service with one line', async () => {
    const url = await start('service').url();
    const command = start('command');
    expect(await command.url()).toBe(url);
    expect(await command.close()).toEqual({ code: 0, errorOutput: '' });
    expect(await faultOf(start('service'))).toBe(
      `EmbeddedPostgresError: Another service runs on the data directory ${dataDir()}: ` +
        'stop it first, or give this one a DATA_DIR of its own.',
    );
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });

  it('of a service that was killed serves the next one, which stops it', async () => {
    const killed = start();
    await runQuery(await killed.url(), 'CREATE TABLE stored AS SELECT 42 AS value');
    await killed.kill();
    const next = start();
    expect(await runQuery(await next.url(), 'SELECT value FROM stored')).toEqual([{ value: 42 }]);
    await next.close();
    expect(await postmasterPid(dataDir())).toBeUndefined();
  });
});

describe('an embedded PostgreSQL that cannot start reports the reason in one line', () => {
  const { start, dataDir } = useDataDirectory('cluster');

  it('a file where the directory should be', async () => {
    const path = join(dataDir(), 'postgres/PG_VERSION');
    expect(await faultOf(start('service', path))).toMatch(/The data directory .* cannot be used: EEXIST: file already/);
    expect(await faultOf(start('service', join(path, 'below')))).toMatch(/cannot be used: ENOTDIR: not a directory/);
  });

  it('a path that is too long for a socket', async () => {
    expect(await faultOf(start('service', join(dataDir(), 'd'.repeat(100))))).toMatch(/its path is too long/);
  });

  it.each([
    ['data of another major version', 'PG_VERSION', '15\n', /database files are incompatible with server/],
    ['a missing control file', 'global/pg_control', undefined, /could not find the database system/],
  ])('%s, and starts once it is repaired', async (_damage, name, content, reason) => {
    const path = join(dataDir(), 'postgres', name);
    await rename(path, `${path}.moved`);
    if (content !== undefined) await writeFile(path, content, { mode: 0o644 });
    const fault = await faultOf(start());
    expect(fault).toMatch(/^EmbeddedPostgresError: The embedded PostgreSQL does not start: .* Its log: /);
    expect(fault).toMatch(reason);
    await rename(`${path}.moved`, path);
    expect(await runQuery(await start().url(), 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
  });
});

async function faultOf(user: ClusterUser): Promise<string> {
  const { code, errorOutput } = await user.ending();
  expect(code).toBe(1);
  expect(errorOutput.trim().split('\n')).toHaveLength(1);
  return errorOutput.trim();
}
