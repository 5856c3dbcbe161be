import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ClusterUser, useDataDirectory } from './cluster-user.js';

describe('an embedded PostgreSQL that cannot start reports the reason in one line', () => {
  const { start, dataDir } = useDataDirectory();

  it('a file where the directory should be', async () => {
    await writeFile(dataDir(), '');
    expect(await faultOf(start())).toMatch(/The data directory .* cannot be used: EEXIST: file already exists/);
    expect(await faultOf(start('service', join(dataDir(), 'below')))).toMatch(/cannot be used: ENOTDIR: not a dir/);
  });

  it('a path that is too long for a socket', async () => {
    expect(await faultOf(start('service', join(dataDir(), 'd'.repeat(100))))).toMatch(/its path is too long/);
  });

  it('a directory that does not contain a database', async () => {
    await mkdir(join(dataDir(), 'postgres'), { recursive: true });
    expect(await faultOf(start())).toMatch(/The data directory .* cannot be used: ENOENT: no such file/);
  });

  const asRoot = process.getuid?.() === 0 && process.platform === 'linux' ? it : it.skip;
  asRoot('a disk that is full before all files are there, whose directory it names', async () => {
    await mkdir(dataDir());
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=0711', 'test', dataDir()]);
    try {
      const fault = await faultOf(start());
      expect(fault).toMatch(/cannot be used: could not write to file .*: No space left on device$/);
      expect(fault).toContain(dataDir());
    } finally {
      execFileSync('umount', [dataDir()]);
    }
  });
});

describe('an embedded PostgreSQL with damaged data reports it in one line, and starts once it is repaired', () => {
  const { start, dataDir } = useDataDirectory('block', 'cluster');

  beforeAll(async () => {
    await start().close();
  });
  afterEach(async () => {
    const { code, errorOutput } = await start().close();
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
  });

  it.each([
    ['data of another major version', 'PG_VERSION', '15\n', /database files are incompatible with server/],
    ['a missing control file', 'global/pg_control', undefined, /could not find the database system/],
  ])('%s', async (_damage, name, content, reason) => {
    const path = join(dataDir(), 'postgres', name);
    await rename(path, `${path}.moved`);
    try {
      if (content !== undefined) await writeFile(path, content, { mode: 0o644 });
      const fault = await faultOf(start());
      expect(fault).toMatch(/^EmbeddedPostgresError: The embedded PostgreSQL does not start: .* Its log: /);
      expect(fault).toMatch(reason);
    } finally {
      await rm(path, { force: true });
      await rename(`${path}.moved`, path);
    }
  });
});

async function faultOf(user: ClusterUser): Promise<string> {
  const { code, errorOutput } = await user.ending();
  expect(code).toBe(1);
  expect(errorOutput.trim().split('\n')).toHaveLength(1);
  return errorOutput.trim();
}
