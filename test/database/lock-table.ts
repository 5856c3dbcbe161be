import { Client } from 'pg';

/** The statements of this database that wait for a lock; the tests' server has the databases of other tests as well. */
export const WAITING_FOR_LOCKS = `
  SELECT pid FROM pg_locks
    WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Locks a table on a connection of its own, so that every statement on it waits, until the returned function is called. */
export function lockTable(databaseUrl: string, table: string): Promise<() => Promise<void>> {
  return holdLock(databaseUrl, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
}

/** Holds the locks of a statement on a connection of its own until the returned function is called. */
export async function holdLock(databaseUrl: string, statement: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(statement);
  return async () => {
    await client.query('COMMIT');
    await client.end();
  };
}
