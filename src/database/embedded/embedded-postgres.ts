import { open, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { isConnectionFailure, sqlStateOf } from '../database-errors.js';
import { EmbeddedPostgresError, faultLine } from './postgres-programs.js';
import { prepareCluster, SERVICE_ROLE, startPostgres, stopPostgres, USERS_PIPE } from './postgres-cluster.js';
import type { PostgresCluster } from './postgres-cluster.js';

/** Only part of the socket's name: PostgreSQL listens on no port. */
const PORT = 5432;
/** The address of a socket has 104 bytes on macOS and 108 on Linux, and ends in `/postgres/.s.PGSQL.5432` and a zero. */
const PATH_BYTES_MAX = 80;

/** Advisory locks in the database `postgres`, which PostgreSQL releases when their process dies. */
const LOCKS = { command: 'pg_advisory_lock_shared(1)', service: 'pg_advisory_lock_shared(1), pg_advisory_lock(2)' };
/** The shared lock is released first, so that of two processes that close together one is the last. */
const CLOSE = 'SELECT pg_advisory_unlock_all(), pg_try_advisory_lock(1) AS "isLast"';
/** How long PostgreSQL can take to release the locks of a killed service. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_NOT_AVAILABLE = '55P03';

const OPEN_MS_MAX = 60_000;
const RETRY_PAUSE_MS = 50;
const REJOIN_PAUSE_MS = 1_000;

/**
 * One process's use of the PostgreSQL in a data directory, which listens on a Unix socket in that directory: a connection
 * with a shared advisory lock, and with an exclusive second one for the service. The process that acquires the first lock
 * exclusively is the last user, and stops PostgreSQL. When PostgreSQL crashes, the process joins again.
 */
export class EmbeddedPostgres {
  /** URL of the application's database, for a role that owns it and nothing else. */
  readonly url: string;
  private client: pg.Client | undefined;
  private joining: Promise<void> | undefined;
  private isClosing = false;

  private constructor(
    private readonly cluster: PostgresCluster,
    private readonly as: 'service' | 'command',
    private readonly pipe: FileHandle,
  ) {
    // In libpq's form, where a directory as host is a parameter; the name in its place does not resolve.
    const host = encodeURIComponent(cluster.directory);
    this.url = `postgres://${SERVICE_ROLE}@embedded.invalid/${SERVICE_ROLE}?host=${host}&port=${PORT}`;
  }

  /**
   * Creates the database in `dataDir` if it does not exist, and starts PostgreSQL if it does not run.
   *
   * @throws EmbeddedPostgresError when the directory or PostgreSQL cannot be used, or when another service uses it
   */
  static async open(dataDir: string, as: 'service' | 'command'): Promise<EmbeddedPostgres> {
    const path = resolve(dataDir);
    try {
      const cluster = await prepareCluster(path);
      if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw new Error('its path is too long for a Unix socket');
      // For writing and reading, so that it does not wait for a reader.
      const use = new EmbeddedPostgres(cluster, as, await open(join(cluster.directory, USERS_PIPE), 'r+'));
      await use.join().catch(async (error: unknown) => {
        await use.close();
        throw error;
      });
      return use;
    } catch (error) {
      if (error instanceof EmbeddedPostgresError) throw error;
      const { stderr = '', message } = error as { readonly stderr?: string; readonly message: string };
      const reason = faultLine(`${stderr}\n${message}`);
      throw new EmbeddedPostgresError(`The data directory ${path} cannot be used: ${reason}`, { cause: error });
    }
  }

  /** Ends this use; the last user stops PostgreSQL. */
  async close(): Promise<void> {
    this.isClosing = true;
    await this.joining;
    // Fails if PostgreSQL has ended by itself.
    const result = await this.client?.query<{ isLast: boolean }>(CLOSE).catch(() => undefined);
    if (result?.rows[0]?.isLast === true) await stopPostgres(this.cluster);
    await this.client?.end();
    await this.pipe.close();
  }

  private async join(): Promise<void> {
    this.client = await this.connectOrStart();
    this.client.once('end', () => void (this.joining = this.rejoin()));
  }

  /** Not logged: until it succeeds, the application's queries fail and report the unavailable database. */
  private async rejoin(): Promise<void> {
    while (!this.isClosing) {
      try {
        return await this.join();
      } catch {
        await sleep(REJOIN_PAUSE_MS);
      }
    }
  }

  private async connectOrStart(): Promise<pg.Client> {
    const giveUpAt = performance.now() + OPEN_MS_MAX;
    for (;;) {
      try {
        return await this.connect();
      } catch (error) {
        if (!isConnectionFailure(error) || performance.now() > giveUpAt) throw error;
        const { code } = error as { readonly code?: unknown };
        if (code === 'ENOENT' || code === 'ECONNREFUSED') await startPostgres(this.cluster);
        await sleep(RETRY_PAUSE_MS);
      }
    }
  }

  /** Waits for the lock while the last user stops PostgreSQL, which then ends this connection too. */
  private async connect(): Promise<pg.Client> {
    const client = new pg.Client({
      ...{ host: this.cluster.directory, port: PORT, user: SERVICE_ROLE, database: 'postgres' },
      ...{ application_name: 'channel-transcripts', connectionTimeoutMillis: 5_000, lock_timeout: LOCK_TIMEOUT_MS },
    });
    // An 'error' event without a listener would end the process; 'end' follows it.
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query(`SELECT ${LOCKS[this.as]}`);
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE) throw error;
      throw new EmbeddedPostgresError(
        `Another service runs on the data directory ${dirname(this.cluster.directory)}: stop it first, or give this one a DATA_DIR of its own.`,
      );
    }
  }
}
