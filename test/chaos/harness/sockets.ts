import { readdir, readFile, readlink } from 'node:fs/promises';

interface Connection {
  table: string;
  local: string;
  remote: string;
}

/**
 * The remote addresses of a process's outgoing connections: `127.0.0.1:5432`. Undefined where there is
 * no /proc.
 */
export async function farEnds(pid: number, ownPort: number): Promise<Set<string> | undefined> {
  const connections = await connectionsOf(pid);
  return (
    connections &&
    new Set(
      connections
        .filter(({ local, remote }) => portOf(local) !== ownPort && portOf(remote) !== 0)
        .map(({ table, remote }) => `${table.startsWith('udp') ? 'udp ' : ''}${addressOf(remote)}`),
    )
  );
}

/** The number of sockets of a process by remote address, incoming ones included; undefined where there is no /proc. */
export async function socketsByFarEnd(pid: number): Promise<Map<string, number> | undefined> {
  const connections = await connectionsOf(pid);
  if (!connections) return undefined;
  const counts = new Map<string, number>();
  for (const { remote } of connections) {
    if (portOf(remote) === 0) continue;
    const end = addressOf(remote);
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return counts;
}

/** The remote ports of the connections to a process's port; undefined where there is no /proc. */
export async function callers(pid: number, port: number): Promise<Set<number> | undefined> {
  const connections = await connectionsOf(pid);
  return (
    connections &&
    new Set(connections.filter(({ local }) => portOf(local) === port).map(({ remote }) => portOf(remote)))
  );
}

async function connectionsOf(pid: number): Promise<Connection[] | undefined> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => undefined);
  if (!names) return undefined;
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const found: Connection[] = [];
  for (const table of ['tcp', 'tcp6', 'udp', 'udp6']) {
    const lines = (await readFile(`/proc/${pid}/net/${table}`, 'utf8').catch(() => '')).split('\n').slice(1);
    for (const line of lines) {
      const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/);
      if (inodes.has(inode)) found.push({ table, local, remote });
    }
  }
  return found;
}

function portOf(end: string): number {
  return Number.parseInt(end.split(':')[1] ?? '', 16);
}

/** The kernel writes an IPv4 address as one number of the machine's own byte order. */
function addressOf(end: string): string {
  const [host = ''] = end.split(':');
  const bytes = host.match(/../g) ?? [];
  const written = bytes.length === 4 ? bytes.reverse().map((byte) => Number.parseInt(byte, 16)) : [host];
  return `${written.join('.')}:${portOf(end)}`;
}
