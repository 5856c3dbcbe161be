import { randomBytes } from 'node:crypto';
import pg from 'pg';

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/**
 * Creates a database on the tests' PostgreSQL, for one test file. `drop` closes open connections.
 *
 * @param content `migrated` saves the time of the migrations, for tests that do not depend on them
 */
export async function createTestDatabase(content: 'empty' | 'migrated' = 'empty'): Promise<TestDatabase> {
  const server = process.env['TEST_DATABASE_URL'];
  if (server === undefined) throw new Error('TEST_DATABASE_URL is not set: the global setup of the tests sets it.');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const template = content === 'migrated' ? process.env['TEST_TEMPLATE'] : undefined;
  // To copy the files is the fastest in memory. Without a template the service runs the migrations.
  const copied = template === undefined ? '' : ` TEMPLATE ${template} STRATEGY FILE_COPY`;
  await runOnce(server, `CREATE DATABASE ${name}${copied}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => runOnce(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

/** Runs one statement on a connection of its own and returns the rows. */
export async function runQuery(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function runOnce(url: string, statement: string): Promise<void> {
  await runQuery(url, statement);
}
