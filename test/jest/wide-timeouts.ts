import { DATABASE_TIMEOUTS } from '../../src/database/query-with-deadline.js';

const own = { ...DATABASE_TIMEOUTS };

// Before each test file: on a busy machine PostgreSQL takes longer than the service waits for it, which is the subject of few tests.
Object.assign(DATABASE_TIMEOUTS, {
  connectMs: 30_000,
  callMs: 30_000,
  statementMs: 30_000,
  lockMs: 30_000,
  responseMs: 35_000,
});

/** For tests of a database that is slow or unavailable: the times of the service, for databases that are opened afterwards. */
export function useOwnTimeouts(): void {
  Object.assign(DATABASE_TIMEOUTS, own);
}
