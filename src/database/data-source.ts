import { Logger, type Type } from '@nestjs/common';
import pg from 'pg';
import { DataSource, EventSubscriber, type AfterQueryEvent } from 'typeorm';
import { Environment } from '../config/environment.js';
import { DatabaseUnreachableError, sqlStateOf, TransactionPoolerError } from './database-errors.js';
import { DATABASE_TIMEOUTS } from './query-with-deadline.js';
import { lockMigrations, migrate, SCHEMA } from './migrate.js';

const APPLICATION_NAME = 'channel-transcripts';
/** Its statements take as long as they need. */
const MIGRATION_NAME = `${APPLICATION_NAME} migration`;
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

/**
 * Refuses a new connection while too many statements of the service run although nobody waits for them any more. PostgreSQL cancels no
 * commit that waits for its synchronous standby, and the pool replaces a connection whose response is overdue, so that without this
 * bound the number of backends would grow without end.
 */
const refuseBeyond = (overdueMax: number): string => `
  DO $$ BEGIN
    IF (${overdueStatements()}) >= ${overdueMax} THEN
      RAISE too_many_connections USING MESSAGE = 'statements of this service that are overdue still run';
    END IF;
  END $$`;

/** The query that counts them, in all processes: they run for longer than the statement timeout lets others. */
export const overdueStatements = (): string => `
  SELECT count(*)::integer AS overdue FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = '${APPLICATION_NAME}' AND state = 'active'
      AND query_start < clock_timestamp() - interval '${(DATABASE_TIMEOUTS.statementMs + DATABASE_TIMEOUTS.responseMs) / 2} ms'`;

/** A migration may take longer than any other statement. */
const MIGRATION_SETTINGS = settings(0, 0, '0');
/** Of a transaction alone, so that nothing of it stays on a connection of a pooler. */
const LOCK_SETTINGS = 'SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0';

export interface DatabaseOptions {
  /** The role of this process on an embedded database: one service at a time, any number of commands. */
  readonly as: 'service' | 'command';
  readonly entities: readonly Type<unknown>[];
  /** The folder with `migrations` and `functions`; default: the schema of the service. */
  readonly schema?: string;
}

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
    await migrateDatabase(url, options.schema, environment.MIGRATION_WAIT_SECONDS);
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
 * Brings the schema up to date, on a connection of its own. A second one has the lock of the migrations in a transaction: the lock
 * of a session would stay on a connection of a pooler, and some migrations run outside of a transaction.
 *
 * @param schema the folder with `migrations` and `functions`
 * @param waitSeconds for another process that migrates
 * @throws DatabaseUnreachableError when the server does not respond or refuses the connection
 * @throws TransactionPoolerError when the two connections do not have a backend each
 * @throws MigrationError when the schema of the database does not fit, or another process migrates it for too long
 */
export async function migrateDatabase(
  url: string,
  schema = SCHEMA,
  waitSeconds = new Environment().MIGRATION_WAIT_SECONDS,
): Promise<void> {
  const [client, holder] = [migrationClient(url), migrationClient(url)];
  // The statement that runs reports that its connection broke. Without the lock no further one may run.
  client.on('error', () => undefined);
  holder.on('error', () => void client.end());
  try {
    await Promise.all([client.connect(), holder.connect()]).catch((error: unknown) => {
      throw new DatabaseUnreachableError(url, error);
    });
    const backend = await backendOf(client);
    await holder.query(`BEGIN ISOLATION LEVEL READ COMMITTED; ${LOCK_SETTINGS}`);
    if ((await backendOf(holder)) === backend || (await backendOf(client)) !== backend)
      throw new TransactionPoolerError(url);
    await lockMigrations(holder, waitSeconds);
    await client.query(MIGRATION_SETTINGS);
    await migrate(client, schema);
  } finally {
    await Promise.all([client.end(), holder.end()]);
  }
}

function migrationClient(connectionString: string): pg.Client {
  const connectionTimeoutMillis = DATABASE_TIMEOUTS.connectMs;
  return new pg.Client({
    connectionString,
    application_name: MIGRATION_NAME,
    connectionTimeoutMillis,
    keepAlive: true,
  });
}

async function backendOf(client: pg.Client): Promise<unknown> {
  return (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
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
    extra: {
      keepAlive: true,
      onConnect: (client: pg.ClientBase) => client.query(`${statements}; ${refuseBeyond(CONNECTIONS_MAX)}`),
    },
  };
}
