import { chmod, chown, lstat, mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, isSocketDirectory, lastListener, type Listener } from './postmaster.js';
import type { PostgresCluster } from './postgres-cluster.js';

/** Part of the socket's name only, as there is no other PostgreSQL in the directory. */
const SOCKET_PORT = 5432;
const SOCKET_NAME = `.s.PGSQL.${SOCKET_PORT}`;
/** The address of a socket has 104 bytes on macOS and 108 on Linux, its final zero included. */
const PATH_BYTES_MAX = 103;
const PREFIX = 'channel-transcripts-';

/**
 * Chooses where PostgreSQL is to listen: on a Unix socket in a directory that only its owner may enter, so that no other
 * user of the machine can connect, or listen in its place once it has died. This is its data directory, unless the path is
 * too long for the address of a socket or `apart` asks for another place, such as for a file system without sockets.
 * Windows, where Node.js does not speak to Unix sockets, has a port of 127.0.0.1 instead.
 */
export async function chooseListener(cluster: PostgresCluster, apart = false): Promise<Listener> {
  if (process.platform === 'win32') return { host: '127.0.0.1', port: await findFreePort() };
  if (!apart && hasRoom(cluster.directory)) return { host: cluster.directory, port: SOCKET_PORT };
  const last = await lastListener(cluster);
  const known = last !== undefined && last.host !== cluster.directory && (await isPrivate(cluster, last.host));
  return { host: known ? last.host : await makeDirectory(cluster), port: SOCKET_PORT };
}

/** Whether only PostgreSQL's owner can have made what listens there; asked before anything secret is sent. */
export async function isTrusted(cluster: PostgresCluster, { host }: Listener): Promise<boolean> {
  return !isSocketDirectory(host) || isPrivate(cluster, host);
}

/** Removes the directory of a socket that is not needed any more. */
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

/** A name in a folder that all users share can be taken by another user after a cleaner has removed the directory. */
async function isPrivate({ owner }: PostgresCluster, directory: string): Promise<boolean> {
  const found = await lstat(directory).catch(() => undefined);
  const uid = 'uid' in owner ? owner.uid : process.getuid?.();
  return found !== undefined && found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0;
}
