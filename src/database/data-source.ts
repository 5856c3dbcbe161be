import { Logger, type Type } from '@nestjs/common';
import pg from 'pg';
import { DataSource, EventSubscriber, type AfterQueryEvent } from 'typeorm';
import type { Environment } from '../config/environment.js';
import { DatabaseUnreachableError, sqlStateOf } from './database-errors.js';
import { DATABASE_TIMEOUTS } from './database-timeouts.js';
import { migrate, SCHEMA } from './migrate.js';

const APPLICATION_NAME = 'channel-transcripts';
const CONNECTIONS_MAX = 10;
/** A new connection needs a look-up of the server's name. After a failover an open one may still lead to the old server. */
const CONNECTION_LIFETIME_SECONDS = 60;
const READ_ONLY = '25006';

/**
 * Overrides the defaults of the role, the database and the server. The quota functions need READ COMMITTED: at a stricter
 * level their snapshot is older than their lock. Without a synchronous commit a settlement that was reported can be lost; a stricter
 * level (`remote_apply`) stays. To compile a statement takes longer than any statement here gains by it.
 */
const settings = (statementMs: number, lockMs: number, idle: string): string => `
  SET statement_timeout = ${statementMs};
  SET lock_timeout = ${lockMs};
  SET idle_in_transaction_session_timeout = '${idle}';
  SET default_transaction_isolation = 'read committed';
  SET jit = off;
  SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')`;

/** A migration may take longer than any other statement. */
const MIGRATION_SETTINGS = settings(0, 0, '0');

export interface DatabaseOptions {
  /** The role of this process on an embedded database: one service at a time, any number of commands. */
  readonly as: 'service' | 'command';
  readonly entities: readonly Type<unknown>[];
  /** The folder with `migrations` and `functions`; default: the schema of the service. */
  readonly schema?: string;
}

/** The open database of a process. */
export interface OpenDatabase {
  readonly dataSource: DataSource;
  /** Closes the connections, then the embedded PostgreSQL, if one was started. */
  close(): Promise<void>;
}

/**
 * Opens the database at DATABASE_URL, or the embedded one when DATABASE_URL is not set, and brings its schema up to date.
 *
 * @throws DatabaseUnreachableError when the server at DATABASE_URL does not respond or refuses the connection
 * @throws EmbeddedPostgresError when the embedded one cannot be used
 * @throws MigrationError when its schema does not fit this program
 */
export async function openDatabase(environment: Environment, options: DatabaseOptions): Promise<OpenDatabase> {
  const embedded =
    environment.DATABASE_URL === undefined ? await openEmbedded(environment.DATA_DIR, options) : undefined;
  const url = embedded?.url ?? environment.DATABASE_URL ?? '';
  const { statementMs, lockMs, responseMs } = DATABASE_TIMEOUTS;
  // A process that stalls within a transaction loses its locks.
  const base = connectionOptions(url, settings(statementMs, lockMs, '15s'));
  const dataSource = new DataSource({
    ...base,
    entities: [...options.entities],
    subscribers: [ReadOnlyConnections],
    poolSize: CONNECTIONS_MAX,
    extra: {
      ...base.extra,
      query_timeout: responseMs,
      // With it, pg closes a connection whose response is overdue; otherwise the next statement waits behind that.
      pipeline: true,
      maxLifetimeSeconds: CONNECTION_LIFETIME_SECONDS,
      idleTimeoutMillis: 0,
    },
  });
  const close = async (): Promise<void> => {
    if (dataSource.isInitialized) await dataSource.destroy();
    await embedded?.close();
  };
  try {
    await migrateDatabase(url, options.schema);
    await dataSource.initialize();
    return { dataSource, close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

/** Closes a connection on which a write was refused: after a failover it leads to the old server. */
@EventSubscriber()
class ReadOnlyConnections {
  async afterQuery({ error, queryRunner }: AfterQueryEvent): Promise<void> {
    if (error === undefined || sqlStateOf(error) !== READ_ONLY) return;
    void ((await queryRunner.connect()) as pg.Client).end();
  }
}

/**
 * Brings the schema up to date, on a connection of its own.
 *
 * @param schema the folder with `migrations` and `functions`
 * @throws DatabaseUnreachableError when the server does not respond or refuses the connection
 * @throws MigrationError when the schema of the database does not fit
 */
export async function migrateDatabase(url: string, schema = SCHEMA): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: APPLICATION_NAME,
    connectionTimeoutMillis: DATABASE_TIMEOUTS.connectMs,
    keepAlive: true,
  });
  // The statement that runs reports that the connection broke.
  client.on('error', () => undefined);
  try {
    await client.connect().catch((error: unknown) => {
      throw new DatabaseUnreachableError(url, error);
    });
    await client.query(MIGRATION_SETTINGS);
    await migrate(client, schema);
  } finally {
    await client.end();
  }
}

/** Imported on demand, so that an installation without the optional dependency works with DATABASE_URL. */
async function openEmbedded(
  dataDir: string,
  { as }: DatabaseOptions,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { EmbeddedPostgres } = await import('./embedded/embedded-postgres.js');
  const embedded = await EmbeddedPostgres.open(dataDir, as);
  if (as === 'service') {
    new Logger('EmbeddedPostgres').warn({
      event: 'embedded_postgres',
      message:
        `DATABASE_URL is not set: using the embedded PostgreSQL in ${dataDir}, which is intended for evaluation and ` +
        'development. Its binaries receive no security fixes.',
    });
  }
  return embedded;
}

/** @param statements that each connection begins with */
function connectionOptions(url: string, statements: string) {
  return {
    type: 'postgres' as const,
    // TypeORM loads it by a computed name, which would be another copy of the package than the one in the bundle.
    driver: pg,
    url,
    synchronize: false,
    installExtensions: false,
    applicationName: APPLICATION_NAME,
    connectTimeoutMS: DATABASE_TIMEOUTS.connectMs,
    // An idle connection that breaks is replaced by the pool; the next query reports an unavailable database.
    poolErrorHandler: () => undefined,
    extra: { keepAlive: true, onConnect: (client: pg.ClientBase) => client.query(statements) },
  };
}
