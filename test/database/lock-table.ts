import { Client } from 'pg';
import { runQuery } from './test-database.js';

/** The statements of this database that wait for a lock; the tests' server has the databases of other tests as well. */
export const WAITING_FOR_LOCKS = `
  SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;

/**
 * Makes every new or changed row of a table wait without a lock timeout, as when the server stalls, until the returned
 * function is called.
 */
export async function stallTable(databaseUrl: string, table: string): Promise<() => Promise<void>> {
  const release = await holdLock(databaseUrl, 'SELECT pg_advisory_xact_lock(1)');
  await runQuery(
    databaseUrl,
    `CREATE OR REPLACE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
     BEGIN
       PERFORM pg_advisory_xact_lock_shared(1);
       RETURN NEW;
     END $$;
     CREATE OR REPLACE TRIGGER stall BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION stall()`,
  );
  return release;
}

/** Holds the locks of a statement on a connection of its own until the returned function ends its transaction. */
export async function holdLock(
  databaseUrl: string,
  statement: string,
): Promise<(end?: 'COMMIT' | 'ROLLBACK') => Promise<void>> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(statement);
  return async (end = 'COMMIT') => {
    await client.query(end);
    await client.end();
  };
}
