import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { EmbeddedPostgresError } from './embedded-postgres-error.js';
import type { ProcessOwner } from './postgres-binaries.js';

const run = promisify(execFile);

/**
 * Chooses the user that PostgreSQL runs as, since it refuses to run as root: as root, the owner of the existing data, else
 * the user `postgres`, else `nobody`; otherwise the current user. No user is created.
 *
 * @throws EmbeddedPostgresError when the data belongs to a user that this process cannot switch to
 */
export async function chooseProcessOwner(
  dataDir: string,
  dataOwner: { uid: number; gid: number } | undefined,
): Promise<ProcessOwner> {
  const uid = process.getuid?.();
  if (uid === undefined) return {};
  if (uid !== 0) {
    if (dataOwner === undefined || dataOwner.uid === uid) return {};
    throw new EmbeddedPostgresError(
      `The data in ${dataDir} belongs to the user with the ID ${dataOwner.uid}, not to ${uid}: start as that user, or choose another DATA_DIR.`,
    );
  }
  if (dataOwner !== undefined && dataOwner.uid !== 0) return { uid: dataOwner.uid, gid: dataOwner.gid };
  for (const name of ['postgres', 'nobody']) {
    const owner = await idsOf(name);
    if (owner !== undefined) return owner;
  }
  throw new EmbeddedPostgresError(
    'The embedded PostgreSQL does not run as root, and there is no user postgres or nobody: start as another user, or set DATABASE_URL.',
  );
}

async function idsOf(name: string): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)),
    );
    return uid !== undefined && gid !== undefined && uid > 0 ? { uid, gid } : undefined;
  } catch {
    return undefined;
  }
}
