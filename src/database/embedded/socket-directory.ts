import { chmod, chown, lstat, mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, isSocketDirectory, lastListener, type Listener } from './postmaster.js';
import type { PostgresCluster } from './postgres-cluster.js';

/** Only part of the socket's name: no other PostgreSQL uses the directory. */
const SOCKET_PORT = 5432;
const SOCKET_NAME = `.s.PGSQL.${SOCKET_PORT}`;
/** A socket address has 104 bytes on macOS and 108 on Linux, including the terminating zero. */
const PATH_BYTES_MAX = 103;
const PREFIX = 'channel-transcripts-';

/**
 * Chooses the address that PostgreSQL listens on: a Unix socket in a directory that only its owner may enter, so that no
 * other user can connect, or listen in its place after it has ended. This is the data directory, unless its path is too
 * long for a socket address. On Windows, where Node.js does not support Unix sockets, it is a port of 127.0.0.1.
 *
 * @param apart use another directory, because the file system of the data directory does not support sockets
 */
export async function chooseListener(cluster: PostgresCluster, apart = false): Promise<Listener> {
  if (process.platform === 'win32') return { host: '127.0.0.1', port: await findFreePort() };
  if (!apart && hasRoom(cluster.directory)) return { host: cluster.directory, port: SOCKET_PORT };
  const last = await lastListener(cluster);
  const known = last !== undefined && last.host !== cluster.directory && (await isPrivate(cluster, last.host));
  return { host: known ? last.host : await makeDirectory(cluster), port: SOCKET_PORT };
}

/** Whether only PostgreSQL's owner can have created this listener; checked before a password is sent. */
export async function isTrusted(cluster: PostgresCluster, { host }: Listener): Promise<boolean> {
  return !isSocketDirectory(host) || isPrivate(cluster, host);
}

/** Removes the directory of an unused socket. */
export async function removeSocketDirectory(cluster: PostgresCluster, { host }: Listener): Promise<void> {
  if (isSocketDirectory(host) && host !== cluster.directory) await rmdir(host).catch(() => undefined);
}

async function makeDirectory({ owner }: PostgresCluster): Promise<string> {
  const parent = [tmpdir(), '/tmp'].find((path) => hasRoom(join(path, `${PREFIX}XXXXXX`))) ?? '/tmp';
  const directory = await mkdtemp(join(parent, PREFIX));
  await chmod(directory, 0o700);
  if ('uid' in owner) await chown(directory, owner.uid, owner.gid);
  return directory;
}

function hasRoom(directory: string): boolean {
  return Buffer.byteLength(join(directory, SOCKET_NAME)) <= PATH_BYTES_MAX;
}

/** In a shared directory another user can create the path after a cleanup job has removed it. */
async function isPrivate({ owner }: PostgresCluster, directory: string): Promise<boolean> {
  const found = await lstat(directory).catch(() => undefined);
  const uid = 'uid' in owner ? owner.uid : process.getuid?.();
  return found !== undefined && found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0;
}
