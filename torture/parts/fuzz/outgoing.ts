import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';

/** A listener on the loopback whose address stands in hostile requests; whoever connects has followed one of them. */
export class Canary {
  contacts = 0;

  private constructor(
    readonly address: string,
    readonly close: () => void,
  ) {}

  static async start(): Promise<Canary> {
    const server = createServer((socket) => {
      canary.contacts += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const canary = new Canary(`127.0.0.1:${port}`, () => server.close());
    return canary;
  }
}

/**
 * The far ends of a process's connections, those of its own callers left out, from /proc: `127.0.0.1:5432`. Undefined
 * where there is no /proc.
 */
export async function farEnds(pid: number, ownPort: number): Promise<Set<string> | undefined> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => undefined);
  if (!names) return undefined;
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const ends = new Set<string>();
  for (const table of ['tcp', 'tcp6', 'udp', 'udp6']) {
    const lines = (await readFile(`/proc/${pid}/net/${table}`, 'utf8').catch(() => '')).split('\n').slice(1);
    for (const line of lines) {
      const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/);
      if (!inodes.has(inode) || portOf(local) === ownPort || portOf(remote) === 0) continue;
      ends.add(`${table.startsWith('udp') ? 'udp ' : ''}${addressOf(remote)}`);
    }
  }
  return ends;
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
