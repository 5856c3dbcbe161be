import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../../../fake-youtube/catalogue/random.js';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { Database } from '../../harness/database.js';
import type { Customer, Service } from '../../harness/service.js';
import { brokenIdentities, codeOf, readTranscripts } from '../../harness/transcripts.js';

const CALLERS = 6;
const PAUSE_MS = 120;
const FREEZE_MS = 400;
type Fault = 'cut one' | 'cut all' | 'freeze' | 'restart';
/** On a busy machine a restart alone can take the time of a short storm, which then lasts until calls were served and refused. */
const LONGER_MS_MAX = 30_000;
/** Applied in turn, the one that calls are sure to notice first; timing and target are random. */
const FAULTS: readonly Fault[] = ['restart', 'freeze', ...times<Fault>('cut all', 3), ...times<Fault>('cut one', 12)];
const SERVICE = "FROM pg_stat_activity WHERE application_name = 'channel-transcripts'";

/** The results of calls under repeated faults of the database. */
export interface StormEnd {
  calls: number;
  refused: number;
  faults: number;
  fetched: number;
  /** Transcripts requested from the platform. */
  requested: number;
  /** Transcripts reserved. */
  reserved: number;
  wrong: string[];
}

/**
 * Many concurrent calls while connections are terminated at random points of transactions, and the database
 * is occasionally suspended or restarted.
 *
 * @param videos of each call
 */
export async function storm(
  database: Database,
  fakeYoutube: FakeYoutube,
  service: Service,
  customer: Customer,
  choices: { seed: number; ms: number; videos: number },
): Promise<StormEnd> {
  const { videos, ms } = choices;
  const random = seededRandom(choices.seed);
  const end: StormEnd = { calls: 0, refused: 0, faults: 0, fetched: 0, requested: 0, reserved: 0, wrong: [] };
  const endsAtMs = performance.now() + ms;
  const isOver = (): boolean =>
    performance.now() >= endsAtMs + (end.fetched > 0 && end.refused > 0 ? 0 : LONGER_MS_MAX);
  const before = await reservedEver(database, service);
  fakeYoutube.reset();
  const caller = async (): Promise<void> => {
    while (!isOver()) {
      end.calls += 1;
      const path = `/channels/@bench-${videos}x${5_000 + end.calls}/transcripts`;
      const response = await service.get(path, customer.key, { timeoutMs: 60_000 });
      const reported = readTranscripts(response);
      if (response.status === 200 && reported) {
        end.fetched += reported.summary.fetched;
        end.wrong.push(...brokenIdentities(reported));
        if (reported.summary.fetched !== videos) end.wrong.push(`fetched ${reported.summary.fetched} of ${videos}`);
      } else if (response.status === 503 && codeOf(response) === 'service_unavailable') end.refused += 1;
      else end.wrong.push(`answered ${response.status} ${codeOf(response)}${response.whole ? '' : ', cut short'}`);
    }
  };
  const faults = async (): Promise<void> => {
    while (!isOver()) {
      await sleep(random() * 2 * PAUSE_MS);
      await inject(database, FAULTS[end.faults % FAULTS.length] ?? 'cut one');
      end.faults += 1;
    }
  };
  await Promise.all([faults(), ...Array.from({ length: CALLERS }, caller)]);
  end.requested = fakeYoutube.requests.count({ kind: 'timedtext' });
  end.reserved = (await reservedEver(database, service)) - before;
  return end;
}

function times<T>(item: T, count: number): T[] {
  return Array.from({ length: count }, () => item);
}

async function reservedEver(database: Database, { environment }: Service): Promise<number> {
  const sum = 'SELECT coalesce(sum(required), 0)::integer AS required FROM quota_reservations';
  const [row] = await database.query(environment['DATABASE_URL'] ?? '', sum);
  return Number(row?.['required']);
}

async function inject(database: Database, fault: Fault): Promise<void> {
  switch (fault) {
    case 'cut one':
    case 'cut all': {
      const one = fault === 'cut one' ? "AND state = 'active' ORDER BY random() LIMIT 1" : '';
      await database.query(
        database.adminUrl,
        `SELECT pg_terminate_backend(pid) FROM (SELECT pid ${SERVICE} ${one}) AS ended`,
      );
      return;
    }
    case 'freeze':
      await database.freeze();
      await sleep(FREEZE_MS);
      return database.thaw();
    case 'restart':
      await database.stop();
      return database.start();
  }
}
