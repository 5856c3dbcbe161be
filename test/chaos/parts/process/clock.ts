import { startFakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import { RandomSource } from '../../harness/random.js';
import { Service } from '../../harness/service.js';
import { settledState } from '../../harness/settled.js';
import { atOnce } from '../../harness/until.js';
import { atMost, equal, nothing, type ChaosRun } from '../../chaos-run.js';
import { bookOf, quotaClock, type Findings } from './findings.js';

const JUMPS = 120;
const JUMPS_SHORT = 12;
const DEADLINE_SECONDS = 10;
const HOUR = 3_600;
const OFFSETS_SECONDS = [
  0,
  1,
  -1,
  61,
  -61,
  2 * HOUR,
  -2 * HOUR,
  25 * HOUR,
  -25 * HOUR,
  40 * 24 * HOUR,
  -40 * 24 * HOUR,
  400 * 24 * HOUR,
];

/** Jumps of the process's time of day and of the quota's clock in the database, under load. */
export async function clock({ folder, database, short, seed }: ChaosRun): Promise<Findings> {
  const random = new RandomSource(seed + 200);
  const fakeYoutube = await startFakeYoutube();
  const url = await database.create();
  const environment = {
    DATABASE_URL: url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
  };
  const service = await Service.start(folder, environment);
  const limited = await Service.start(folder, { ...environment, RATE_LIMIT_PER_MINUTE: '3' });
  try {
    const customer = await service.customer();
    const other = await service.customer();
    const wrong: string[] = [];
    let [calls, fetched, slowestMs] = [0, 0, 0];
    const jumps = short ? JUMPS_SHORT : JUMPS;
    const request = async (): Promise<void> => {
      const response = await service.get(`/channels/@bench-2x${1 + random.below(60)}/transcripts`, customer.key);
      const { summary } = response.body as { summary?: { total: number; succeeded: number; fetched: number } };
      calls += 1;
      slowestMs = Math.max(slowestMs, response.ms);
      fetched += summary?.fetched ?? 0;
      if (response.status !== 200 || !response.whole || summary?.succeeded !== 2)
        wrong.push(`${response.status} ${response.text.slice(0, 200)}`);
    };
    const refusals: number[] = [];
    for (let call = 0; call < 3; call += 1) await limited.get('/usage', other.key);
    for (let jump = 0; jump < jumps; jump += 1) {
      const asking = atOnce([1, 2, 3, 4, 5, 6], 3, request);
      await service.setClock(random.pick(OFFSETS_SECONDS) * 1000);
      await limited.setClock(random.pick(OFFSETS_SECONDS) * 1000);
      if (jump % 6 === 5) await database.query(url, quotaClock(random.pick([0, 5, -5, HOUR, -HOUR, 33 * 24 * HOUR])));
      const { status, headers } = await limited.get('/usage', other.key);
      if (status === 429) refusals.push(Number(headers['retry-after']));
      await asking;
    }
    const book = bookOf(await service.command('usage', customer.id, '--verify'));
    const retryMax = Math.max(0, ...refusals);
    return {
      rows: [
        [
          'the clock of the process set',
          `${jumps} times, by -40 to 400 days, under ${calls} calls; the quota's own ${Math.floor(jumps / 6)} times`,
        ],
      ],
      checks: [
        equal('calls while the clock jumps', calls, jumps * 6),
        nothing('calls without a complete response', wrong),
        atMost('the slowest call, at most its deadline and a second', slowestMs / 1000, DEADLINE_SECONDS + 1, 's'),
        {
          name: 'the rate limit still applies per minute',
          observed: `${refusals.length} × 429, Retry-After at most ${retryMax} s`,
          passed: refusals.length > 0 && retryMax > 0 && retryMax <= 60,
        },
        equal('transcripts charged over all months, equal to those in the responses', book.used, fetched),
        equal('`usage --verify` is exact, and nothing is reserved', [book.exact, book.reserved], [true, 0]),
        ...(await settledState(service, 'under jumping clocks')),
        equal('the service exits with 0', await service.stop(), { code: 0, signal: null }),
      ],
    };
  } finally {
    await Promise.all([service, limited].map((one) => one.stop('SIGKILL').catch(() => undefined)));
    await fakeYoutube.close();
  }
}
