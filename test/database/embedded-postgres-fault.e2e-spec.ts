import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chown, copyFile, mkdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ClusterUser, useDataDirectory } from './cluster-user.js';

describe('an embedded PostgreSQL that cannot start reports the reason in one line', () => {
  const { start, dataDir } = useDataDirectory();

  it('a file where the directory should be', async () => {
    await writeFile(dataDir(), '');
    expect(await faultOf(start())).toBe(
      `EmbeddedPostgresError: The data directory ${dataDir()} cannot be used: it is not a directory.`,
    );
  });

  const asRoot = process.getuid?.() === 0 && process.platform === 'linux' ? it : it.skip;
  asRoot('a disk that is full before all files are there, whose directory it names', async () => {
    await mkdir(dataDir());
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=0711', 'test', dataDir()]);
    try {
      const fault = await faultOf(start());
      expect(fault).toMatch(/cannot create its files in .*: could not write to file .*: No space left on device\.$/);
      expect(fault).toContain(dataDir());
    } finally {
      execFileSync('umount', [dataDir()]);
    }
  });

  it('a path that leads through a file', async () => {
    await writeFile(dataDir(), '');
    const { code, errorOutput } = await start('service', join(dataDir(), 'below')).ending();
    expect({ code, errorOutput }).toEqual({
      code: 1,
      errorOutput: `EmbeddedPostgresError: The data directory ${join(dataDir(), 'below')} cannot be used: it is not a directory.\n`,
    });
  });
});

describe('an embedded PostgreSQL with damaged data reports it in one line, and starts once it is repaired', () => {
  const { start, dataDir } = useDataDirectory('block', 'cluster');
  const cluster = (...path: string[]): string => join(dataDir(), 'postgres/cluster', ...path);

  beforeAll(async () => {
    await start().close();
  });
  afterEach(async () => {
    const { code, errorOutput } = await start().close();
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
  });

  /** The message of a start with a wrong file or directory. */
  async function faultWhile(path: string, damage: (path: string) => Promise<void>): Promise<string> {
    const unavailable = join(dataDir(), 'moved');
    await rename(path, unavailable);
    try {
      await damage(unavailable);
      return await faultOf(start());
    } finally {
      await rm(path, { force: true });
      await rename(unavailable, path);
    }
  }

  it('data of another major version', async () => {
    const fault = await faultWhile(cluster('PG_VERSION'), () => writeFile(cluster('PG_VERSION'), '15\n'));
    expect(fault).toMatch(
      /^EmbeddedPostgresError: The data in .* was written by PostgreSQL 15, this one is 18: dump and/,
    );
  });

  it('a damaged control file', async () => {
    const fault = await faultWhile(cluster('global/pg_control'), async (away) => {
      // A copy, so that its owner stays PostgreSQL's.
      await copyOwned(away, cluster('global/pg_control'));
      await truncate(cluster('global/pg_control'), 10);
    });
    expect(fault).toMatch(
      /^EmbeddedPostgresError: The embedded PostgreSQL in .* does not start: .*pg_control.* Its log: /,
    );
  });

  it('a missing control file', async () => {
    const fault = await faultWhile(cluster('global/pg_control'), () => Promise.resolve());
    expect(fault).toMatch(/does not start: could not find the database system/);
  });

  it('missing data although the password exists', async () => {
    const fault = await faultWhile(cluster(), () => Promise.resolve());
    expect(fault).toMatch(/is damaged, cluster\/PG_VERSION is missing: restore it, or choose another DATA_DIR\.$/);
  });
});

async function faultOf(user: ClusterUser): Promise<string> {
  const { code, errorOutput } = await user.ending();
  expect(code).toBe(1);
  expect(errorOutput.trim().split('\n')).toHaveLength(1);
  return errorOutput.trim();
}

async function copyOwned(from: string, to: string): Promise<void> {
  const { uid, gid } = await stat(from);
  await copyFile(from, to);
  await chown(to, uid, gid);
}
