import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, type FakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { DatabaseClock } from '../../database/database-clock.js';
import { RandomSource } from '../harness/random.js';
import { Service, type Customer } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { equal, nothing, type Check, type ChaosRun, type Part } from '../chaos-run.js';
import { type Ledger, ledgerOf, verifiedLedger } from '../harness/ledger.js';

const ROUNDS = 50;
const ROUNDS_SHORT = 2;
/** Services that are killed concurrently, each with its own database. */
const WORKERS = 2;
const CALLS = 4;
const VIDEOS = 6;
const REQUIRED = CALLS * VIDEOS;
/** Less than the calls fetch for: 24 videos, four requests at a time that each take 20 ms. */
const FETCHING_MS = 120;
const DEADLINE_SECONDS = 5;
/** The deadline, the 15 seconds that a lease exceeds it, and one more. */
const LEASE_OVER_SECONDS = DEADLINE_SECONDS + 15 + 1;

interface Round {
  responded: number;
  charged: number;
  requestedFor: number;
  reservedAfterKill: number;
  reservedAfterLease: number;
  exact: boolean;
}

/** Repeated kill -9 during calls on one database. */
export const crashes: Part = async (chaosRun) => {
  const wanted = chaosRun.short ? ROUNDS_SHORT : ROUNDS;
  const workers = await Promise.all(
    Array.from({ length: WORKERS }, (_, worker) => new Worker(chaosRun, worker).run(Math.ceil(wanted / WORKERS))),
  );
  const rounds = workers.flatMap((worker) => worker.rounds);
  const cut = rounds.filter(({ reservedAfterKill, requestedFor }) => reservedAfterKill > 0 && requestedFor > 0);
  return [
    equal('processes killed with kill -9', rounds.length, wanted),
    {
      name: 'processes killed after fetching had begun and before settlement',
      observed: String(cut.length),
      passed: chaosRun.short || cut.length > 5,
    },
    nothing('crashes after which a quota guarantee is violated', rounds.flatMap(faultsOf)),
    nothing(
      'databases on which the command `usage --verify` is not exact',
      workers.flatMap(({ book }) => (book.exact && book.reserved === 0 ? [] : [JSON.stringify(book)])),
    ),
    ...workers.flatMap(({ settled }) => settled),
  ];
};

/** The violated guarantees of a round. */
function faultsOf(round: Round): string[] {
  const rules: [boolean, string][] = [
    [round.exact, 'usage --verify is not exact'],
    [round.reservedAfterLease === 0, 'a reservation outlives its lease'],
    [round.charged >= round.responded, 'a complete response was not charged'],
    [round.charged <= round.requestedFor, 'more was charged than was fetched'],
    [round.charged + round.reservedAfterKill <= REQUIRED, 'more is charged or reserved than was requested'],
  ];
  return rules.flatMap(([held, fault]) => (held ? [] : [`${fault}: ${JSON.stringify(round)}`]));
}

class Worker {
  private channels = 0;
  private undisturbedMs = 0;
  private readonly random: RandomSource;

  constructor(
    private readonly chaosRun: ChaosRun,
    private readonly worker: number,
  ) {
    this.random = new RandomSource(chaosRun.seed + worker);
  }

  async run(count: number): Promise<{ rounds: Round[]; book: Ledger; settled: Check[] }> {
    const { database } = this.chaosRun;
    const fakeYoutube = await startFakeYoutube({ latencyMs: 20 });
    const url = await database.create();
    const clock = new DatabaseClock((statement) => database.query(url, statement));
    let service = await this.start(url, fakeYoutube);
    try {
      const customer = await service.customer();
      const startedAtMs = performance.now();
      await this.call(service, customer);
      this.undisturbedMs = performance.now() - startedAtMs;
      const rounds: Round[] = [];
      while (rounds.length < count) {
        const before = await ledgerOf(service, customer.id);
        const requestedBefore = fakeYoutube.requests.count({ kind: 'timedtext' });
        const calls = this.call(service, customer);
        // Every other time while transcripts are fetched, otherwise at any time.
        if (rounds.length % 2 === 0) {
          await fakeYoutube.requests.until((log) => log.count({ kind: 'timedtext' }) > requestedBefore);
          await sleep(this.random.below(FETCHING_MS));
        } else await sleep(this.random.below(Math.ceil(this.undisturbedMs)));
        await service.stop('SIGKILL');
        const responded = await calls;
        const askedFor = fakeYoutube.requests.count({ kind: 'timedtext' }) - requestedBefore;
        service = await this.start(url, fakeYoutube);
        const { reserved: reservedAfterKill } = await ledgerOf(service, customer.id);
        await clock.move(LEASE_OVER_SECONDS);
        const { used, reserved: reservedAfterLease, exact } = await ledgerOf(service, customer.id);
        rounds.push({
          responded,
          charged: used - before.used,
          requestedFor: askedFor,
          reservedAfterKill,
          reservedAfterLease,
          exact,
        });
        if (rounds.length % 10 === 0) this.chaosRun.say(`${rounds.length} crashes of one worker`);
      }
      const settled = await settledState(service, `after the crashes of worker ${this.worker + 1}`);
      return { rounds, book: await verifiedLedger(service, customer.id), settled };
    } finally {
      await service.stop('SIGKILL').catch(() => undefined);
      await fakeYoutube.close();
    }
  }

  private start(url: string, fakeYoutube: FakeYoutube): Promise<Service> {
    return Service.start(this.chaosRun.folder, {
      DATABASE_URL: url,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
      UPSTREAM_CONCURRENCY: '4',
    });
  }

  /** The number of transcripts in the complete responses of several concurrent calls. */
  private async call(service: Service, { key }: Customer): Promise<number> {
    const responses = await Promise.all(
      Array.from({ length: CALLS }, () =>
        service.get(`/channels/@${VIDEOS}-videos-no-${(this.channels += 1)}/transcripts`, key).catch(() => undefined),
      ),
    );
    return responses.reduce((sum, response) => {
      if (!response?.whole || response.status !== 200) return sum;
      return sum + (response.body as { summary: { fetched: number } }).summary.fetched;
    }, 0);
  }
}
