import type { DataSource } from 'typeorm';
import { OrganizationTurns, withTimeout } from '../domain/waiting.js';
import { DatabaseSlowError } from './database-errors.js';

/** How long the service waits for PostgreSQL. Tests that are about something else wait longer (`test/jest/wide-timeouts.ts`). */
export const DATABASE_TIMEOUTS = {
  /** For a connection of the pool, open or new. */
  connectMs: 2_000,
  /**
   * How long a call that can still be refused waits in total: for a connection and the result. A server that stalls still
   * accepts connections and statements, so only a deadline refuses the call within two seconds.
   */
  callMs: 1_750,
  statementMs: 5_000,
  /** Longer than the statement timeout, which leaves the connection usable. Then the connection of a silent server is closed. */
  responseMs: 5_500,
  /** Bounds how long the calls of a locked organization keep connections from others. */
  lockMs: 750,
};

/** Statements that lock one organization, at a time: they wait for its row, each with a connection of the pool. */
const CONNECTIONS_PER_ORGANIZATION = 2;

type Database = Pick<DataSource, 'query'>;

const turns = new WeakMap<Database, OrganizationTurns>();

/** Runs a statement that locks an organization, so that its calls do not take the connections of all others. */
export function inTurn<T>(database: Database, organizationId: string, statement: () => Promise<T>): Promise<T> {
  const ofDatabase = turns.get(database) ?? new OrganizationTurns(CONNECTIONS_PER_ORGANIZATION);
  turns.set(database, ofDatabase);
  return ofDatabase.run(organizationId, statement);
}

/**
 * Runs a statement for a call that can still be refused.
 *
 * @param lockedOrganization which the statement locks, so that it takes its turn; one that has none before the deadline is not sent
 * @throws DatabaseSlowError after the deadline, when the statement may still be executed if it was sent, and the driver's errors
 */
export async function queryWithDeadline<Rows>(
  database: Database,
  statement: string,
  values: readonly unknown[],
  lockedOrganization?: string,
): Promise<Rows> {
  const { callMs } = DATABASE_TIMEOUTS;
  let [sent, late] = [false, false];
  const send = (): Promise<Rows> => {
    if (late) return Promise.reject(new DatabaseSlowError(callMs, sent));
    sent = true;
    return database.query<Rows>(statement, [...values]);
  };
  const rows = lockedOrganization === undefined ? send() : inTurn(database, lockedOrganization, send);
  const inTime = await withTimeout(rows, callMs);
  if (inTime !== undefined) return inTime;
  late = true;
  throw new DatabaseSlowError(callMs, sent);
}
