import pg from 'pg';
import { SERVICE_ROLE, type PostgresCluster } from './postgres-cluster.js';
import type { Listener } from './postmaster.js';
import { DATABASE, isRoleMissing, prepareServiceRole } from './service-role.js';

/** Advisory locks in the database `postgres`; PostgreSQL releases them when their process dies. */
const USERS_LOCK = 1;
const SERVICE_LOCK = 2;

/** Stands in the URL where a host name belongs, so that whoever overlooks the directory in it connects to nothing. */
const NO_HOST = 'embedded.invalid';

/**
 * A process's membership among the users of the cluster, for as long as its connection lives: each user holds one lock
 * together with the others, and whoever gets it alone may stop the cluster.
 */
export class ClusterSession {
  /** Resolves when the connection is gone, for whatever reason. */
  readonly ended: Promise<void>;

  private constructor(
    private readonly client: pg.Client,
    readonly listener: Listener,
  ) {
    this.ended = new Promise((resolve) => client.once('end', () => resolve()));
  }

  /** Undefined while the last user is about to stop the cluster. Rejects with the driver's error when it cannot connect. */
  static async join(cluster: PostgresCluster, listener: Listener): Promise<ClusterSession | undefined> {
    const client = await connect(cluster, listener).catch(async (error: unknown) => {
      if (!isRoleMissing(error)) throw error;
      await prepareServiceRole(cluster, listener);
      return connect(cluster, listener);
    });
    try {
      const session = new ClusterSession(client, listener);
      if (await session.query(`pg_try_advisory_lock_shared(${USERS_LOCK})`)) return session;
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    await client.end().catch(() => undefined);
    return undefined;
  }

  /** False while another service holds the cluster. */
  async becomeService(): Promise<boolean> {
    return this.query(`pg_try_advisory_lock(${SERVICE_LOCK})`);
  }

  /** URL of the application's database, in the form of libpq: the host is a parameter, as it can be a directory. */
  databaseUrl({ servicePassword }: PostgresCluster): string {
    const { host, port } = this.listener;
    const where = new URLSearchParams({ host, port: String(port) });
    return `postgres://${SERVICE_ROLE}:${servicePassword}@${NO_HOST}/${DATABASE}?${where.toString()}`;
  }

  /**
   * Gives up the membership. True when nobody else is left: then nobody can join either until `end`, and the caller
   * has to stop the cluster. The own lock goes first, so that of two who leave at once the second finds itself alone.
   */
  async disconnect(): Promise<boolean> {
    await this.client.query('SELECT pg_advisory_unlock_all()');
    return this.query(`pg_try_advisory_lock(${USERS_LOCK})`);
  }

  async end(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  private async query(expression: string): Promise<boolean> {
    const { rows } = await this.client.query<{ result: unknown }>(`SELECT ${expression} AS result`);
    return rows[0]?.result === true;
  }
}

async function connect(cluster: PostgresCluster, { host, port }: Listener): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host, port, user: SERVICE_ROLE, password: cluster.servicePassword, database: 'postgres' },
    application_name: 'channel-transcripts',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  // The end of the connection is reported by `ended`; an unheard error would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}
