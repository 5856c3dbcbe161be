import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedPostgresError, faultLine, findPrograms, type ProcessOwner, run } from './postgres-programs.js';

/** The role of the service and the commands, and its database. */
export const SERVICE_ROLE = 'channel_transcripts';

/** No password: whoever may enter the directory of the socket may also read the data in it. */
const LOGIN_RULES = `local all ${SERVICE_ROLE} trust\n`;
const SETUP = `CREATE ROLE ${SERVICE_ROLE} LOGIN;\nCREATE DATABASE ${SERVICE_ROLE} OWNER ${SERVICE_ROLE};\n`;

const SETTINGS = [
  'listen_addresses=',
  'unix_socket_directories=.',
  'unix_socket_permissions=0700',
  // Statements and their values are not logged.
  'log_min_error_statement=panic',
  'log_error_verbosity=terse',
];

/** Another PostgreSQL starts or ends, or processes of a killed one do. */
const PASSING_FAULT = /lock file|shared memory block|Address already in use/;

/** Every user of PostgreSQL has this pipe open. Its reader stops PostgreSQL when all have ended, even by `kill -9`. */
export const USERS_PIPE = 'users.fifo';
const STOP_AFTER_USERS = `
  read -r line < ${USERS_PIPE}
  read -r pid < postmaster.pid && [ "$pid" = "$1" ] && kill -INT "$pid"`;

/** The environment of the programs; the parent's variables (`PGDATA`, `LD_PRELOAD`, …) are not passed on. */
const VARIABLES = { LC_ALL: 'C', TZ: 'UTC' };

const NOBODY = 65_534;
const LOG_BYTES_MAX = 1024 * 1024;
const STOP_MS_MAX = 60_000;
const POLL_MS = 20;

/** PostgreSQL's data directory, which is in the operator's `DATA_DIR`, and the user that PostgreSQL runs as. */
export interface PostgresCluster {
  readonly directory: string;
  readonly owner: ProcessOwner;
}

/** Creates the cluster in `dataDir` if there is none; several processes may do so at once. */
export async function prepareCluster(dataDir: string): Promise<PostgresCluster> {
  await fs.mkdir(dataDir, { recursive: true, mode: 0o711 });
  const directory = join(dataDir, 'postgres');
  const cluster = { directory, owner: await chooseOwner(directory) };
  if (!existsSync(directory)) await createCluster(dataDir, cluster);
  return cluster;
}

/** PostgreSQL refuses to run as root. */
export async function chooseOwner(directory: string): Promise<ProcessOwner> {
  if (process.getuid?.() !== 0) return {};
  const existing = await fs.stat(directory).catch(() => undefined);
  return existing?.uid ? { uid: existing.uid, gid: existing.gid } : { uid: NOBODY, gid: NOBODY };
}

/** Builds the cluster in a temporary directory and renames it, so that its directory exists only when it is complete. */
async function createCluster(dataDir: string, { directory, owner }: PostgresCluster): Promise<void> {
  const programs = await findPrograms(owner);
  const building = await fs.mkdtemp(join(dataDir, 'initdb-'));
  const options = { ...owner, cwd: building, env: VARIABLES };
  const at = ['-D', pathFor(owner, building)];
  try {
    if (owner.uid !== undefined) await fs.chown(building, owner.uid, owner.gid);
    await run(join(programs, 'initdb'), [...at, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C'], options);
    await fs.writeFile(join(building, 'pg_hba.conf'), LOGIN_RULES);
    await run('mkfifo', ['-m', '600', USERS_PIPE], { ...owner, cwd: building });
    const setup = run(join(programs, 'postgres'), ['--single', ...at, '-c', 'exit_on_error=on', 'postgres'], options);
    setup.child.stdin?.end(SETUP);
    await setup;
    await fs.rename(building, directory);
    // Of processes that were killed during the first start.
    const unfinished = (await fs.readdir(dataDir)).filter((name) => name.startsWith('initdb-'));
    for (const name of unfinished) await fs.rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 });
  } catch (error) {
    await fs.rm(building, { recursive: true, force: true });
    // Otherwise another process created the cluster first.
    if (!existsSync(directory)) throw error;
  }
}

/** Starts PostgreSQL, and returns when it accepts connections or another one runs. Tests add settings (`name=value`). */
export async function startPostgres({ directory, owner }: PostgresCluster, settings: string[] = []): Promise<void> {
  const logFile = `${directory}.log`;
  const postgres = join(await findPrograms(owner), 'postgres');
  const log = await fs.open(logFile, 'a', 0o600);
  if ((await log.stat()).size > LOG_BYTES_MAX) await log.truncate();
  const { size } = await log.stat();
  const flags = [...SETTINGS, ...settings].flatMap((setting) => ['-c', setting]);
  const env = { ...VARIABLES, ...(await staleLockHolder(directory)) };
  // In its own session, so that Ctrl-C does not stop the database before the application has shut down.
  const options = { ...owner, cwd: directory, env, detached: true };
  const stdio: ('ignore' | number)[] = ['ignore', log.fd, log.fd];
  const server = spawn(postgres, ['-D', pathFor(owner, directory), ...flags], { ...options, stdio });
  await once(server, 'spawn').finally(() => log.close());
  server.unref();
  while (server.exitCode === null && server.signalCode === null) {
    const { pid, isReady } = await readLockFile(directory);
    if (pid === server.pid && isReady) {
      spawn('/bin/sh', ['-c', STOP_AFTER_USERS, 'sh', String(pid)], { ...options, stdio: 'ignore' }).unref();
      return;
    }
    await sleep(POLL_MS);
  }
  const output = (await fs.readFile(logFile)).subarray(size).toString('utf8');
  if (PASSING_FAULT.test(output)) return;
  const reason = faultLine(output).replaceAll(pathFor(owner, directory), directory);
  throw new EmbeddedPostgresError(`The embedded PostgreSQL does not start: ${reason}. Its log: ${logFile}`);
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

/** The programs are started in the directory. For another user, Linux has a path that needs no access to its parents. */
function pathFor({ uid }: ProcessOwner, directory: string): string {
  return process.platform === 'linux' && uid !== undefined ? '/proc/self/cwd' : directory;
}
