import type { Type } from '@nestjs/common';
import pg from 'pg';
import { DataSource, MigrationExecutor, type MigrationInterface } from 'typeorm';
import { unreachableError } from './database-errors.js';

/** An arbitrary key, the same in every process of this application. */
const MIGRATIONS_LOCK = 4_771_902_381;

const CONNECT_TIMEOUT_MS = 2_000;

/** A migration may take longer than any other statement, and may wait for another process to finish it. */
const WITHOUT_TIMEOUTS = `
  SET LOCAL statement_timeout = 0;
  SET LOCAL lock_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = 0`;

/**
 * Runs pending migrations in one transaction, on a connection of their own. When several processes start together, one runs
 * them and the others wait.
 *
 * @throws DatabaseUnreachableError when the server does not respond or refuses the connection
 */
export async function runMigrations(url: string, migrations: readonly Type<MigrationInterface>[]): Promise<void> {
  const dataSource = new DataSource({
    type: 'postgres',
    // As in data-source.ts: the copy of the package in the bundle.
    driver: pg,
    url,
    migrations: [...migrations],
    installExtensions: false,
    applicationName: 'channel-transcripts migrations',
    poolSize: 1,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    poolErrorHandler: () => undefined,
    extra: { keepAlive: true },
  });
  try {
    await dataSource.initialize();
  } catch (error) {
    throw unreachableError(url, error);
  }
  try {
    // At a stricter level the snapshot would be older than the lock and miss the work of the previous process.
    await dataSource.transaction('READ COMMITTED', async ({ queryRunner }) => {
      if (!queryRunner) throw new Error('A transaction has a query runner.');
      await queryRunner.query(WITHOUT_TIMEOUTS);
      await queryRunner.query('SELECT pg_advisory_xact_lock($1)', [MIGRATIONS_LOCK]);
      const executor = new MigrationExecutor(dataSource, queryRunner);
      executor.transaction = 'all';
      await executor.executePendingMigrations();
    });
  } finally {
    await dataSource.destroy();
  }
}
