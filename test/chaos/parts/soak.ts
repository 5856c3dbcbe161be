import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FAULT_KINDS } from '../../fake-youtube/faults/fault-registry.js';
import { startFakeYoutube, type FakeYoutube } from '../../fake-youtube/fake-youtube.js';
import type { Database } from '../harness/database.js';
import { ledgerOf } from '../harness/ledger.js';
import { Redis } from '../harness/redis.js';
import { type Customer, Service } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { until } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type PartReport } from '../chaos-run.js';
import { HABITS, Load } from './soak/load.js';
import { latencyFlat, processFlat, type Sample } from './soak/flatness.js';
import { isExpected } from './soak/log-lines.js';
import { medianOf } from './soak/slope.js';

const LOAD_MS = 300_000;
const LOAD_SHORT_MS = 8_000;
const SAMPLE_MS = 3_000;
const SAMPLE_SHORT_MS = 500;
const CALLERS = 6;
const DEADLINE_SECONDS = 6;
/** How much longer than its deadline a call may take. */
const LATE_SECONDS = 1;
/** All loads start at once, and other work on the machine delays them; part `upstream` checks the exact bound. */
const LATE_SECONDS_SHORT = 20;
const FAULT_RATE = 0.2;
/** The share of failing requests may deviate by five points, or by this many standard deviations of few requests. */
const DEVIATIONS_MAX = 5;
const POOLED =
  "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'channel-transcripts'";

/** All loads and faults together for minutes: two processes with one database and one Redis, and a platform that fails every fifth request. */
export const soak: Part = async (chaosRun) => {
  const folder = join(chaosRun.folder, 'soak');
  await mkdir(folder);
  const redis = await Redis.start(folder);
  const fakeYoutube = await startFakeYoutube({ seed: chaosRun.seed });
  const services: Service[] = [];
  try {
    const environment = {
      DATABASE_URL: await chaosRun.database.create(),
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REDIS_URL: redis.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
      UPSTREAM_TIMEOUT_SECONDS: '1',
      TRANSCRIPT_TTL_SECONDS: '20',
      UNAVAILABLE_TTL_SECONDS: '10',
      CHANNEL_TTL_SECONDS: '15',
      UPLOADS_TTL_SECONDS: '5',
      CACHE_MAX_MEGABYTES: '8',
    };
    for (let index = 0; index < 2; index += 1) services.push(await Service.start(chaosRun.folder, environment));
    const [one] = services;
    if (!one) throw new Error('A service was started.');
    return await new Soak(chaosRun.database, fakeYoutube, services, one, await one.customer()).run(
      chaosRun.short,
      chaosRun.seed,
      chaosRun.say,
    );
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    await fakeYoutube.close();
    await redis.stop();
  }
};

class Soak {
  private readonly samples: Sample[] = [];
  private requested = 0;
  private struck = 0;

  constructor(
    private readonly database: Database,
    private readonly fakeYoutube: FakeYoutube,
    private readonly services: readonly Service[],
    private readonly one: Service,
    private readonly customer: Customer,
  ) {}

  async run(short: boolean, seed: number, say: (line: string) => void): Promise<PartReport> {
    const loadMs = short ? LOAD_SHORT_MS : LOAD_MS;
    const startedAtMs = performance.now();
    const load = new Load(
      this.services,
      this.customer,
      DEADLINE_SECONDS + (short ? LATE_SECONDS_SHORT : LATE_SECONDS),
      seed,
    );
    // The first match decides, so each rate refers to the requests that the faults before it did not hit.
    const share = FAULT_RATE / FAULT_KINDS.length;
    this.fakeYoutube.setFaults(
      ...FAULT_KINDS.map((kind, index) => ({
        kind,
        rate: share / (1 - index * share),
        location: 'http://127.0.0.1:9/',
      })),
    );
    const running = load.run(CALLERS, startedAtMs + loadMs);
    const sampling = new AbortController();
    const sampled = this.sample(short ? SAMPLE_SHORT_MS : SAMPLE_MS, startedAtMs, sampling.signal, say);
    await running.finally(() => sampling.abort());
    await sampled;
    this.fakeYoutube.setFaults();
    this.note();
    return this.report(load, startedAtMs, loadMs);
  }

