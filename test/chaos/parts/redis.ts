import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, type FakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { ledgerOf, verifiedLedger } from '../harness/ledger.js';
import { Redis } from '../harness/redis.js';
import { type ServiceResponse, type Customer, Service } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { brokenIdentities, codeOf, readTranscripts } from '../harness/transcripts.js';
import { measureInTime, type Measurements } from '../../until.js';
import { until } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type PartReport } from '../chaos-run.js';
import { redisFaults, type RedisFault } from './redis/faults.js';

const VIDEOS = 3;
const CALL_MS = 2_000;
const BACK_MS = 10_000;
const ROUNDS = 2;

interface FaultEnd {
  fault: string;
  calls: number;
  slowestMs: number;
  backMs: number;
  cachedMeanwhile: number;
  /** Repeated calls to the same process that were charged again. */
  billedTwice: string[];
  wrong: string[];
}

function isInTime({ slowestMs, backMs }: FaultEnd): boolean {
  return slowestMs <= CALL_MS && backMs <= BACK_MS;
}

/** Every fault of the shared cache. */
export const redis: Part = async (chaosRun) => {
  const folder = join(chaosRun.folder, 'redis');
  await mkdir(folder);
  const own = await Redis.start(folder);
  const fakeYoutube = await startFakeYoutube({ seed: chaosRun.seed });
  const services: Service[] = [];
  try {
    const environment = {
      DATABASE_URL: await chaosRun.database.create(),
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REDIS_URL: own.url,
      RATE_LIMIT_PER_MINUTE: '10000',
      CALLS_PER_KEY: '100',
      // Almost no local copies, so that texts are read from Redis.
      CACHE_MAX_MEGABYTES: '1',
    };
    const one = await Service.start(chaosRun.folder, environment);
    services.push(one);
    const other = await Service.start(chaosRun.folder, environment);
    services.push(other);
    return await new FaultKind(own, fakeYoutube, [one, other], await one.customer()).run(chaosRun.short, chaosRun.say);
  } finally {
    own.signal('SIGCONT');
    await Promise.all(services.map((service) => service.stop()));
    await fakeYoutube.close();
    await own.stop();
  }
};

class FaultKind {
  private channels = 0;
  private fetched = 0;
  private calls = 0;

  constructor(
    private readonly redis: Redis,
    private readonly fakeYoutube: FakeYoutube,
    private readonly services: readonly [Service, Service],
    private readonly customer: Customer,
  ) {}

  async run(short: boolean, say: (line: string) => void): Promise<PartReport> {
    const all = redisFaults(this.redis);
    const faults = short
      ? all.filter((_fault, index) => index % 3 === 0)
      : Array.from({ length: ROUNDS }).flatMap(() => all);
    await this.back();
    const measured: Measurements<FaultEnd>[] = [];
    for (const fault of faults) {
      measured.push(await measureInTime(() => this.fault(fault), isInTime));
      say(fault.name);
    }
    return this.report(faults.length, measured);
  }

  /** Calls before, across the start of and during the fault, cold and cached, through both processes. */
  private async fault(fault: RedisFault): Promise<FaultEnd> {
    const known = this.channel();
    await this.counted(this.get(this.services[0], known), []);
    const wrong: string[] = [];
    const hold = this.fakeYoutube.hold({ kind: 'timedtext' });
    const inMidCall = this.services.map((service) => this.get(service, this.channel()));
    const midCallAtMs = performance.now();
    await Promise.all([hold.arrived, this.fakeYoutube.requests.until((log) => log.count({ kind: 'timedtext' }) > 0)]);
    await fault.strike();
    const heldMs = performance.now() - midCallAtMs;
    hold.release();
    const during = this.services.flatMap((service) => [
      this.get(service, known),
      this.get(service, this.channel()),
      this.get(service, known),
    ]);
    const slowest = [
      ...(await Promise.all(inMidCall.map((call) => this.counted(call, wrong)))).map(({ ms }) => ms - heldMs),
      ...(await Promise.all(during.map((call) => this.counted(call, wrong)))).map(({ ms }) => ms),
    ];
    await sleep(fault.lastsMs);
    // After Redis was detected as unavailable no call waits for it.
    const later = this.services.map((service) => this.counted(this.get(service, known), wrong));
    const responses = await Promise.all(later);
    slowest.push(...responses.map(({ ms }) => ms));
    await fault.heal();
    const healedAtMs = performance.now();
    await this.back();
    const backMs = performance.now() - healedAtMs;
    return {
      fault: fault.name,
      calls: inMidCall.length + during.length + later.length,
      slowestMs: Math.max(...slowest),
      backMs,
      cachedMeanwhile: responses.reduce((sum, response) => sum + (readTranscripts(response)?.summary.cached ?? 0), 0),
      billedTwice: responses.flatMap((answer) => {
        const fetched = readTranscripts(answer)?.summary.fetched ?? 0;
        return fault.evicts || fetched === 0 ? [] : [`${fault.name}: ${fetched} of ${VIDEOS}`];
      }),
      wrong: wrong.map((what) => `${fault.name}: ${what}`),
    };
  }

