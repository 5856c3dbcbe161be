import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { ADMIN_ROLE, prepareCluster, type PostgresCluster } from '../../../src/database/embedded/postgres-cluster.js';
import {
  findFreePort,
  findPostmaster,
  launchPostmaster,
  stopPostmaster,
} from '../../../src/database/embedded/postmaster.js';
import { until } from './until.js';

const postmasters = new Set<number>();
// A chaos run that is killed has no time to stop them: SIGQUIT ends a PostgreSQL with all its processes.
process.on('exit', () => postmasters.forEach((pid) => signal(pid, 'SIGQUIT')));

/** A PostgreSQL of the chaos tests, whose address stays the same when it is stopped, killed and started again. */
export interface Database {
  /** URL of a database that always exists. */
  readonly adminUrl: string;
  /** Creates an empty database. */
  create(): Promise<string>;
  query(url: string, statement: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  start(settings?: readonly string[]): Promise<void>;
  /** Shuts down in order and closes all connections. */
  stop(): Promise<void>;
  /** Kills all its processes at once. */
  kill(): Promise<void>;
  /** Suspends all its processes until they are resumed. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

export async function startDatabase(folder: string, name: string, settings: readonly string[] = []): Promise<Database> {
  const dataDir = join(folder, name);
  await mkdir(dataDir, { recursive: true });
  await chmod(dataDir, 0o711);
  const cluster = await prepareCluster(dataDir);
  const database = new OwnDatabase(cluster, await findFreePort());
  await database.start(settings);
  return database;
}

/** A PostgreSQL on a cluster that is already prepared. */
export class OwnDatabase implements Database {
  readonly adminUrl: string;
  private settings: readonly string[] = [];

  constructor(
    private readonly cluster: PostgresCluster,
    private readonly port: number,
  ) {
    this.adminUrl = `postgres://${ADMIN_ROLE}:${cluster.adminPassword}@127.0.0.1:${port}/postgres`;
  }

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

  async start(settings = this.settings): Promise<void> {
    this.settings = settings;
    // The killed process may still occupy the port or the shared memory for a moment.
    await until('PostgreSQL starts', async () => {
      const launch = await launchPostmaster(this.cluster, { host: '127.0.0.1', port: this.port }, [
        'max_connections=200',
        ...settings,
      ]);
      await until('PostgreSQL responds', async () => {
        if (launch.hasEnded()) return true;
        await this.query(this.adminUrl, 'SELECT 1');
        return true;
      });
      return !launch.hasEnded();
    });
    const postmaster = await findPostmaster(this.cluster);
    if (postmaster) postmasters.add(postmaster.pid);
  }

  async stop(): Promise<void> {
    const postmaster = await findPostmaster(this.cluster);
    await stopPostmaster(this.cluster);
    if (postmaster) postmasters.delete(postmaster.pid);
  }

  async kill(): Promise<void> {
    for (const pid of await this.processes()) {
      signal(pid, 'SIGKILL');
      postmasters.delete(pid);
    }
    await until('PostgreSQL has stopped', async () => (await findPostmaster(this.cluster)) === undefined);
  }

  async freeze(): Promise<void> {
    for (const pid of await this.processes()) signal(pid, 'SIGSTOP');
  }

  async thaw(): Promise<void> {
    for (const pid of await this.processes()) signal(pid, 'SIGCONT');
  }

  /** The main process first, which would replace the others. */
  private async processes(): Promise<number[]> {
    const postmaster = await findPostmaster(this.cluster);
    if (!postmaster) return [];
    return [postmaster.pid, ...(await childrenOf(postmaster.pid))];
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}