  private async sample(
    everyMs: number,
    startedAtMs: number,
    signal: AbortSignal,
    say: (line: string) => void,
  ): Promise<void> {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
      for (const [index, service] of this.services.entries()) {
        const { held, rss, heapUsed, external } = await service.resources();
        this.samples.push({
          at: (performance.now() - startedAtMs) / 1000,
          process: index,
          heapMegabytes: (heapUsed + external) / 1e6,
          rssMegabytes: rss / 1e6,
          sockets: held['TCPSocketWrap'] ?? 0,
        });
      }
      this.note();
      if (this.samples.length % 40 === 0) say(`${this.samples.at(-1)?.at.toFixed(0)} s of load`);
    }
  }

  /** The log of the fake YouTube is bounded, so requests are counted continuously. */
  private note(): void {
    const { list } = this.fakeYoutube.requests;
    this.requested += list.length;
    this.struck += list.filter(({ fault }) => fault !== null).length;
    this.fakeYoutube.requests.clear();
  }

  private async report(load: Load, startedAtMs: number, loadMs: number): Promise<PartReport> {
    await until(
      'Nothing is reserved',
      async () => (await ledgerOf(this.one, this.customer.id)).reserved === 0,
      40_000,
      200,
    );
    const verified = await this.one.verified(this.customer.id);
    const known = load.ends.reduce((sum, { fetched }) => sum + (fetched ?? 0), 0);
    const remaining = load.ends.filter(({ fetched }) => fetched === undefined).length;
    const metrics = await Promise.all(this.services.map((service) => service.metrics()));
    const metric = (name: string): number => metrics.reduce((sum, each) => sum + (each.get(name) ?? Number.NaN), 0);
    const seconds = loadMs / 1000;
    const long = loadMs >= LOAD_MS;
    const latencies = load.ends
      .filter(({ habit }) => habit === 'warm')
      .map(({ at: atMs, ms }) => ({ at: (atMs - startedAtMs) / 1000, value: ms }));
    const idle = await this.socketsWhenIdle();
    const habits = [...new Set(load.ends.map(({ habit }) => habit))].sort();
    return {
      text:
        `${CALLERS} clients of two processes with one database and one Redis, for ${Math.round(seconds)} seconds: ` +
        `${load.ends.length} calls, ` +
        `${this.requested} requests to the platform, ${this.struck} of them hit by one of ${FAULT_KINDS.length} faults. ` +
        `${remaining} clients disconnected early. Memory is measured after a garbage collection.`,
      columns: ['client', 'calls', 'status 200', 'median, ms', '95th of 100, ms'],
      rows: habits.map((habit) => {
        const ends = load.ends.filter((end) => end.habit === habit);
        const sorted = ends.map(({ ms }) => ms).sort((one, other) => one - other);
        return [
          habit,
          ends.length,
          ends.filter(({ status }) => status === 200).length,
          Math.round(medianOf(sorted)),
          Math.round(sorted[Math.floor(sorted.length * 0.95)] ?? 0),
        ];
      }),
      checks: [
        equal('Calls of every kind were made', habits.length, new Set(HABITS).size),
        atMost(
          'Deviation from the intended share of failing requests',
          Math.abs(100 * FAULT_RATE - (100 * this.struck) / this.requested),
          Math.max(5, 100 * DEVIATIONS_MAX * Math.sqrt((FAULT_RATE * (1 - FAULT_RATE)) / this.requested)),
          'points of 20',
        ),
        nothing(
          'Every call ends in time, complete or with an error code of the platform, and its sums are correct',
          load.ends.flatMap(({ wrong }) => wrong),
        ),
        ...this.services.flatMap((_service, process) => {
          const samples = this.samples.filter((sample) => sample.process === process);
          return processFlat(`Process ${process + 1}`, samples, seconds, long);
        }),
        latencyFlat(latencies, seconds, long),
        equal('Connections that remain in the idle service', idle, 0),
        equal(
          'Final `usage --verify`',
          { exact: verified.exact, reserved: verified.reserved },
          { exact: true, reserved: 0 },
        ),
        equal(
          'Charged transcripts equal the settlements of both processes',
          verified.used,
          metric('ct_quota_charged_transcripts_total'),
        ),
        equal('Transcripts fetched for clients that stayed connected are charged', verified.used >= known, true),
        equal('No settlement was given up', metric('ct_quota_settlements_total{outcome="given_up"}'), 0),
        ...(await Promise.all(this.services.map((one, index) => settledState(one, `process ${index + 1}`)))).flat(),
        nothing('No log line at level error, except 502 and 504 of the platform', await this.errors()),
      ],
    };
  }

  /** Of both processes, without their database pools and their Redis connections. */
  private async socketsWhenIdle(): Promise<number> {
    const url = this.one.environment['DATABASE_URL'] ?? '';
    let sockets = 0;
    await until(
      'No socket remains open',
      async () => {
        const held = await Promise.all(this.services.map((service) => service.resources()));
        const [row] = await this.database.query(url, POOLED);
        sockets = held.reduce((sum, one) => sum + (one.held['TCPSocketWrap'] ?? 0) - 1, 0) - Number(row?.['count']);
        return sockets === 0;
      },
      30_000,
      500,
    ).catch(() => undefined);
    return sockets;
  }

  private async errors(): Promise<string[]> {
    const logs = await Promise.all(this.services.map((service) => service.log()));
    return logs
      .flatMap((log) => log.split('\n'))
      .filter((line) => line !== '' && !isExpected(line))
      .map((line) => line.slice(0, 300));
  }
}
