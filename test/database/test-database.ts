import { randomBytes } from 'node:crypto';
import pg from 'pg';

type Row = Record<string, unknown>;

export interface TestDatabase {
  readonly url: string;
  /** Runs one statement on one of a few connections that stay open: a new one takes 10 ms of processor time. */
  query(statement: string): Promise<Row[]>;
  drop(): Promise<void>;
}

/** The connections of this worker that create and drop databases. */
let server: pg.Pool | undefined;

/**
 * Creates a database on the tests' PostgreSQL, for one test file. `drop` closes open connections.
 *
 * @param content `migrated` saves the time of the migrations, for tests that do not depend on them
 */
export async function createTestDatabase(content: 'empty' | 'migrated' = 'empty'): Promise<TestDatabase> {
  const serverUrl = process.env['TEST_DATABASE_URL'];
  if (serverUrl === undefined) throw new Error('TEST_DATABASE_URL is not set: the global setup of the tests sets it.');
  const admin = (server ??= openPool(serverUrl));
  const name = `test_${randomBytes(8).toString('hex')}`;
  const template = content === 'migrated' ? process.env['TEST_TEMPLATE'] : undefined;
  // To copy the files is the fastest in memory. Without a template the service runs the migrations.
  const copied = template === undefined ? '' : ` TEMPLATE ${template} STRATEGY FILE_COPY`;
  await admin.query(`CREATE DATABASE ${name}${copied}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = openPool(url.href);
  return {
    url: url.href,
    query: async (statement) => (await pool.query<Row>(statement)).rows,
    drop: async () => {
      await pool.end();
      await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** Its idle connections do not keep a process running. No timeout: it would include the wait for a connection of the pool. */
function openPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 4, idleTimeoutMillis: 2_000, allowExitOnIdle: true });
  pool.on('error', () => undefined);
  return pool;
}

/** Runs one statement on a connection of its own and returns the rows. */
export async function runQuery(url: string, statement: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
