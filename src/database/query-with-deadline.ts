import type { DataSource, QueryRunner } from 'typeorm';
import { DatabaseSlowError } from './database-errors.js';
import { withOrganizationSlot } from './organization-limiter.js';
import { retryConflicts } from './retry-conflicts.js';

/**
 * How long a call that can still be refused waits for the database in total: for its slot, a connection and the result.
 * A server that stalls still accepts connections and statements, so only a deadline refuses the call within two seconds.
 */
const QUERY_DEADLINE_MS = 1_750;

export interface DeadlineQueryOptions<Rows> {
  /** For a statement that takes this organization's lock: it waits for a slot before it acquires a connection. */
  organizationId?: string;
  /**
   * Called when an error was thrown although the statement was sent.
   *
   * @param result the eventual result; rejects when the statement failed or no response arrived
   */
  pending?: (result: Promise<Rows>) => void;
}

/**
 * Runs a statement for a call that can still be refused. Nothing is sent after the deadline.
 *
 * @throws DatabaseSlowError after the deadline, and the driver's errors when the database is unavailable
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
  const result = organizationId === undefined ? work() : withOrganizationSlot(database, organizationId, work, signal);
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
