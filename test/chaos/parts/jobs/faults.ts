import { setTimeout as sleep } from 'node:timers/promises';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { Fault } from '../../../fake-youtube/faults/fault-registry.js';
import { DatabaseClock } from '../../../database/database-clock.js';
import type { Database } from '../../harness/database.js';
import type { RandomSource } from '../../harness/random.js';
import type { Customer, Service } from '../../harness/service.js';
import type { Archive } from './archive.js';
import type { Fleet } from '../../harness/fleet.js';
import { outlookIn } from './snapshot.js';

/** Longer than a slice may be claimed and a reservation lives. */
const LEASE_SECONDS = 120;
/** Longer than a blocked job waits for its next attempt. */
const BLOCKED_SECONDS = 16 * 60;
const OUTAGE_MS_MAX = 1_200;
const REQUESTS = ['player', 'timedtext'] as const;

/** What the faults are injected into. */
export interface Targets {
  fleet: Fleet;
  database: Database;
  databaseUrl: string;
  fakeYoutube: FakeYoutube;
  customers: readonly Customer[];
  /** All jobs so far; grows during the run. */
  archives: Archive[];
  random: RandomSource;
}

/** Faults and changes while jobs run; each ends by itself. */
export class JobFaults {
  /** The faults that were injected, and whether one of them had an effect. */
  private readonly injected = new Map<string, boolean>();
  private readonly clock: DatabaseClock;
  private readonly kinds: readonly (readonly [weight: number, name: string, inject: () => Promise<boolean>])[];

  constructor(private readonly targets: Targets) {
    const { fleet, database, databaseUrl, random } = targets;
    this.clock = new DatabaseClock((statement) => database.query(databaseUrl, statement));
    const outage = (stop: () => Promise<void>): Promise<boolean> =>
      this.duringSlices(async () => {
        await stop();
        await sleep(random.below(OUTAGE_MS_MAX));
        await database.start();
      });
    this.kinds = [
      [24, 'a process killed with kill -9', () => this.duringSlices(() => fleet.replaceOne('SIGKILL'))],
      [2, 'a process stopped with SIGTERM', () => this.duringSlices(() => fleet.replaceOne('SIGTERM'))],
      [2, 'a process suspended beyond its leases', () => this.duringSlices(() => this.suspend())],
      [2, 'leases of live processes expired', () => this.duringSlices(() => this.advance(LEASE_SECONDS))],
      [1, 'PostgreSQL stopped', () => outage(() => database.stop())],
      [1, 'PostgreSQL killed', () => outage(() => database.kill())],
      [3, 'every request blocked', () => this.block()],
      [2, 'a third of the requests failed', () => this.disturb()],
      [4, 'a job canceled', () => this.cancel()],
      [4, 'a job resumed', () => this.resume()],
      [3, 'a limit changed', () => this.changeLimit()],
      [1, 'a plan taken away for a moment', () => this.changePlan()],
    ];
  }

  /** The faults that never had an effect. */
  get ineffective(): string[] {
    return this.kinds.flatMap(([, name]) => (this.injected.get(name) ? [] : [name]));
  }

  /** Injects a random fault; the first ones are each fault once. */
  async inject(): Promise<void> {
    const { random } = this.targets;
    const untried = this.kinds.find(([, name]) => !this.injected.has(name));
    const [, name, inject] = untried ?? random.weighted(this.kinds.map((kind) => [kind[0], kind] as const));
    this.injected.set(name, this.injected.get(name) ?? false);
    if (await inject()) this.injected.set(name, true);
  }

  /** Lets time pass for the quota and the jobs. */
  async advance(seconds: number): Promise<void> {
    await this.clock.move(seconds);
  }

  /** Lets time pass, also for what the processes remember of their egresses. What they are reading runs into its deadline. */
  async pass(seconds: number): Promise<void> {
    await this.advance(seconds);
    await Promise.all(
      this.targets.fleet.running.map((service) => service.skip(seconds * 1_000).catch(() => undefined)),
    );
  }

  /** @returns whether slices ran when the fault began */
  private async duringSlices(fault: () => Promise<void>): Promise<boolean> {
    const { claimed } = await outlookIn(this.targets.database, this.targets.databaseUrl);
    await fault();
    return claimed > 0;
  }

  private async suspend(): Promise<void> {
    const { fleet, random } = this.targets;
    const service: Service = random.pick(fleet.running);
    service.signal('SIGSTOP');
    try {
      await this.advance(LEASE_SECONDS);
      await sleep(500 + random.below(2_000));
    } finally {
      service.signal('SIGCONT');
    }
  }

  private async block(): Promise<boolean> {
    const { random } = this.targets;
    const kind = random.pick(['429', 'captcha', 'bot-check'] as const);
    const hasHit = await this.during({ kind, match: { kind: REQUESTS } });
    await this.pass(BLOCKED_SECONDS);
    return hasHit;
  }

  private disturb(): Promise<boolean> {
    return this.during({ kind: this.targets.random.pick(['500', 'reset', 'cut'] as const), rate: 0.3 });
  }

  /** @returns whether the fault hit a request */
  private async during(fault: Fault): Promise<boolean> {
    const { fakeYoutube, random } = this.targets;
    fakeYoutube.setFaults(fault);
    const ms = 300 + random.below(1_200);
    const hit = fakeYoutube.requests
      .until(({ list }) => list.some((request) => request.fault === fault.kind), ms)
      .then(() => true)
      .catch(() => false);
    await sleep(ms);
    fakeYoutube.setFaults();
    return hit;
  }

  private async cancel(): Promise<boolean> {
    const running = this.targets.archives.filter(({ ended }) => !ended);
    return running.length > 0 && (await this.targets.random.pick(running).change('cancel'));
  }

  private async resume(): Promise<boolean> {
    const stopped = this.targets.archives.filter(({ state }) => state !== 'completed');
    const canceled = stopped.filter(({ ended }) => ended);
    const from = canceled.length > 0 ? canceled : stopped;
    return from.length > 0 && (await this.targets.random.pick(from).change('resume'));
  }

  /** Often below what is used by now, or a few transcripts above it. */
  private async changeLimit(): Promise<boolean> {
    const { fleet, customers, random } = this.targets;
    const { id } = random.pick(customers);
    await fleet.admin('PATCH', `/organizations/${id}`, { monthlyLimit: random.below(1_500) });
    await sleep(random.below(3_000));
    if (random.often(0.5)) await fleet.admin('PATCH', `/organizations/${id}`, { monthlyLimit: 1_000_000 });
    return true;
  }

  private async changePlan(): Promise<boolean> {
    const { fleet, customers, random } = this.targets;
    const { id } = random.pick(customers);
    await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'free' });
    await sleep(random.below(2_000));
    await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'pro' });
    return true;
  }
}
