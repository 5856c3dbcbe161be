import pg from 'pg';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { Database } from '../../harness/database.js';
import { until } from '../../harness/until.js';

/** A point in the processing of a call. */
export interface Phase {
  name: string;
  /** Whether the call can still be refused. */
  refusable: boolean;
  /** Stops the next call at this point. */
  prepare(): Promise<Stand>;
}

/** A call stopped at a point of its processing. */
interface Stand {
  /** Resolves when the call has reached the point. */
  arrived(): Promise<void>;
  /** Resumes it. */
  release(): Promise<void>;
}

const NOWHERE: Stand = { arrived: () => Promise.resolve(), release: () => Promise.resolve() };

/** The points of a call that need the database, and those in between. */
export function phasesOf(database: Database, url: string, fakeYoutube: FakeYoutube, organizationId: string): Phase[] {
  const locked = (statement: string) => (): Promise<Stand> => lock(database, url, statement);
  const organization = `SELECT 1 FROM organizations WHERE id = '${organizationId}' FOR UPDATE`;
  return [
    { name: 'before', refusable: true, prepare: () => Promise.resolve(NOWHERE) },
    {
      name: 'while it is authenticated',
      refusable: true,
      prepare: locked('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE'),
    },
    { name: 'while reserving', refusable: true, prepare: locked(organization) },
    {
      name: 'while fetching',
      refusable: false,
      prepare: () => {
        const hold = fakeYoutube.hold({ kind: 'timedtext' });
        return Promise.resolve({ arrived: () => hold.arrived, release: () => Promise.resolve(hold.release()) });
      },
    },
    {
      name: 'while settling',
      refusable: false,
      prepare: () => {
        const hold = fakeYoutube.hold({ kind: 'timedtext' });
        let stand: Stand | undefined;
        return Promise.resolve({
          arrived: async () => {
            await hold.arrived;
            stand = await lock(database, url, organization);
            hold.release();
            await stand.arrived();
          },
          release: async () => stand?.release(),
        });
      },
    },
    { name: 'after', refusable: false, prepare: () => Promise.resolve(NOWHERE) },
  ];
}

/** Takes a lock that a statement of the service then waits for. */
async function lock(database: Database, url: string, statement: string): Promise<Stand> {
  const client = new pg.Client({ application_name: 'chaos', connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  await client.connect();
  await client.query('BEGIN');
  await client.query(statement);
  return {
    arrived: () =>
      until('A statement waits for the lock', async () => {
        const waiting = await database.query(
          database.adminUrl,
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'channel-transcripts'",
        );
        return waiting.length > 0;
      }),
    // Errors are ignored: the server may be unavailable or suspended.
    release: () => {
      client.connection.stream.destroy();
      return Promise.resolve();
    },
  };
}
