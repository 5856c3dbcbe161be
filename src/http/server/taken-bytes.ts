import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** The connections of this machine on Linux: addresses and ports, state, bytes that the other end has not confirmed. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const ROW = /:(\w{4}) \w+:(\w{4}) \w\w (\w{8}):/g;
/** One reading serves all connections for this long. */
const READING_MS = 500;

let reading: Promise<ReadonlyMap<string, string>> | undefined;

/**
 * A text that changes when the reader of a connection takes something. Of itself Node.js sees that only when about a third of the
 * system's buffer is free, a megabyte, which a slow reader takes in minutes. Where there is no table, it is all there is.
 */
export async function takenOf(socket: Socket): Promise<string> {
  reading ??= readQueues();
  const queue = (await reading).get(`${hex(socket.localPort)} ${hex(socket.remotePort)}`);
  return `${socket.bytesWritten - socket.writableLength} ${queue}`;
}

/** By ports: of readers at several addresses that have the same port, each counts as one that takes what the others take. */
async function readQueues(): Promise<ReadonlyMap<string, string>> {
  setTimeout(() => (reading = undefined), READING_MS).unref();
  const tables = await Promise.all(TABLES.map((table) => readFile(table, 'latin1').catch(() => '')));
  const queues = new Map<string, string>();
  for (const [, local = '', remote = '', queue = ''] of tables.join('').matchAll(ROW)) {
    const ports = `${local} ${remote}`;
    queues.set(ports, `${queues.get(ports) ?? ''}${queue}`);
  }
  return queues;
}

const hex = (port = 0): string => port.toString(16).toUpperCase().padStart(4, '0');
