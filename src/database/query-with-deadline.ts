import type { DataSource, QueryRunner } from 'typeorm';
import { DatabaseSlowError, sqlStateOf } from './database-errors.js';
import { withOrganizationSlot } from './organization-limiter.js';
import { setTimeout as sleep } from 'node:timers/promises';

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

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 20;

/** Serialization failure (40001, also a conflict with recovery on a standby) and deadlock (40P01). */
const CONFLICTS = new Set(['40001', '40P01']);

/**
 * Retries a statement or a transaction that PostgreSQL rolled back because of a conflict with concurrent ones.
 *
 * @param work the whole transaction
 * @param signal ends the retries; the conflict is thrown then
 */
export async function retryConflicts<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === undefined || !CONFLICTS.has(state) || attempt === ATTEMPTS_MAX || signal?.aborted) throw error;
      await sleep(Math.random() * PAUSE_MS * 2 ** attempt);
    }
  }
}
