import type { Type } from '@nestjs/common';
import pg from 'pg';
import { DataSource, type MigrationInterface } from 'typeorm';

/** An arbitrary number that every process of this application knows. */
const MIGRATIONS_LOCK = 4_771_902_381;

/**
 * Brings the schema up to date. Of several processes that start together one does the work and the others wait for it.
 * The connections are its own: a migration may take longer than any query of a call may.
 */
export async function runMigrations(url: string, migrations: readonly Type<MigrationInterface>[]): Promise<void> {
  if (migrations.length === 0) return;
  const lock = new pg.Client({
    connectionString: url,
    application_name: 'channel-transcripts migrations',
    keepAlive: true,
  });
  lock.on('error', () => undefined);
  try {
    await lock.connect();
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATIONS_LOCK]);
    await migrate(url, migrations);
  } finally {
    // The lock goes with its connection.
    await lock.end().catch(() => undefined);
  }
}

async function migrate(url: string, migrations: readonly Type<MigrationInterface>[]): Promise<void> {
  const dataSource = new DataSource({
    type: 'postgres',
    url,
    migrations: [...migrations],
    migrationsTransactionMode: 'each',
    installExtensions: false,
    applicationName: 'channel-transcripts migrations',
    poolSize: 2,
    poolErrorHandler: () => undefined,
  });
  await dataSource.initialize();
  try {
    await dataSource.runMigrations();
  } finally {
    await dataSource.destroy();
  }
}
