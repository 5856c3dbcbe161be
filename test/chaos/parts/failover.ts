import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { HaProxy } from '../harness/haproxy.js';
import { ledgerOf, type Ledger } from '../harness/ledger.js';
import { canCut } from '../harness/packet-filter.js';
import { PostgresPair } from '../harness/postgres-pair.js';
import { Service, type Customer } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { readTranscripts } from '../harness/transcripts.js';
import { measureInTime, type Measurements } from '../../until.js';
import { describeRepeats, until } from '../harness/until.js';
import { equal, type Check, type Part, type PartReport } from '../chaos-run.js';
import { cacheFailovers, databaseFailovers, type Failover } from './failover/faults.js';
import { failoverTables, isInTime, REPLICA_KILLED, type FailoverEnd } from './failover/figures.js';
import { Load, uncachedPath, VIDEOS } from './failover/load.js';
import { RedisPair } from './failover/redis-pair.js';

const DEADLINE_SECONDS = 5;
/** The deadline, the 15 seconds that a lease exceeds it, and some more. */
const LEASE_OVER_MS = 25_000;
const SHARED_WITHIN_MS = 24_000;
/** Calls before a fault and after it. */
const CALLS = 20;
const ROUNDS = 3;

/** Servers that fail under load, while another one takes over. */
export const failover: Part = async (chaosRun) => {
  const { folder, seed, short, say } = chaosRun;
  const opened: (() => Promise<unknown>)[] = [];
  try {
    const fakeYoutube = await startFakeYoutube({ seed });
    opened.push(() => fakeYoutube.close());
    const postgres = await PostgresPair.start(folder);
    opened.push(() => postgres.stop());
    await postgres.attachStandby();
    const redis = await RedisPair.start(folder);
    opened.push(() => redis.stop());
    const proxy = await HaProxy.start(folder, postgres.ports, redis.ports);
    opened.push(() => proxy.stop());
    const databaseUrl = new URL(await postgres.primary.create());
    databaseUrl.port = String(proxy.postgresPort);
    const start = async (): Promise<Service> => {
      const service = await Service.start(folder, {
        DATABASE_URL: databaseUrl.href,
        REDIS_URL: `redis://127.0.0.1:${proxy.valkeyPort}`,
        YOUTUBE_BASE_URL: fakeYoutube.url,
        REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
      });
      opened.push(() => service.stop('SIGKILL'));
      return service;
    };
    const replicas: [Service, Service] = [await start(), await start()];
    const run = new FailoverRun(replicas, await replicas[0].customer(), start);
    const all = [...databaseFailovers(postgres), ...cacheFailovers(redis)];
    const possible = all.filter(({ cuts }) => !cuts || canCut());
    // Each a few times: what a fault hits is chance.
    const chosen = short
      ? possible.filter((_fault, index) => index % 2 === 0)
      : Array.from({ length: ROUNDS }).flatMap(() => possible);
    for (const one of chosen) {
      await run.failover(one);
      say(one.name);
    }
    // Waits for a lease to expire.
    if (!short) await run.killReplica();
    return await run.report(all.length - possible.length);
  } finally {
    for (const close of opened.reverse()) await close();
  }
};

class FailoverRun {
  private readonly measured: Measurements<FailoverEnd>[] = [];
  /** Charged by the responses so far. */
  private charged = 0;

  constructor(
    private readonly replicas: [Service, Service],
    private readonly customer: Customer,
    private readonly start: () => Promise<Service>,
  ) {}

  async failover(fault: Failover): Promise<void> {
    this.measured.push(await measureInTime(() => this.measure(fault), isInTime));
  }

  private async measure(fault: Failover): Promise<FailoverEnd> {
    const { name, refuses } = fault;
    const load = new Load(this.replicas, this.customer);
    await load.served(CALLS);
    const struckAtMs = performance.now();
    await fault.strike();
    const sharedMs = refuses ? undefined : await this.shared(struckAtMs);
    await load.served(CALLS);
    const end = await load.stop();
    this.charged += end.fetched;
    await fault.repair();
    return {
      ...end,
      name,
      refuses,
      unavailableMs: load.longestGapMs(struckAtMs),
      ...(sharedMs !== undefined && { sharedMs }),
      faults: [...end.wrong, ...(await this.accounts())].map((what) => `${name}: ${what}`),
    };
  }

