import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { dataDirectoryFault, EmbeddedPostgresError, errorCode, faultLine } from './embedded-postgres-error.js';
import {
  findPostgresBinaries,
  POSTGRES_VARIABLES,
  type PostgresBinaries,
  type ProcessOwner,
} from './postgres-binaries.js';
import { chooseProcessOwner } from './process-owner.js';

const run = promisify(execFile);

/** The superuser that initdb creates; used only to set up the service's role. */
export const ADMIN_ROLE = 'app';

/** The role of the service and the commands: owns the application's database and has no other privileges. */
export const SERVICE_ROLE = 'channel_transcripts';

/** An initialized data directory, with the programs and the passwords for it. */
export interface PostgresCluster {
  /** The operator's directory, which contains the others. */
  readonly dataDir: string;
  /** PostgreSQL's own data directory. */
  readonly directory: string;
  readonly logFile: string;
  /** Of `ADMIN_ROLE`. */
  readonly adminPassword: string;
  /** Of `SERVICE_ROLE`; derived from `adminPassword`, so that data directories of earlier versions have one too. */
  readonly servicePassword: string;
  readonly owner: ProcessOwner;
  readonly binaries: PostgresBinaries;
}

/**
 * Prepares the data directory: creates it with a new cluster, or checks the existing one. Safe to run in several processes
 * at once and after a process was killed halfway.
 *
 * @throws EmbeddedPostgresError with the fault of the directory in one line
 */
export async function prepareCluster(path: string): Promise<PostgresCluster> {
  const dataDir = resolve(path);
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o711 });
    const home = join(dataDir, 'postgres');
    const directory = join(home, 'cluster');
    const existing = await statIfExists(directory);
    const owner = await chooseProcessOwner(dataDir, existing);
    const binaries = await findPostgresBinaries(owner);
    if (existing === undefined) await createCluster({ dataDir, home, owner, binaries });
    checkVersion(dataDir, await readStored(home, 'cluster/PG_VERSION'), binaries);
    const adminPassword = await readStored(home, 'password');
    const servicePassword = createHmac('sha256', adminPassword).update(SERVICE_ROLE).digest('hex');
    return {
      ...{ dataDir, directory, logFile: join(dataDir, 'postgres.log') },
      ...{ adminPassword, servicePassword, owner, binaries },
    };
  } catch (error) {
    throw dataDirectoryFault(dataDir, error);
  }
}

/**
 * The path of the data directory that is passed to the programs, which are started inside it. On Linux this path works
 * even when a parent directory is accessible to root only and PostgreSQL runs as another user.
 */
export function directoryArgument({ directory, owner }: Pick<PostgresCluster, 'directory' | 'owner'>): string {
  return process.platform === 'linux' && 'uid' in owner ? '/proc/self/cwd' : directory;
}

interface NewCluster {
  readonly dataDir: string;
  readonly home: string;
  readonly owner: ProcessOwner;
  readonly binaries: PostgresBinaries;
}

/** Builds the cluster in a temporary directory and renames it, so that `home` exists only when it is complete. */
async function createCluster({ dataDir, home, owner, binaries }: NewCluster): Promise<void> {
  await removeStaleFiles(dataDir);
  const building = await mkdtemp(join(dataDir, `initdb-${process.pid}-`));
  try {
    const directory = join(building, 'cluster');
    const passwordFile = join(building, 'password');
    await chmod(building, 0o711);
    await mkdir(directory, { mode: 0o700 });
    await writeFile(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600 });
    if ('uid' in owner) for (const path of [directory, passwordFile]) await chown(path, owner.uid, owner.gid);
    await runInitdb({ dataDir, directory, owner }, binaries);
    await rename(building, home).catch((error: unknown) => {
      // Another process created the cluster first.
      if (!['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(errorCode(error) ?? '')) throw error;
    });
  } finally {
    await rm(building, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function runInitdb(
  at: Pick<PostgresCluster, 'dataDir' | 'directory' | 'owner'>,
  { initdb }: PostgresBinaries,
): Promise<void> {
  const directory = directoryArgument(at);
  const flags = ['-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-instructions'];
  const paths = ['-D', directory, '--pwfile', `${directory}/../password`];
  try {
    await run(initdb, [...paths, '-U', ADMIN_ROLE, ...flags], {
      ...at.owner,
      cwd: at.directory,
      env: POSTGRES_VARIABLES,
    });
  } catch (cause) {
    const { stderr } = cause as { readonly stderr?: unknown };
    const output = typeof stderr === 'string' ? stderr : '';
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL cannot create its files in ${at.dataDir}: ${faultLine(output).replaceAll(directory, at.directory)}.`,
      cause,
    );
  }
}

/** Removes the temporary directories of processes that were killed during their first start. */
async function removeStaleFiles(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = Number(/^initdb-(\d+)-/.exec(name)?.[1]);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    // Their initdb may still be writing; a later start removes the rest.
    await rm(join(dataDir, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Whether a process of any user has this ID; a zombie counts as alive. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

async function readStored(home: string, name: string): Promise<string> {
  const text = await readFile(join(home, name), 'utf8').catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error;
    throw new EmbeddedPostgresError(
      `The data in ${home} is damaged, ${name} is missing: restore it, or choose another DATA_DIR.`,
      error,
    );
  });
  return text.trim();
}

function checkVersion(dataDir: string, version: string, { majorVersion }: PostgresBinaries): void {
  if (version === majorVersion) return;
  throw new EmbeddedPostgresError(
    `The data in ${dataDir} was written by PostgreSQL ${version.slice(0, 20)}, this one is ${majorVersion}: dump and restore it, or choose another DATA_DIR.`,
  );
}

async function statIfExists(path: string): Promise<{ uid: number; gid: number } | undefined> {
  return stat(path).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}