  /** Waits until transcripts fetched by one process are cached for the other. */
  private async back(): Promise<void> {
    const [one, other] = this.services;
    await until(
      'The cache is available again',
      async () => {
        const channel = this.channel();
        await this.counted(this.get(one, channel), []);
        const reported = readTranscripts(await this.counted(this.get(other, channel), []));
        return reported?.summary.cached === VIDEOS;
      },
      BACK_MS * 2,
      100,
    );
  }

  private channel(): string {
    this.channels += 1;
    return `/channels/@bench-${VIDEOS}x${this.channels}/transcripts`;
  }

  private get(service: Service, path: string): Promise<ServiceResponse> {
    this.calls += 1;
    return service.get(path, this.customer.key, { timeoutMs: 60_000 });
  }

  /** Adds up the charges of a call; every call must have a complete response, whatever the cache does. */
  private async counted(call: Promise<ServiceResponse>, wrong: string[]): Promise<ServiceResponse> {
    const answer = await call;
    const reported = readTranscripts(answer);
    if (answer.status !== 200 || !reported) {
      wrong.push(`answered ${answer.status} ${codeOf(answer)}${answer.whole ? '' : ', cut short'}`);
      return answer;
    }
    this.fetched += reported.summary.fetched;
    wrong.push(...brokenIdentities(reported));
    if (reported.summary.succeeded !== VIDEOS) wrong.push(`${reported.summary.succeeded} of ${VIDEOS} succeeded`);
    return answer;
  }

  private async report(count: number, measured: readonly Measurements<FaultEnd>[]): Promise<PartReport> {
    const ends = measured.flatMap(({ all }) => all);
    const timed = measured.map(({ last }) => last);
    const [one, other] = this.services;
    await until('Nothing is reserved', async () => (await ledgerOf(one, this.customer.id)).reserved === 0);
    const verified = await verifiedLedger(one, this.customer.id);
    const logs = (await Promise.all(this.services.map((service) => service.log()))).join('\n');
    const errors = logs.split('\n').filter((line) => line.includes('"level":"error"'));
    return {
      columns: ['Redis', 'calls meanwhile', 'slowest, s', 'cached again after, s', 'entries cached meanwhile'],
      rows: timed.map(({ fault, calls, slowestMs, backMs, cachedMeanwhile }) => [
        ...[fault, calls, (slowestMs / 1000).toFixed(1), (backMs / 1000).toFixed(1), cachedMeanwhile],
      ]),
      checks: [
        equal('Every fault was applied', timed.length, count),
        nothing(
          'Every call has a complete response during every fault',
          ends.flatMap(({ wrong }) => wrong),
        ),
        nothing(
          'A repeat to the same process is free, also while Redis is unavailable or refuses writes',
          ends.flatMap(({ billedTwice }) => billedTwice),
        ),
        atMost(
          'No call takes longer than two seconds',
          Math.max(...timed.map(({ slowestMs }) => slowestMs)) / 1000,
          CALL_MS / 1000,
          's',
        ),
        atMost(
          'A transcript fetched by one process is cached for the other again after at most',
          Math.max(...timed.map(({ backMs }) => backMs)) / 1000,
          BACK_MS / 1000,
          's',
        ),
        equal('Final `usage --verify`', verified, { exact: true, used: this.fetched, reserved: 0 }),
        nothing('No log line at level error', errors),
        ...(await settledState(one, 'one process')),
        ...(await settledState(other, 'the other')),
      ],
    };
  }
}
