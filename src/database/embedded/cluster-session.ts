import pg from 'pg';
import { SERVICE_ROLE, type PostgresCluster } from './postgres-cluster.js';
import type { Listener } from './postmaster.js';
import { DATABASE, isRoleMissing, prepareServiceRole } from './service-role.js';

/** Advisory locks in the database `postgres`; PostgreSQL releases them when their process dies. */
const USERS_LOCK = 1;
const SERVICE_LOCK = 2;

/** The host name in the URL; it does not resolve, so a client that ignores the `host` parameter fails to connect. */
const NO_HOST = 'embedded.invalid';

/**
 * A process's registration as a user of the cluster, valid as long as its connection: each user holds a shared advisory
 * lock, and a process that acquires it exclusively is the last one and may stop the cluster.
 */
export class ClusterSession {
  /** Resolves when the connection has ended, for any reason. */
  readonly ended: Promise<void>;

  private constructor(
    private readonly client: pg.Client,
    readonly listener: Listener,
  ) {
    this.ended = new Promise((resolve) => client.once('end', () => resolve()));
  }

  /** Returns undefined while the last user stops the cluster. @throws the driver's error when it cannot connect */
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

  /** Returns false while another service uses the cluster. */
  async becomeService(): Promise<boolean> {
    return this.query(`pg_try_advisory_lock(${SERVICE_LOCK})`);
  }

  /** The URL of the application's database in libpq's form: the host is a parameter because it can be a directory. */
  databaseUrl({ servicePassword }: PostgresCluster): string {
    const { host, port } = this.listener;
    const address = new URLSearchParams({ host, port: String(port) });
    return `postgres://${SERVICE_ROLE}:${servicePassword}@${NO_HOST}/${DATABASE}?${address.toString()}`;
  }

  /**
   * Ends the registration. Returns true for the last user: no other process can join until `end`, and the caller must stop
   * the cluster. The shared lock is released first, so that of two processes that disconnect together one is the last.
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
  // `ended` reports the end of the connection; an 'error' event without a listener would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}
