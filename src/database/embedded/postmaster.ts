import { execFile, spawn } from 'node:child_process';
import { open, readFile, readlink, realpath } from 'node:fs/promises';
import { createServer } from 'node:net';
import { isAbsolute, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EmbeddedPostgresError, errorCode } from './embedded-postgres-error.js';
import { POSTGRES_VARIABLES } from './postgres-binaries.js';
import { directoryArgument, isAlive, type PostgresCluster } from './postgres-cluster.js';

const run = promisify(execFile);

const LOG_BYTES_MAX = 1024 * 1024;

const STOP_MS_MAX = 60_000;
const STOP_POLL_MS = 20;

/** The address that PostgreSQL listens on: the host is an IP address, or the absolute path of its socket's directory. */
export interface Listener {
  readonly host: string;
  readonly port: number;
}

/** PostgreSQL's main process, as recorded in its lock file. */
export interface Postmaster {
  readonly pid: number;
  /** Undefined until it accepts connections. */
  readonly listener: Listener | undefined;
}

/** One attempt to start PostgreSQL. */
export interface Launch {
  /** Whether the process has ended. */
  hasEnded(): boolean;
  /** What it has written to its log. */
  output(): Promise<string>;
}

/** The PostgreSQL that runs on the cluster, regardless of which process started it. */
export async function findPostmaster(cluster: PostgresCluster): Promise<Postmaster | undefined> {
  const named = await readLockFile(cluster);
  return named !== undefined && (await holdsLock(cluster, named.pid)) ? named : undefined;
}

/**
 * Starts PostgreSQL and returns immediately; when two start together on one cluster, one of them ends by itself.
 *
 * @param settings `name=value`; they override the configuration file
 */
export async function launchPostmaster(
  cluster: PostgresCluster,
  listener: Listener,
  settings: readonly string[],
): Promise<Launch> {
  const log = await open(cluster.logFile, 'a', 0o600);
  try {
    if ('uid' in cluster.owner) await log.chown(cluster.owner.uid, cluster.owner.gid);
    if ((await log.stat()).size > LOG_BYTES_MAX) await log.truncate();
    const logStart = (await log.stat()).size;
    // In its own session, so that Ctrl-C does not stop the database before the application has shut down.
    const child = spawn(cluster.binaries.postgres, postgresArguments(cluster, listener, settings), {
      ...cluster.owner,
      cwd: cluster.directory,
      env: { ...POSTGRES_VARIABLES, ...(await staleLockHolder(cluster)) },
      detached: true,
      windowsHide: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    let ended = false;
    child.once('exit', () => (ended = true)).once('error', () => (ended = true));
    child.unref();
    return {
      hasEnded: () => ended,
      output: async () => (await readFile(cluster.logFile)).subarray(logStart).toString('utf8'),
    };
  } finally {
    await log.close();
  }
}

/** Stops PostgreSQL in its fast mode, which disconnects its clients. */
export async function stopPostmaster(cluster: PostgresCluster): Promise<void> {
  const postmaster = await findPostmaster(cluster);
  if (postmaster === undefined) return;
  const options = { ...cluster.owner, cwd: cluster.directory, env: POSTGRES_VARIABLES };
  let cause: unknown;
  // pg_ctl would also wait for a PostgreSQL that another process starts right after this one has stopped.
  await run(cluster.binaries.pgCtl, ['stop', '-D', directoryArgument(cluster), '-m', 'fast', '-W'], options).catch(
    (error: unknown) => (cause = error),
  );
  const giveUpAt = performance.now() + STOP_MS_MAX;
  while ((await findPostmaster(cluster))?.pid === postmaster.pid) {
    if (cause !== undefined || performance.now() > giveUpAt) {
      throw new EmbeddedPostgresError(
        `The embedded PostgreSQL in ${cluster.dataDir} does not stop. Its log: ${cluster.logFile}`,
        cause,
      );
    }
    await sleep(STOP_POLL_MS);
  }
}

/** A port of this host that is free at the moment. */
export async function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

function postgresArguments(cluster: PostgresCluster, { host, port }: Listener, settings: readonly string[]): string[] {
  const socketDirectory = isSocketDirectory(host) ? host : '';
  const all = [
    `listen_addresses=${socketDirectory === '' ? host : ''}`,
    `unix_socket_directories=${quotedDirectory(cluster, socketDirectory)}`,
    'unix_socket_permissions=0700',
    'timezone=UTC',
    'log_timezone=UTC',
    'log_checkpoints=off',
    // Statements and their values are not logged.
    'log_min_error_statement=panic',
    'log_error_verbosity=terse',
    ...settings,
  ];
  return ['-D', directoryArgument(cluster), '-p', String(port), ...all.flatMap((setting) => ['-c', setting])];
}

/** Whether a host is the directory of a Unix socket. */
export function isSocketDirectory(host: string): boolean {
  return isAbsolute(host);
}

/** Relative for the data directory, whose absolute path PostgreSQL may not have access to. Quoted, as the setting is a list. */
function quotedDirectory({ directory }: PostgresCluster, socketDirectory: string): string {
  if (socketDirectory === '') return '';
  return socketDirectory === directory ? '.' : `"${socketDirectory.replaceAll('"', '""')}"`;
}

/**
 * Lines: 1 the process ID, 4 the port, 5 the directory of the first socket, 6 the first address. The last two are written
 * once PostgreSQL listens. Format: https://www.postgresql.org/docs/18/storage-file-layout.html and `miscadmin.h`.
 */
async function readLockFile({ directory }: PostgresCluster): Promise<Postmaster | undefined> {
  const lines = (await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
  const [pid, port, socketDirectory, address] = [Number(lines[0]), Number(lines[3]), lines[4] ?? '', lines[5] ?? ''];
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  const host = socketDirectory === '' ? address : resolve(directory, socketDirectory);
  return { pid, listener: host !== '' && port > 0 ? { host, port } : undefined };
}

/** The address of the running PostgreSQL, or of the last one that ran. */
export async function lastListener(cluster: PostgresCluster): Promise<Listener | undefined> {
  return (await readLockFile(cluster))?.listener;
}

/** PostgreSQL's working directory is its data directory, which distinguishes it from a process that reuses its ID. */
async function holdsLock({ directory }: PostgresCluster, pid: number): Promise<boolean> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(directory));
  } catch (error) {
    // A zombie has no working directory; after any other error the process counts as PostgreSQL.
    return errorCode(error) !== 'ENOENT';
  }
}

/**
 * After a crash the lock file can name a zombie, or another process that reuses the ID, and PostgreSQL refuses to start
 * while that process exists. It ignores the lock when the ID is declared as its grandparent, which `pg_ctl` uses for its
 * own ID. PostgreSQL detects a running instance by its shared memory.
 */
async function staleLockHolder(cluster: PostgresCluster): Promise<Record<string, string>> {
  const named = await readLockFile(cluster);
  if (named === undefined || (await holdsLock(cluster, named.pid))) return {};
  return { PG_GRANDPARENT_PID: String(named.pid) };
}
