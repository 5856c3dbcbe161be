import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { DatabaseSlowError, sqlStateOf } from './database-errors.js';

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
export async function queryWithDeadline<Rows>(
  database: Pick<DataSource, 'query'>,
  statement: string,
  values: readonly unknown[],
): Promise<Rows> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DatabaseSlowError(QUERY_DEADLINE_MS)), QUERY_DEADLINE_MS);
  });
  const result = retryConflicts(() => database.query<Rows>(statement, [...values]));
  return Promise.race([result, deadline]).finally(() => clearTimeout(timer));
}

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 20;

/** Serialization failure (40001, also a conflict with recovery on a standby) and deadlock (40P01). */
const CONFLICTS = new Set(['40001', '40P01']);

/**
 * Retries a statement or a transaction that PostgreSQL rolled back because of a conflict with concurrent ones.
 *
 * @param work the whole transaction
 */
export async function retryConflicts<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === undefined || !CONFLICTS.has(state) || attempt === ATTEMPTS_MAX) throw error;
      await sleep(Math.random() * PAUSE_MS * 2 ** attempt);
    }
  }
}
