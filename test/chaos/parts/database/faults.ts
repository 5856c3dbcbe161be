import type { Database } from '../../harness/database.js';

/** A fault of a database that can be started and ended. */
export interface DatabaseFault {
  name: string;
  /** Whether it fails every call that still needs the database; otherwise a call may succeed. */
  isOutage: boolean;
  /** Minimum duration in milliseconds. */
  lastsMs: number;
  strike(): Promise<void>;
  heal(): Promise<void>;
}

const LASTS_MS = 1_000;
/** Longer than the driver waits for a response. */
const LASTS_LONG_MS = 6_500;

/**
 * All faults of a service's database.
 *
 * @param url of the service's own database
 */
export function databaseFaults(database: Database, url: string): DatabaseFault[] {
  const { adminUrl } = database;
  const name = new URL(url).pathname.slice(1);
  const nothing = (): Promise<void> => Promise.resolve();
  // Not the sessions that hold a lock for a test.
  const terminate = (): Promise<unknown> =>
    database.query(
      adminUrl,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND application_name <> 'chaos'`,
    );
  const freeze = (): Promise<void> => database.freeze();
  const thaw = (): Promise<void> => database.thaw();
  const faults: readonly (Omit<DatabaseFault, 'lastsMs'> & { lastsMs?: number })[] = [
    { name: 'stopped', isOutage: true, strike: () => database.stop(), heal: () => database.start() },
    { name: 'killed', isOutage: true, strike: () => database.kill(), heal: () => database.start() },
    {
      name: 'restarted',
      isOutage: false,
      strike: async () => {
        await database.stop();
        await database.start();
      },
      heal: nothing,
    },
    { name: 'frozen', isOutage: true, strike: freeze, heal: thaw },
    { name: 'frozen for long', isOutage: true, lastsMs: LASTS_LONG_MS, strike: freeze, heal: thaw },
    {
      name: 'connections cut',
      isOutage: false,
      strike: async () => void (await terminate()),
      heal: nothing,
    },
  ];
  return faults.map((fault) => ({ lastsMs: LASTS_MS, ...fault }));
}