  /** One replica is killed under load and started again; its reservations expire. */
  async killReplica(): Promise<void> {
    const load = new Load(this.replicas, this.customer);
    await load.served(CALLS);
    const struckAtMs = performance.now();
    await this.replicas[1].stop('SIGKILL');
    this.replicas[1] = await this.start();
    await load.served(CALLS);
    const end = await load.stop();
    const ledger = await this.settled(() => true);
    const faults = [...end.wrong];
    const charged = ledger.used - this.charged;
    // A call that the kill cut off may have been settled before.
    if (charged < end.fetched || charged > end.fetched + end.cutOff * VIDEOS) {
      faults.push(`charged ${charged} for ${end.fetched} and ${end.cutOff} calls that were cut off`);
    }
    if (ledger.reserved > 0) faults.push(`${ledger.reserved} counts stayed reserved`);
    this.charged = ledger.used;
    const unavailableMs = load.longestGapMs(struckAtMs);
    const last = { ...end, name: REPLICA_KILLED, refuses: false, unavailableMs, faults };
    this.measured.push({ all: [last], last });
  }

  async report(withoutCut: number): Promise<PartReport> {
    const verified = await this.replicas[0].verified(this.customer.id);
    const settled: Check[] = [];
    for (const [index, replica] of this.replicas.entries()) {
      settled.push(...(await settledState(replica, `replica ${index + 1}`)));
    }
    const { columns, rows, checks } = failoverTables(this.measured);
    return {
      text:
        'Two replicas of the service under load, with PostgreSQL and its synchronous standby, and Redis and its replica, behind ' +
        '`deploy/haproxy.cfg`. A promotion is ordered at the moment of the failure, so the unavailability, the longest time in ' +
        'which no call got a complete response, is what HAProxy and the service add to the time that an operator or a cluster ' +
        'manager needs. Each value is the worst of all rounds. ' +
        describeRepeats(this.measured, {
          unavailable: ({ refuses, unavailableMs }) => (refuses ? unavailableMs : undefined),
          'shared cache again after': ({ sharedMs }) => sharedMs,
          'slowest call without Redis': ({ sharedMs, slowestMs }) => (sharedMs === undefined ? undefined : slowestMs),
        }) +
        (withoutCut > 0 ? ` ${withoutCut} faults of the network were not tried: they need root and iptables.` : ''),
      columns,
      rows,
      checks: [
        ...checks,
        equal('Final `usage --verify`', verified, { exact: true, used: this.charged, reserved: 0 }),
        ...settled,
      ],
    };
  }

  /** Waits until one replica serves from the cache what the other fetched. @returns the time since then */
  private async shared(sinceMs: number): Promise<number> {
    await until(
      'The replicas share their cache',
      async () => {
        const path = uncachedPath();
        const fetched = [];
        for (const service of this.replicas) {
          const reported = readTranscripts(await service.get(path, this.customer.key));
          fetched.push(reported?.summary.fetched ?? 0);
        }
        this.charged += fetched.reduce((sum, count) => sum + count, 0);
        return fetched[0] === VIDEOS && fetched[1] === 0;
      },
      SHARED_WITHIN_MS,
      100,
    );
    return performance.now() - sinceMs;
  }

  private async accounts(): Promise<string[]> {
    const ledger = await this.settled(({ used }) => used >= this.charged);
    return [
      ...(ledger.used === this.charged ? [] : [`charged ${ledger.used} for ${this.charged}`]),
      ...(ledger.reserved === 0 ? [] : [`${ledger.reserved} counts stayed reserved`]),
      ...(ledger.exact ? [] : ['the usage cannot be recomputed']),
    ];
  }

  /** The ledger once nothing is reserved and a condition is met, or as it is after the longest lease. */
  private async settled(condition: (ledger: Ledger) => boolean): Promise<Ledger> {
    let ledger: Ledger = { exact: false, used: Number.NaN, reserved: Number.NaN };
    await until(
      'All is charged and nothing reserved',
      async () => {
        ledger = await ledgerOf(this.replicas[0], this.customer.id);
        return ledger.reserved === 0 && condition(ledger);
      },
      LEASE_OVER_MS,
      200,
    ).catch(() => undefined);
    return ledger;
  }
}
