import { setTimeout as sleep } from 'node:timers/promises';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { Fault } from '../../../fake-youtube/faults/fault-registry.js';
import type { Database } from '../../harness/database.js';
import type { RandomSource } from '../../harness/random.js';
import type { Redis } from '../../harness/redis.js';
import type { Customer, Service } from '../../harness/service.js';
import { quotaClock } from '../process/findings.js';
import type { Archive } from './archive.js';
import type { Fleet } from './fleet.js';

/** Longer than a slice may be claimed and a reservation lives. */
const LEASE_SECONDS = 120;
/** Longer than a blocked job waits for its next attempt. */
const BLOCKED_SECONDS = 16 * 60;
const OUTAGE_MS_MAX = 1_200;
const REQUESTS = ['player', 'timedtext'] as const;

/** Everything that the blows strike. */
export interface Targets {
  fleet: Fleet;
  database: Database;
  databaseUrl: string;
  redis: Redis;
  fakeYoutube: FakeYoutube;
  customers: readonly Customer[];
  archives: readonly Archive[];
  random: RandomSource;
}

/** Faults and changes in mid-job; each ends by itself. */
export class Blows {
  readonly counts = new Map<string, number>();
  private clockSeconds = 0;
  private readonly kinds: readonly (readonly [weight: number, name: string, strike: () => Promise<void>])[];

  constructor(private readonly targets: Targets) {
    const { fleet, database, redis, random } = targets;
    const outage = (): Promise<void> => sleep(random.below(OUTAGE_MS_MAX));
    this.kinds = [
      [24, 'a process killed with kill -9', () => fleet.replaceOne('SIGKILL')],
      [2, 'a process stopped with SIGTERM', () => fleet.replaceOne('SIGTERM')],
      [2, 'a process suspended beyond its leases', () => this.suspend()],
      [2, 'leases of live processes expired', () => this.advance(LEASE_SECONDS)],
      [
        1,
        'PostgreSQL stopped',
        () =>
          database
            .stop()
            .then(outage)
            .then(() => database.start()),
      ],
      [
        1,
        'PostgreSQL killed',
        () =>
          database
            .kill()
            .then(outage)
            .then(() => database.start()),
      ],
      [
        1,
        'Redis stopped',
        () =>
          redis
            .stop()
            .then(outage)
            .then(() => redis.start()),
      ],
      [
        1,
        'Redis killed',
        () =>
          redis
            .stop('SIGKILL')
            .then(outage)
            .then(() => redis.start()),
      ],
      [3, 'every request blocked', () => this.block()],
      [2, 'a third of the requests failed', () => this.disturb()],
      [4, 'a job canceled', () => this.cancel()],
      [4, 'a job resumed', () => this.resume()],
      [3, 'a limit changed', () => this.changeLimit()],
      [1, 'a plan taken away for a moment', () => this.changePlan()],
    ];
  }

  /** Whether every kind was struck. */
  get isComplete(): boolean {
    return this.kinds.every(([, name]) => this.counts.has(name));
  }

  /** One blow, chosen by chance; the first ones are of each kind once. */
  async strike(): Promise<void> {
    const { random } = this.targets;
    const untried = this.kinds.find(([, name]) => !this.counts.has(name));
    const [, name, strike] = untried ?? random.weighted(this.kinds.map((kind) => [kind[0], kind] as const));
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    await strike();
  }

  /** Lets time pass for the quota and the jobs. */
  async advance(seconds: number): Promise<void> {
    const { database, databaseUrl } = this.targets;
    this.clockSeconds += seconds;
    await database.query(databaseUrl, quotaClock(this.clockSeconds));
  }

  /** Lets time pass, also for what the processes remember of their egresses. What they are reading runs into its deadline. */
  async pass(seconds: number): Promise<void> {
    await this.advance(seconds);
    await Promise.all(
      this.targets.fleet.running.map((service) => service.skip(seconds * 1_000).catch(() => undefined)),
    );
  }

  private async suspend(): Promise<void> {
    const { fleet, random } = this.targets;
    const service: Service = random.pick(fleet.running);
    service.program.signal('SIGSTOP');
    try {
      await this.advance(LEASE_SECONDS);
      await sleep(500 + random.below(2_000));
    } finally {
      service.program.signal('SIGCONT');
    }
  }

  private async block(): Promise<void> {
    const { random } = this.targets;
    const kind = random.pick(['429', 'captcha', 'bot-check'] as const);
    await this.during({ kind, match: { kind: REQUESTS } });
    await this.pass(BLOCKED_SECONDS);
  }

  private async disturb(): Promise<void> {
    await this.during({ kind: this.targets.random.pick(['500', 'reset', 'cut'] as const), rate: 0.3 });
  }

  private async during(fault: Fault): Promise<void> {
    const { fakeYoutube, random } = this.targets;
    fakeYoutube.setFaults(fault);
    await sleep(300 + random.below(1_200));
    fakeYoutube.setFaults();
  }

  private async cancel(): Promise<void> {
    const running = this.targets.archives.filter(({ ended }) => !ended);
    if (running.length > 0) await this.targets.random.pick(running).change('cancel');
  }

  private async resume(): Promise<void> {
    const stopped = this.targets.archives.filter(({ state }) => state !== 'completed');
    const canceled = stopped.filter(({ ended }) => ended);
    const from = canceled.length > 0 ? canceled : stopped;
    if (from.length > 0) await this.targets.random.pick(from).change('resume');
  }

  /** Often below what is used by now, or a few transcripts above it. */
  private async changeLimit(): Promise<void> {
    const { fleet, customers, random } = this.targets;
    const { id } = random.pick(customers);
    await fleet.admin('PATCH', `/organizations/${id}`, { monthlyLimit: random.below(1_500) });
    await sleep(random.below(3_000));
    if (random.often(0.5)) await fleet.admin('PATCH', `/organizations/${id}`, { monthlyLimit: 1_000_000 });
  }

  private async changePlan(): Promise<void> {
    const { fleet, customers, random } = this.targets;
    const { id } = random.pick(customers);
    await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'free' });
    await sleep(random.below(2_000));
    await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'pro' });
  }
}
