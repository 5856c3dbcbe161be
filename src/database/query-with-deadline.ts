import type { DataSource, QueryRunner } from 'typeorm';
import { DatabaseSlowError } from './database-errors.js';
import { inOrganizationTurn } from './organization-turns.js';
import { retryConflicts } from './retry-conflicts.js';

/**
 * How long a caller who can still be refused waits for the database, for its turn, a connection and the answer together,
 * in milliseconds. Whoever waits longer gets a better answer within two seconds: a server that stands still accepts
 * connections and statements all the same.
 */
const QUERY_DEADLINE_MS = 1_750;

export interface DeadlineQueryOptions<Rows> {
  /** For a statement that takes the lock of this organization: it waits for its turn before it takes a connection. */
  organizationId?: string;
  /**
   * Called when the caller got an error although the statement was sent.
   *
   * @param result what the database says in the end; rejects when it says nothing, or that it failed
   */
  pending?: (result: Promise<Rows>) => void;
}

/**
 * Runs a statement that a call which can still be refused waits for. Nothing is sent once the time is over.
 *
 * @throws DatabaseSlowError when it takes too long, and the driver's errors when the database is unavailable
 */
export async function queryWithDeadline<Rows>(
  database: Pick<DataSource, 'createQueryRunner' | 'query'>,
  statement: string,
  values: readonly unknown[],
  { organizationId, pending }: DeadlineQueryOptions<Rows> = {},
): Promise<Rows> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new DatabaseSlowError(QUERY_DEADLINE_MS)), QUERY_DEADLINE_MS);
  const { signal } = deadline;
  let sent = false;
  const query = (): Promise<Rows> =>
    onConnection(database, (runner) => {
      signal.throwIfAborted();
      sent = true;
      return database.query<Rows>(statement, [...values], runner);
    });
  const work = (): Promise<Rows> => retryConflicts(query, signal);
  const result = organizationId === undefined ? work() : inOrganizationTurn(database, organizationId, work, signal);
  try {
    return await Promise.race([result, rejectionOf(signal)]);
  } catch (error) {
    if (sent) pending?.(result);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function onConnection<T>(
  database: Pick<DataSource, 'createQueryRunner' | 'query'>,
  work: (runner: QueryRunner) => Promise<T>,
): Promise<T> {
  const runner = database.createQueryRunner();
  try {
    await runner.connect();
    return await work(runner);
  } finally {
    await runner.release();
  }
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
}
