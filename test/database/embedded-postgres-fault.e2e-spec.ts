import { describe, expect, it, jest } from '@jest/globals';
import { rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { useDataDirectory } from './cluster-user.js';

// Processes and clusters are started, on machines that do other work too.
jest.setTimeout(60_000);

describe('an embedded PostgreSQL that cannot start says why in one line', () => {
  const { start, dataDir } = useDataDirectory();

  const fault = async (): Promise<string> => {
    const { code, errorOutput } = await start().ending();
    expect(code).toBe(1);
    expect(errorOutput.trim().split('\n')).toHaveLength(1);
    return errorOutput.trim();
  };

  it('a file where the directory should be', async () => {
    await writeFile(dataDir(), '');
    expect(await fault()).toBe(
      `EmbeddedPostgresError: The data directory ${dataDir()} cannot be used: it is not a directory.`,
    );
  });

  it('a path that leads through a file', async () => {
    await writeFile(dataDir(), '');
    const { code, errorOutput } = await start('service', join(dataDir(), 'below')).ending();
    expect({ code, errorOutput }).toEqual({
      code: 1,
      errorOutput: `EmbeddedPostgresError: The data directory ${join(dataDir(), 'below')} cannot be used: it is not a directory.\n`,
    });
  });

  it('data of another major version', async () => {
    await start().close();
    await writeFile(join(dataDir(), 'postgres/cluster/PG_VERSION'), '15\n');
    expect(await fault()).toMatch(
      /^EmbeddedPostgresError: The data in .* was written by PostgreSQL 15, this one is 18: dump and/,
    );
  });

  it('a damaged control file', async () => {
    await start().close();
    await truncate(join(dataDir(), 'postgres/cluster/global/pg_control'), 10);
    expect(await fault()).toMatch(
      /^EmbeddedPostgresError: The embedded PostgreSQL in .* does not start: .*pg_control.* Its log: /,
    );
  });

  it('a control file that is gone', async () => {
    await start().close();
    await rm(join(dataDir(), 'postgres/cluster/global/pg_control'));
    expect(await fault()).toMatch(/does not start: could not find the database system/);
  });

  it('data that is gone while the password is there', async () => {
    await start().close();
    await rename(join(dataDir(), 'postgres/cluster'), join(dataDir(), 'moved'));
    expect(await fault()).toMatch(
      /is damaged, cluster\/PG_VERSION is missing: restore it, or choose another DATA_DIR\.$/,
    );
  });
});
