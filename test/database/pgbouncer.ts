import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port.js';
import { chooseOwner } from '../../src/database/embedded/postgres-cluster.js';
import { isInstalled } from '../programs.js';

const PROGRAM = 'pgbouncer';
const START_MS = 10_000;

export const pgbouncerIsInstalled = isInstalled(PROGRAM);

const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** A PgBouncer in front of a PostgreSQL. */
export class PgBouncer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    private readonly port: number,
  ) {}

  /**
   * Starts one in front of the server of a URL; it knows the role of the URL and every database.
   *
   * @param settings of `pgbouncer.ini`, in place of or beside the usual ones
   */
  static async start(serverUrl: string, settings: Readonly<Record<string, string | number>> = {}): Promise<PgBouncer> {
    const server = new URL(serverUrl);
    const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'));
    const port = await freePort();
    const host = server.searchParams.get('host') ?? server.hostname;
    const all = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'scram-sha-256',
      auth_file: join(folder, 'users.txt'),
      default_pool_size: 20,
      // A server that is down is retried at once when it is available again.
      server_login_retry: 1,
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
    const [user, password] = [server.username, server.password].map(decodeURIComponent);
    const ini = `[databases]\n* = host=${host} port=${server.port || 5432}\n\n[pgbouncer]\n${lines.join('\n')}\n`;
    // It refuses to run as root.
    const owner = await chooseOwner(folder);
    const files = { 'pgbouncer.ini': ini, 'users.txt': `"${user}" "${password}"\n` };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
    if (owner.uid !== undefined && owner.gid !== undefined) {
      for (const path of [folder, ...Object.keys(files).map((name) => join(folder, name))]) {
        await chown(path, owner.uid, owner.gid);
      }
    }
    const child = spawn(PROGRAM, [join(folder, 'pgbouncer.ini')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      // Ctrl-C reaches the parent process, which then stops it.
      detached: true,
      ...owner,
    });
    running.add(child);
    child.once('close', () => running.delete(child));
    await untilUp(child);
    return new PgBouncer(child, folder, port);
  }

  /** The URL of a database of the server, through PgBouncer. */
  url(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.searchParams.delete('host');
    url.host = `127.0.0.1:${this.port}`;
    return url.href;
  }

  async stop(): Promise<void> {
    if (running.has(this.child)) {
      const closed = once(this.child, 'close');
      // At once, with its connections.
      this.child.kill('SIGTERM');
      await closed;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}

function untilUp(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    const fail = (): void => reject(new Error(`${PROGRAM} did not start:\n${log}`));
    const timer = setTimeout(fail, START_MS);
    child.once('error', reject);
    child.once('close', fail);
    child.stderr?.on('data', (chunk: Buffer) => {
      // The whole log is written here; only its beginning is needed.
      if (log.length < 10_000) log += chunk.toString();
      if (!log.includes('process up')) return;
      clearTimeout(timer);
      child.off('close', fail);
      resolve();
    });
  });
}
