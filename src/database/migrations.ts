import type { Type } from '@nestjs/common';
import { DataSource, MigrationExecutor, type MigrationInterface } from 'typeorm';

/** An arbitrary number that every process of this application knows. */
const MIGRATIONS_LOCK = 4_771_902_381;

/** A migration may take longer than any statement of a call, and may wait for one that another process runs. */
const WITHOUT_TIMEOUTS = `
  SET LOCAL statement_timeout = 0;
  SET LOCAL lock_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = 0`;

/**
 * Brings the schema up to date, in one transaction. Of several processes that start together one does the work and the
 * others wait for it. The lock is one of the transaction: behind PgBouncer a lock of the session would remain on a server
 * connection that others get. Releases before used the same number for a lock of the session, and so wait as well.
 */
export async function runMigrations(url: string, migrations: readonly Type<MigrationInterface>[]): Promise<void> {
  if (migrations.length === 0) return;
  const dataSource = new DataSource({
    type: 'postgres',
    url,
    migrations: [...migrations],
    installExtensions: false,
    applicationName: 'channel-transcripts migrations',
    poolSize: 1,
    poolErrorHandler: () => undefined,
    extra: { keepAlive: true },
  });
  await dataSource.initialize();
  try {
    // Otherwise what the one before has done would not be seen after the wait for the lock.
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
