import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import {
  prepareCluster,
  readLockFile,
  ROLE,
  startPostgres,
  stopPostgres,
  type PostgresCluster,
} from '../../../src/database/embedded/postgres-cluster.js';
import { freePort } from '../../harness/free-port.js';
import { until } from './until.js';

/** Of the servers that run. */
const postmasters = new Set<number>();
// A chaos run that is killed has no time to stop them: SIGQUIT ends a PostgreSQL with all its processes.
process.on('exit', () => postmasters.forEach((pid) => signal(pid, 'SIGQUIT')));

/** The superuser may connect to a port. */
const LOGIN_RULES = 'host all all 127.0.0.0/8 trust\n';

export async function startDatabase(folder: string, name: string, settings: readonly string[] = []): Promise<Database> {
  const dataDir = join(folder, name);
  await mkdir(dataDir, { recursive: true });
  await chmod(dataDir, 0o711);
  const cluster = await prepareCluster(dataDir);
  await writeFile(join(cluster.directory, 'pg_hba.conf'), LOGIN_RULES);
  const database = new Database(cluster, await freePort(), settings);
  await database.start();
  return database;
}

/** A PostgreSQL of the chaos tests, whose address stays the same when it is stopped, killed and started again. */
export class Database {
  /** URL of a database that always exists. */
  readonly adminUrl: string;

  constructor(
    private readonly cluster: PostgresCluster,
    private readonly port: number,
    private readonly settings: readonly string[],
  ) {
    this.adminUrl = `postgres://${ROLE}:chaos@127.0.0.1:${port}/postgres`;
  }

  /** Creates an empty database. */
  async create(): Promise<string> {
    const name = `chaos_${randomBytes(6).toString('hex')}`;
    await this.query(this.adminUrl, `CREATE DATABASE ${name}`);
    const url = new URL(this.adminUrl);
    url.pathname = `/${name}`;
    return url.href;
  }

  async query(url: string, statement: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ application_name: 'chaos', connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query<Record<string, unknown>>(statement, [...values])).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async start(): Promise<void> {
    // The killed process may still occupy the port or the shared memory for a moment.
    await until('PostgreSQL starts', async () => {
      const address = ['listen_addresses=127.0.0.1', `port=${this.port}`];
      await startPostgres(this.cluster, [...address, 'max_connections=200', ...this.settings]);
      return true;
    });
    const [pid] = await this.processes();
    if (pid !== undefined) postmasters.add(pid);
  }

  /** Shuts down in order and closes all connections. */
  async stop(): Promise<void> {
    const [pid] = await this.processes();
    if (pid === undefined) return;
    await stopPostgres(this.cluster);
    postmasters.delete(pid);
  }

  /** Kills all its processes at once. */
  async kill(): Promise<void> {
    const processes = await this.processes();
    for (const pid of processes) {
      signal(pid, 'SIGKILL');
      postmasters.delete(pid);
    }
    await until('PostgreSQL has stopped', () => !processes.some((pid) => signal(pid, 0)));
  }

  /** Suspends all its processes until they are resumed. */
  async freeze(): Promise<void> {
    for (const pid of await this.processes()) signal(pid, 'SIGSTOP');
  }

  async thaw(): Promise<void> {
    for (const pid of await this.processes()) signal(pid, 'SIGCONT');
  }

  /** The main process first, which would replace the others. */
  private async processes(): Promise<number[]> {
    const { pid } = await readLockFile(this.cluster.directory);
    if (pid === undefined || !signal(pid, 0)) return [];
    return [pid, ...(await childrenOf(pid))];
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

/** Returns false when the process has ended. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
