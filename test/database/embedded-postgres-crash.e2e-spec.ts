import { afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../until.js';
import { postmasterPid, useDataDirectory } from './cluster-user.js';
import { runQuery } from './test-database.js';

const responds = async (url: string): Promise<boolean> => (await runQuery(url, 'SELECT 1').catch(() => [])).length > 0;

describe('the embedded PostgreSQL after a crash', () => {
  const { start, dataDir } = useDataDirectory('test', 'cluster');
  const helpers: ChildProcess[] = [];

  afterEach(() => {
    for (const helper of helpers.splice(0)) helper.kill('SIGKILL');
  });

  const crashBoth = async (): Promise<void> => {
    const service = start();
    await runQuery(await service.url(), 'CREATE TABLE stored AS SELECT 42 AS value');
    process.kill((await postmasterPid(dataDir())) ?? 0, 'SIGKILL');
    await service.kill();
  };

  it('ends after its last user was killed', async () => {
    const [service, command] = [start('service'), start('command')];
    const [url] = await Promise.all([service.url(), command.url()]);
    await service.kill();
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    await command.kill();
    await until(async () => (await postmasterPid(dataDir())) === undefined);
  });

  it('a service that starts right after another was killed is not refused', async () => {
    const killed = start();
    await runQuery(await killed.url(), 'CREATE TABLE stored AS SELECT 42 AS value');
    await killed.kill();
    const url = await start().url();
    await until(() => responds(url));
    expect(await runQuery(url, 'SELECT value FROM stored')).toEqual([{ value: 42 }]);
  });

  it('data is preserved when both the service and PostgreSQL are killed', async () => {
    await crashBoth();
    expect(await runQuery(await start().url(), 'SELECT value FROM stored')).toEqual([{ value: 42 }]);
  });

  it('it starts although its lock file names a zombie process', async () => {
    await crashBoth();
    const { uid } = await stat(join(dataDir(), 'postgres'));
    // The shell starts a process and is replaced by one that never reaps it.
    const helper = spawn('/bin/sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], {
      ...(process.getuid?.() === 0 ? { uid } : {}),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    helpers.push(helper);
    const zombie = await new Promise<string>((resolve) => {
      helper.stdout.once('data', (pid: Buffer) => resolve(pid.toString().trim()));
    });
    const lockFile = join(dataDir(), 'postgres/postmaster.pid');
    await writeFile(lockFile, (await readFile(lockFile, 'utf8')).replace(/^\d+/, zombie));

    expect(await runQuery(await start().url(), 'SELECT value FROM stored')).toEqual([{ value: 42 }]);
  });

  it('a service restarts its killed PostgreSQL at the same address', async () => {
    const url = await start('service').url();
    const killed = await postmasterPid(dataDir());
    process.kill(killed ?? 0, 'SIGKILL');

    await until(() => responds(url));
    expect(await postmasterPid(dataDir())).not.toBe(killed);
  });

  it('a command that ends does not stop PostgreSQL under a service that lost its connection', async () => {
    const url = await start('service').url();
    const memberships = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted`;
    const [before] = await runQuery(url, memberships);
    await runQuery(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'`);
    await until(async () => (await runQuery(url, memberships)).some(({ pid }) => pid !== before?.['pid']));

    const command = start('command');
    await command.url();
    await command.close();
    expect(await runQuery(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    expect((await start('service').ending()).errorOutput).toContain('Another service runs');
  });
});

describe('the embedded PostgreSQL after a crash of its first start', () => {
  const { start, dataDir } = useDataDirectory();

  it('an interrupted first start does not affect the next start', async () => {
    const killed = start();
    const files = (): Promise<string[]> => readdir(dataDir()).catch(() => []);
    await until(async () => (await files()).some((name) => name.startsWith('initdb-')));
    await killed.kill();
    expect(await readdir(dataDir())).not.toContain('postgres');

    expect(await runQuery(await start().url(), 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    expect((await files()).sort()).toEqual(['postgres', 'postgres.log']);
  });
});
