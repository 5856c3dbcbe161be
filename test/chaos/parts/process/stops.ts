import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import { RandomSource } from '../../harness/random.js';
import { Service, type Customer } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { equal, nothing, type ChaosRun } from '../../chaos-run.js';
import { bookOf, type Findings } from './findings.js';

const ROUNDS = 20;
const ROUNDS_SHORT = 2;
const CALLERS = 8;

interface Requested {
  id: string;
  /** Undefined without a response. */
  status: number | undefined;
  whole: boolean;
  fetched: number;
  /** Whether it was sent before the signal. */
  early: boolean;
}

/** SIGTERM while clients send requests continuously until the port is closed. */
export async function stops({ folder, database, short, seed, say }: ChaosRun): Promise<Findings> {
  const random = new RandomSource(seed + 100);
  const fakeYoutube = await startFakeYoutube({ latencyMs: 10 });
  const url = await database.create();
  const rounds = short ? ROUNDS_SHORT : ROUNDS;
  const requested: Requested[] = [];
  const dropped: string[] = [];
  const ends: string[] = [];
  let customer: Customer | undefined;
  let last: Service | undefined;
  try {
    for (let round = 0; round < rounds; round += 1) {
      const service = await Service.start(folder, {
        DATABASE_URL: url,
        YOUTUBE_BASE_URL: fakeYoutube.url,
        // With and without the delay that lets a load balancer notice.
        SHUTDOWN_DELAY_SECONDS: String(round % 2),
      });
      last = service;
      customer ??= await service.customer();
      const callers = new Callers(service, customer, round);
      const calling = callers.run();
      await until('The load runs', () => callers.requested.length >= CALLERS);
      await sleep(random.below(700));
      callers.signalled = true;
      const end = await service.stop();
      await calling;
      if (end.code !== 0) ends.push(JSON.stringify(end));
      const log = await service.log();
      dropped.push(...callers.dropped(log));
      requested.push(...callers.requested);
      if (round % 5 === 4) say(`${round + 1} stops under load`);
    }
    const book = last && customer ? bookOf(await last.command('usage', customer.id, '--verify')) : undefined;
    const responded = requested.filter(({ whole }) => whole);
    const count = (status: number): number => responded.filter((one) => one.status === status).length;
    return {
      rows: [
        ['SIGTERM under load', `${rounds} times, ${CALLERS} callers each, every other time with a second of delay`],
        [
          'their requests',
          `${requested.length}: ${count(200)} × 200, ${count(503)} × 503, ${requested.length - responded.length} refused by the closed port`,
        ],
      ],
      checks: [
        {
          name: 'stops under load, each with calls in flight',
          observed: `${rounds} stops, ${responded.length} responses`,
          passed: responded.length >= rounds * CALLERS,
        },
        nothing(
          'responses other than 200 and 503',
          responded.filter(({ status }) => status !== 200 && status !== 503).map(({ status }) => String(status)),
        ),
        nothing('accepted calls without a complete response', dropped),
        nothing('processes that did not exit with 0', ends),
        equal(
          'transcripts charged, equal to those in the responses',
          book?.used,
          requested.reduce((sum, { fetched }) => sum + fetched, 0),
        ),
        equal('`usage --verify` is exact, and nothing is reserved', [book?.exact, book?.reserved], [true, 0]),
      ],
    };
  } finally {
    await last?.stop('SIGKILL').catch(() => undefined);
    await fakeYoutube.close();
  }
}

/** Clients that send sequential calls until connections are refused. */
class Callers {
  readonly requested: Requested[] = [];
  signalled = false;
  private count = 0;

  constructor(
    private readonly service: Service,
    private readonly customer: Customer,
    private readonly round: number,
  ) {}

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: CALLERS }, () => this.caller()));
  }

  /** Calls that the service accepted, by its log or because they preceded the closing of its port, without a complete response. */
  dropped(log: string): string[] {
    return this.requested
      .filter(
        ({ whole, early, id }) => !whole && ((early && this.round % 2 === 1) || log.includes(`"requestId":"${id}"`)),
      )
      .map((one) => JSON.stringify(one));
  }

  private async caller(): Promise<void> {
    for (;;) {
      const number = (this.count += 1);
      const id = `stop-${this.round}-${number}`;
      const early = !this.signalled;
      const path =
        number % 3 === 0 ? '/usage' : `/channels/@bench-3x${1 + ((this.round * 97 + number) % 9_000)}/transcripts`;
      const headers = { 'X-Request-Id': id };
      const response = await this.service
        .get(path, this.customer.key, { headers, timeoutMs: 60_000 })
        .catch(() => undefined);
      const { summary } = (response?.body ?? {}) as { summary?: { fetched: number } };
      const { status, whole = false } = response ?? {};
      this.requested.push({
        id,
        status,
        whole,
        early,
        fetched: (whole && summary?.fetched) || 0,
      });
      // The connection was refused; other clients still wait for their responses.
      if (!response) return;
    }
  }
}
