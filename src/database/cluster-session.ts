import pg from 'pg';
import { CLUSTER_ROLE, type PostgresCluster } from './postgres-cluster.js';
import type { Postmaster } from './postmaster.js';

/** Advisory locks in the database `postgres`; PostgreSQL releases them when their process dies. */
const USERS_LOCK = 1;
const SERVICE_LOCK = 2;
const CREATION_LOCK = 3;

/** The database of the application. */
const DATABASE = 'channel_transcripts';

/**
 * A process's membership among the users of the cluster, for as long as its connection lives: each user holds one lock
 * together with the others, and whoever gets it alone may stop the cluster.
 */
export class ClusterSession {
  /** Resolves when the connection is gone, for whatever reason. */
  readonly ended: Promise<void>;

  private constructor(
    private readonly client: pg.Client,
    readonly port: number,
  ) {
    this.ended = new Promise((resolve) => client.once('end', () => resolve()));
  }

  /** Undefined while the last user is about to stop the cluster. Rejects with the driver's error when it cannot connect. */
  static async join(cluster: PostgresCluster, { port }: Postmaster): Promise<ClusterSession | undefined> {
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: CLUSTER_ROLE,
      password: cluster.password,
      database: 'postgres',
      application_name: 'channel-transcripts',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    });
    // The end of the connection is told by `ended`; an unheard error would end the process.
    client.on('error', () => undefined);
    try {
      await client.connect();
      const session = new ClusterSession(client, port);
      if (await session.ask(`pg_try_advisory_lock_shared(${USERS_LOCK})`)) return session;
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    await client.end().catch(() => undefined);
    return undefined;
  }

  /** False while another service holds the cluster. */
  async becomeService(): Promise<boolean> {
    return this.ask(`pg_try_advisory_lock(${SERVICE_LOCK})`);
  }

  /** Creates the application's database unless it exists, and returns its URL. */
  async openDatabase(password: string): Promise<string> {
    await this.client.query(`SELECT pg_advisory_lock(${CREATION_LOCK})`);
    const { rowCount } = await this.client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await this.client.query(`CREATE DATABASE ${DATABASE}`);
    await this.client.query(`SELECT pg_advisory_unlock(${CREATION_LOCK})`);
    return `postgres://${CLUSTER_ROLE}:${password}@127.0.0.1:${this.port}/${DATABASE}`;
  }

  /**
   * Gives up the membership. True when nobody else is left: then nobody can join either until `end`, and the caller
   * has to stop the cluster. The own lock goes first, so that of two who leave at once the second finds itself alone.
   */
  async leave(): Promise<boolean> {
    await this.client.query('SELECT pg_advisory_unlock_all()');
    return this.ask(`pg_try_advisory_lock(${USERS_LOCK})`);
  }

  async end(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  private async ask(expression: string): Promise<boolean> {
    const { rows } = await this.client.query<{ answer: unknown }>(`SELECT ${expression} AS answer`);
    return rows[0]?.answer === true;
  }
}
