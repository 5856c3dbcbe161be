import type { DataSource } from 'typeorm';
import { DatabaseSlowError } from './database-errors.js';

/**
 * How long a call that can still be refused waits for the database in total: for a connection and the result. A server that
 * stalls still accepts connections and statements, so only a deadline refuses the call within two seconds.
 */
const QUERY_DEADLINE_MS = 1_750;

/**
 * Runs a statement for a call that can still be refused.
 *
 * @throws DatabaseSlowError after the deadline, when the statement may still be executed, and the driver's errors
 */
export function queryWithDeadline<Rows>(
  database: Pick<DataSource, 'query'>,
  statement: string,
  values: readonly unknown[],
): Promise<Rows> {
  return withDeadline(database.query<Rows>(statement, [...values]));
}

/** Waits for a statement as `queryWithDeadline` does. @throws DatabaseSlowError, and what the work throws */
export async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DatabaseSlowError(QUERY_DEADLINE_MS)), QUERY_DEADLINE_MS);
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}
