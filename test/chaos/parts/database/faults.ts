import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
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

const IN_LINE_MS = 300;

const SERVICE = "application_name = 'channel-transcripts'";

/**
 * All faults of a service's database.
 *
 * @param url of the service's own database
 * @param organizationId whose row is locked
 */
export function databaseFaults(database: Database, url: string, organizationId: string): DatabaseFault[] {
  const { adminUrl } = database;
  const name = new URL(url).pathname.slice(1);
  const holder = new RowHolder(url, organizationId);
  const others = new ConnectionHogs(adminUrl);
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
    { name: 'with a locked row', isOutage: false, strike: () => holder.lock(), heal: () => holder.release() },
    {
      name: 'out of connections',
      isOutage: true,
      strike: async () => {
        await others.take();
        await others.drive(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${SERVICE}`);
        await others.take();
      },
      heal: () => others.disconnect(),
    },
    {
      name: 'connections cut',
      isOutage: false,
      strike: async () => void (await terminate()),
      heal: nothing,
    },
  ];
  return faults.map((fault) => ({ lastsMs: LASTS_MS, ...fault }));
}

/** Another session that takes the lock of an organization's row and does not end its transaction. */
class RowHolder {
  private client: pg.Client | undefined;

  constructor(
    private readonly url: string,
    private readonly organizationId: string,
  ) {}

  /** Resolves when it has locked the row or is queued for the lock behind the call. */
  async lock(): Promise<void> {
    const client = new pg.Client({
      application_name: 'chaos',
      connectionString: this.url,
      connectionTimeoutMillis: 2_000,
    });
    client.on('error', () => undefined);
    this.client = client;
    await client.connect();
    await client.query('BEGIN');
    const locked = client.query('SELECT 1 FROM organizations WHERE id = $1 FOR UPDATE', [this.organizationId]);
    await Promise.race([locked.catch(() => undefined), sleep(IN_LINE_MS)]);
  }

  /** Works also while it is queued. */
  release(): Promise<void> {
    this.client?.connection.stream.destroy();
    return Promise.resolve();
  }
}

/** Other clients that take every available connection. */
class ConnectionHogs {
  private clients: pg.Client[] = [];

  constructor(private readonly url: string) {}

  async take(): Promise<void> {
    for (;;) {
      const client = new pg.Client({
        application_name: 'chaos',
        connectionString: this.url,
        connectionTimeoutMillis: 2_000,
      });
      client.on('error', () => undefined);
      try {
        await client.connect();
      } catch {
        return;
      }
      this.clients.push(client);
    }
  }

  async drive(statement: string): Promise<void> {
    await this.clients[0]?.query(statement);
  }

  async disconnect(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.end().catch(() => undefined)));
    this.clients = [];
  }
}
