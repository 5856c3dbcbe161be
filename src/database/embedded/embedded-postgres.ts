import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  EmbeddedPostgresError,
  type PostgresCluster,
  prepareCluster,
  REPLACED_LOG,
  ROLE,
  startPostgres,
  stopPostgres,
} from './postgres-cluster.js';

/** Only part of the socket's name: PostgreSQL listens on no port. */
const PORT = 5432;
/** The address of a socket has 104 bytes on macOS and 108 on Linux, and ends in `/postgres/.s.PGSQL.5432` and a zero. */
const PATH_BYTES_MAX = 80;

/** Advisory locks, which PostgreSQL releases when their process dies: each user shares the first, a service has the second. */
const LOCKS = { command: 'pg_advisory_lock_shared(1)', service: 'pg_advisory_lock_shared(1), pg_advisory_lock(2)' };
/** The shared lock is released first, so that of two processes that close together one is the last. */
const CLOSE = 'SELECT pg_advisory_unlock_all(), pg_try_advisory_lock(1) AS "isLast"';
/** How long PostgreSQL can take to release the locks of a killed service. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_NOT_AVAILABLE = '55P03';

/** Another PostgreSQL starts or ends, or processes of a killed one do. */
const PASSING_FAULT = new RegExp(`lock file|shared memory block|Address already in use|${REPLACED_LOG}`);
const CONNECT_ATTEMPTS_MAX = 300;
const PAUSE_MS = 100;

/**
 * One process's use of the PostgreSQL in a data directory, which listens on a Unix socket in that directory. The first user
 * starts it and the last one stops it, as advisory locks tell; the next user finds one that a killed process left running.
 */
export class EmbeddedPostgres {
  readonly url: string;

  private constructor(
    private readonly cluster: PostgresCluster,
    private readonly client: pg.Client,
  ) {
    // In libpq's form, where a directory as host is a parameter; the name in its place does not resolve.
    const host = encodeURIComponent(cluster.directory);
    this.url = `postgres://${ROLE}@embedded.invalid/postgres?host=${host}&port=${PORT}`;
  }

  /**
   * Creates the database in `dataDir` if it does not exist, and starts PostgreSQL if it does not run.
   *
   * @throws EmbeddedPostgresError when the directory or PostgreSQL cannot be used, or when another service uses it
   */
  static async open(dataDir: string, as: 'service' | 'command'): Promise<EmbeddedPostgres> {
    const path = resolve(dataDir);
    try {
      if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw new Error('its path is too long for a Unix socket');
      const cluster = await prepareCluster(path);
      return new EmbeddedPostgres(cluster, await connectOrStart(cluster, as));
    } catch (error) {
      if (error instanceof EmbeddedPostgresError) throw error;
      const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
      const reason = (stderr?.trim() || message).split('\n', 1)[0];
      throw new EmbeddedPostgresError(`The data directory ${path} cannot be used: ${reason}`, { cause: error });
    }
  }

  /** Ends this use; the last user stops PostgreSQL. */
  async close(): Promise<void> {
    // Fails if PostgreSQL has ended by itself.
    const result = await this.client.query<{ isLast: boolean }>(CLOSE).catch(() => undefined);
    if (result?.rows[0]?.isLast === true) await stopPostgres(this.cluster);
    await this.client.end();
  }
}

async function connectOrStart(cluster: PostgresCluster, as: 'service' | 'command'): Promise<pg.Client> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await connect(cluster, as);
    } catch (error) {
      if (error instanceof EmbeddedPostgresError) throw error;
    }
    try {
      await startPostgres(cluster);
    } catch (error) {
      if (!PASSING_FAULT.test(String(error)) || attempt === CONNECT_ATTEMPTS_MAX) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** Waits for the lock while the last user stops PostgreSQL, which then ends this connection too. */
async function connect(cluster: PostgresCluster, as: 'service' | 'command'): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host: cluster.directory, port: PORT, user: ROLE, database: 'postgres', lock_timeout: LOCK_TIMEOUT_MS },
    ...{ application_name: 'channel-transcripts', connectionTimeoutMillis: 5_000 },
  });
  // An 'error' event without a listener would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(`SELECT ${LOCKS[as]}`);
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    if ((error as { readonly code?: unknown }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new EmbeddedPostgresError(
      `Another service runs on the data directory ${dirname(cluster.directory)}: stop it first, or give this one a DATA_DIR of its own.`,
    );
  }
}
