import { Logger, type Type } from '@nestjs/common';
import pg from 'pg';
import { DataSource, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import { isProduction, type Environment } from '../config/environment.js';
import { runMigrations } from './migrations.js';
import { QuerySpans } from './query-spans.js';

const CONNECTIONS_MAX = 10;
/** For a connection of the pool, open or new. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Longer than the server's statement timeout, which leaves the connection usable. */
const RESPONSE_TIMEOUT_MS = 5_500;
/** After a failover an open connection may still lead to the old server, which is read-only. */
const CONNECTION_LIFETIME_SECONDS = 10;

/**
 * Overrides the defaults of the role, the database and the server. The lock timeout bounds how long the calls of a locked
 * organization keep connections from others. A process that stalls within a transaction loses its locks. The quota functions
 * need READ COMMITTED: at a stricter level their snapshot is older than their lock.
 */
const SESSION_SETTINGS = `
  SET statement_timeout = '5s';
  SET lock_timeout = '750ms';
  SET idle_in_transaction_session_timeout = '15s';
  SET default_transaction_isolation = 'read committed'`;

export interface DatabaseOptions {
  /** The role of this process on an embedded database: one service at a time, any number of commands. */
  readonly as: 'service' | 'command';
  readonly entities: readonly Type<unknown>[];
  /** In the order in which they run; each name ends in its timestamp, as TypeORM requires. */
  readonly migrations: readonly Type<MigrationInterface>[];
  /** After which a server that stopped responding fails a statement, and its connection is closed; default: 5,500 ms. */
  readonly responseTimeoutMs?: number;
}

/** The open database of a process. */
export interface OpenDatabase {
  readonly dataSource: DataSource;
  /** Closes the connections, then the embedded PostgreSQL, if one was started. */
  close(): Promise<void>;
}

/**
 * Opens the database at DATABASE_URL, or the embedded one when DATABASE_URL is not set, and runs pending migrations.
 *
 * @throws DatabaseUnreachableError when the server at DATABASE_URL does not respond or refuses the connection
 * @throws EmbeddedPostgresError when the embedded one cannot be used
 */
export async function openDatabase(environment: Environment, options: DatabaseOptions): Promise<OpenDatabase> {
  const embedded =
    environment.DATABASE_URL === undefined ? await openEmbedded(environment.DATA_DIR, options) : undefined;
  const url = embedded?.url ?? environment.DATABASE_URL ?? '';
  const dataSource = new DataSource(connectionOptions(url, options));
  const close = async (): Promise<void> => {
    if (dataSource.isInitialized) await dataSource.destroy();
    await embedded?.close();
  };
  try {
    await runMigrations(url, options.migrations);
    await dataSource.initialize();
    return { dataSource, close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

/** Imported on demand, so that an installation without the optional dependency works with DATABASE_URL. */
async function openEmbedded(
  dataDir: string,
  { as }: DatabaseOptions,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { EmbeddedPostgres } = await import('./embedded/embedded-postgres.js');
  const embedded = await EmbeddedPostgres.open(dataDir, as);
  if (as === 'service') reportEmbedded(dataDir);
  return embedded;
}

function reportEmbedded(dataDir: string): void {
  const logger = new Logger('EmbeddedPostgres');
  logger.log({
    event: 'embedded_postgres',
    message: `DATABASE_URL is not set: using the embedded PostgreSQL in ${dataDir}, which is intended for evaluation and development.`,
  });
  if (!isProduction()) return;
  logger.warn({
    event: 'embedded_postgres_in_production',
    message:
      'The embedded PostgreSQL is not intended for production: its binaries contain OpenSSL 1.1.1 and ICU 60, which receive no security fixes. Set DATABASE_URL.',
  });
}

function connectionOptions(
  url: string,
  { entities, responseTimeoutMs = RESPONSE_TIMEOUT_MS }: DatabaseOptions,
): DataSourceOptions {
  return {
    type: 'postgres',
    // TypeORM loads it by a computed name, which would be another copy of the package than the one in the bundle.
    driver: pg,
    url,
    entities: [...entities],
    subscribers: [QuerySpans],
    synchronize: false,
    installExtensions: false,
    uuidExtension: 'pgcrypto',
    applicationName: 'channel-transcripts',
    poolSize: CONNECTIONS_MAX,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // An idle connection that breaks is replaced by the pool; the next query reports an unavailable database.
    poolErrorHandler: () => undefined,
    extra: {
      keepAlive: true,
      query_timeout: responseTimeoutMs,
      // With it, pg closes a connection whose response is overdue; otherwise the next statement waits behind that.
      pipeline: true,
      maxLifetimeSeconds: CONNECTION_LIFETIME_SECONDS,
      onConnect: (client: pg.ClientBase) => client.query(SESSION_SETTINGS),
    },
  };
}
