import type { Socket } from 'node:net';
import { Logger, type Type } from '@nestjs/common';
import { DataSource, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import { isProduction, type Environment } from '../config/environment.js';
import { refuseUnreachable } from './database-unreachable.js';
import { runMigrations } from './migrations.js';
import { keepsSessionSettings, withSessionOptions } from './session-settings.js';
import { traceQueries } from './traced-queries.js';
import { runInTransactions } from './transaction-pooling.js';
import { UnusableConnections } from './unusable-connections.js';

/** How long a connection may take, in milliseconds; a call that waits longer is better told that the database is away. */
const CONNECT_TIMEOUT_MS = 2_000;
/** A little later than the server's own, which leaves the connection usable; this one is for a server gone silent. */
const RESPONSE_TIMEOUT_MS = 5_500;
const CONNECTIONS_MAX = 10;

export interface DatabaseOptions {
  /** Which part this process has on an embedded database: one service at a time, any number of commands. */
  readonly as: 'service' | 'command';
  readonly entities: readonly Type<unknown>[];
  /** In the order in which they run; each name ends in its timestamp, as TypeORM asks. */
  readonly migrations: readonly Type<MigrationInterface>[];
}

/** The open database of a process. */
export interface OpenDatabase {
  readonly dataSource: DataSource;
  /** Closes the connections and then the embedded PostgreSQL, if it is one. */
  close(): Promise<void>;
}

/**
 * Opens the database that the environment names, or the embedded one when it names none, and brings its schema up to date.
 *
 * @throws DatabaseUnreachableError when the server at DATABASE_URL does not answer or refuses the connection
 * @throws EmbeddedPostgresError when the embedded one cannot be used
 */
export async function openDatabase(environment: Environment, options: DatabaseOptions): Promise<OpenDatabase> {
  const embedded =
    environment.DATABASE_URL === undefined ? await openEmbedded(environment.DATA_DIR, options) : undefined;
  const url = embedded?.url ?? environment.DATABASE_URL ?? '';
  let opened: DataSource | undefined;
  const close = async (): Promise<void> => {
    if (opened?.isInitialized) await opened.destroy();
    await embedded?.close();
  };
  try {
    await refuseUnreachable(url, CONNECT_TIMEOUT_MS);
    const keepsSettings = await keepsSessionSettings(url, CONNECT_TIMEOUT_MS);
    await runMigrations(url, options.migrations);
    const dataSource = new DataSource(connectionOptions(url, options.entities, keepsSettings, embedded?.createSocket));
    opened = dataSource;
    await dataSource.initialize();
    if (!keepsSettings) runInTransactions(dataSource);
    traceQueries(dataSource, url);
    return { dataSource, close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

/** Loaded only when it is needed, so that an installation without the optional dependency never looks for it. */
async function openEmbedded(
  dataDir: string,
  { as }: DatabaseOptions,
): Promise<{ url: string; createSocket: () => Socket; close(): Promise<void> }> {
  const { openEmbeddedPostgres } = await import('./embedded/embedded-postgres.js');
  const embedded = await openEmbeddedPostgres(dataDir, { as });
  if (as === 'service') reportEmbedded(dataDir);
  return embedded;
}

function reportEmbedded(dataDir: string): void {
  const logger = new Logger('EmbeddedPostgres');
  logger.log({
    event: 'embedded_postgres',
    message: `DATABASE_URL is not set: using the embedded PostgreSQL in ${dataDir}, which is for trying and for development.`,
  });
  if (!isProduction()) return;
  logger.warn({
    event: 'embedded_postgres_in_production',
    message:
      'The embedded PostgreSQL is not for production: its binaries contain OpenSSL 1.1.1 and ICU 60, which get no security fixes. Set DATABASE_URL.',
  });
}

/**
 * @param keepsSettings false behind a pooler of transactions, where each of them brings its own
 * @param createSocket makes the sockets of the connections; by default they lead where the URL says
 */
function connectionOptions(
  databaseUrl: string,
  entities: readonly Type<unknown>[],
  keepsSettings: boolean,
  createSocket: (() => Socket) | undefined,
): DataSourceOptions {
  const { url, options } = keepsSettings ? withSessionOptions(databaseUrl) : { url: databaseUrl, options: undefined };
  return {
    type: 'postgres',
    url,
    entities: [...entities],
    synchronize: false,
    installExtensions: false,
    uuidExtension: 'pgcrypto',
    applicationName: 'channel-transcripts',
    poolSize: CONNECTIONS_MAX,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    logger: new UnusableConnections(),
    // An idle connection that breaks is replaced by the pool; the next query reports an unavailable database.
    poolErrorHandler: () => undefined,
    extra: {
      keepAlive: true,
      query_timeout: RESPONSE_TIMEOUT_MS,
      ...(keepsSettings ? { options } : { pipeline: true }),
      ...(createSocket && { stream: createSocket }),
    },
  };
}
