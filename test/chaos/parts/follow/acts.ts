import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseClock } from '../../../database/database-clock.js';
import { send } from '../../../harness/http-request.js';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { Fault, RequestMatch } from '../../../fake-youtube/faults/fault-registry.js';
import type { Database } from '../../harness/database.js';
import type { Fleet } from '../../harness/fleet.js';
import type { RandomSource } from '../../harness/random.js';
import type { Customer } from '../../harness/service.js';
import { readTranscripts } from '../../harness/transcripts.js';
import { until } from '../../harness/until.js';
import type { Books } from './books.js';
import type { EventLog } from './events.js';
import type { Follower } from './follower.js';
import type { ChannelHistory } from './history.js';

export interface World {
  fleet: Fleet;
  database: Database;
  databaseUrl: string;
  fakeYoutube: FakeYoutube;
  customers: readonly Customer[];
  histories: readonly ChannelHistory[];
  followers: readonly Follower[];
  events: EventLog;
  books: Books;
  random: RandomSource;
}

/** Longer than the time between two checks. */
const BETWEEN_CHECKS_SECONDS = 16 * 60;
/** Longer than the pauses of a blocked egress and of a webhook that has failed. */
const PAUSE_SECONDS = 3_700;
/** Longer than a slice may be claimed and a reservation lives. */
const LEASE_SECONDS = 120;
const MANY_UPLOADS = 250;
const ACTS_PER_KILL = 15;
/** A webhook drops events beyond 1,000 deliveries that wait; two subscriptions of one have the same uploads. */
const DELIVERIES_BEFORE_MANY_MAX = 300;
const REQUESTS_MS = 20_000;
const FAULT_MS_MAX = 800;
const TEXTS = ['player', 'timedtext'] as const;
const NO_LIMIT = 1_000_000;

/** What happens at random, to the channels, the service and its customers; each by itself keeps every guarantee. */
export class Acts {
  readonly done = new Map<string, number>();
  /** The requests of calls whose response was complete, with what it states as fetched. */
  readonly calls = new Map<string, number>();
  readonly wrong: string[] = [];
  private count = 0;
  private readonly clock: DatabaseClock;
  private readonly running = new Set<Promise<void>>();
  private readonly kinds: readonly (readonly [weight: number, name: string, act: () => unknown])[];

  /** @param manyUploads the weight of 250 uploads at once, which take some seconds; 0: once */
  constructor(
    private readonly world: World,
    manyUploads: number,
  ) {
    const { fleet, database, databaseUrl, random, followers, events } = world;
    this.clock = new DatabaseClock((statement) => database.query(databaseUrl, statement));
    const channel = (): ChannelHistory => random.pick(world.histories);
    const follower = (): Follower => random.pick(followers);
    this.kinds = [
      [12, 'one upload', () => channel().publish(1)],
      [6, 'some uploads', () => channel().publish(2 + random.below(5), random.pick(['video', 'short', 'premiere']))],
      [manyUploads, '250 uploads', () => this.publishMany()],
      [14, 'an upload that changes', () => channel().goOn()],
      [3, 'a private upload', () => channel().publish(1, 'private')],
      [3, 'a live stream', () => channel().publish(1, 'live')],
      [3, 'an upload without captions', () => channel().publish(1, 'uncaptioned')],
      [3, 'an upload made private', () => channel().hide()],
      [3, 'a deleted upload', () => channel().remove()],
      [3, 'another order', () => channel().reorder()],
      [2, 'a renamed channel', () => channel().rename()],
      [3, 'a list that ends early', () => this.endLists()],
      [3, 'refused requests', () => this.refuse()],
      [3, 'failing requests', () => this.during({ kind: random.pick(['500', 'reset', 'cut'] as const), rate: 0.3 })],
      [4, 'kill -9', () => fleet.replaceOne('SIGKILL')],
      [2, 'leases that end early', () => this.clock.move(LEASE_SECONDS)],
      [3, 'a receiver that fails', () => void (events.fails = true)],
      [3, 'a receiver that works', () => void (events.fails = false)],
      [3, 'a quota that runs out', () => this.limit(random.below(40))],
      [3, 'a raised quota', () => this.limit(NO_LIMIT)],
      [1, 'a plan taken away for a moment', () => this.changePlan()],
      [12, 'a call', () => this.startCall()],
      [5, 'an archive job', () => this.createJob()],
      [3, 'a pause by the caller', () => follower().change('paused')],
      [4, 'the end of a pause', () => follower().change('active')],
      [8, 'a requested check', () => follower().check()],
      [14, 'the next checks', () => this.clock.move(BETWEEN_CHECKS_SECONDS)],
    ];
  }

  /** The acts that were never done. */
  get missing(): string[] {
    return this.kinds.flatMap(([, name]) => (this.done.has(name) ? [] : [name]));
  }

  /** Sets the clock of the database to the real time. */
  async begin(): Promise<void> {
    await this.clock.reset();
  }

  /** Every second one is one that was not done yet, as long as there are such, and some are a kill. */
  async act(): Promise<void> {
    const { random, fleet } = this.world;
    if (this.count % ACTS_PER_KILL === ACTS_PER_KILL - 1) await fleet.replaceOne('SIGKILL');
    this.count += 1;
    const untried = this.kinds.filter(([, name]) => !this.done.has(name));
    const from = untried.length > 0 && random.often(0.5) ? [random.pick(untried)] : this.kinds;
    const [, name, act] = random.weighted(from.map((kind) => [kind[0], kind] as const));
    await act();
    this.done.set(name, (this.done.get(name) ?? 0) + 1);
  }

  /** Ends every fault and every pause, and lets every upload get its text. */
  async end(): Promise<void> {
    const { fleet, customers, followers, histories, events } = this.world;
    this.world.fakeYoutube.setFaults();
    this.world.fakeYoutube.set({ listEndsAt: null });
    events.fails = false;
    await Promise.all(this.running);
    for (const history of histories) history.settle();
    for (const { id } of customers) {
      await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'pro', monthlyLimit: NO_LIMIT });
    }
    for (const follower of followers) await follower.change('active');
  }

  /** Lets time pass, and asks for checks, which read the channels anew. */
  async checkAll(seconds: number): Promise<void> {
    await this.letPass(seconds);
    for (const follower of this.world.followers) await follower.check();
  }

  /** Lets time pass, also for what the processes remember of their egresses, while no request is in flight. */
  private async letPass(seconds: number): Promise<void> {
    const { fleet, fakeYoutube } = this.world;
    await this.clock.move(seconds);
    await until('No request is in flight', () => fakeYoutube.requests.inFlight === 0, REQUESTS_MS, 1);
    await Promise.all(fleet.running.map((service) => service.skip(seconds * 1_000).catch(() => undefined)));
  }

  private async publishMany(): Promise<void> {
    const { deliveries } = await this.world.books.open();
    if (deliveries > DELIVERIES_BEFORE_MANY_MAX) return;
    this.world.random.pick(this.world.histories).publish(MANY_UPLOADS, 'video');
  }

  private async endLists(): Promise<void> {
    this.world.fakeYoutube.set({ listEndsAt: this.world.random.pick([0, 1, 3, 10, 120]) });
    await this.clock.move(BETWEEN_CHECKS_SECONDS);
    await sleep(this.world.random.below(FAULT_MS_MAX));
    this.world.fakeYoutube.set({ listEndsAt: null });
  }

  private async refuse(): Promise<void> {
    const { random } = this.world;
    const kind = random.pick(['429', 'captcha', 'sorry-503'] as const);
    const match = random.pick<RequestMatch>([{}, { kind: 'browse' }, { kind: 'feed' }, { kind: TEXTS }]);
    await this.clock.move(BETWEEN_CHECKS_SECONDS);
    await this.during({ kind, match });
    await this.letPass(PAUSE_SECONDS);
  }

  private async during(fault: Fault): Promise<void> {
    this.world.fakeYoutube.setFaults(fault);
    await sleep(this.world.random.below(FAULT_MS_MAX));
    this.world.fakeYoutube.setFaults();
  }

  private async limit(monthlyLimit: number): Promise<void> {
    const [first] = this.world.customers;
    await this.world.fleet.admin('PATCH', `/organizations/${first?.id}`, { monthlyLimit });
  }

  private async changePlan(): Promise<void> {
    const { fleet, customers, random } = this.world;
    const { id } = random.pick(customers);
    await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'free' });
    await this.clock.move(BETWEEN_CHECKS_SECONDS);
    await sleep(random.below(FAULT_MS_MAX));
    await fleet.admin('PATCH', `/organizations/${id}`, { plan: 'pro' });
  }

  /** A call, which nothing waits for; a process that is killed ends it. */
  private startCall(): void {
    const { fleet, customers, histories, random } = this.world;
    const requestId = `call-${random.text(12)}`;
    const headers = { Authorization: `Bearer ${random.pick(customers).key}`, 'X-Request-Id': requestId };
    const path = `/channels/${random.pick(histories).id}/transcripts?limit=10`;
    const call = send(random.pick(fleet.running).url, 'GET', path, { headers, timeoutMs: 30_000 })
      .then((response) => {
        const transcripts = response.status === 200 ? readTranscripts(response) : undefined;
        if (transcripts) this.calls.set(requestId, transcripts.summary.fetched);
      })
      .catch(() => undefined)
      .finally(() => this.running.delete(call));
    this.running.add(call);
  }

  private async createJob(): Promise<void> {
    const { fleet, customers, histories, random } = this.world;
    const body = { channel: random.pick(histories).id, limit: 20, onQuota: 'pause' };
    const headers = { 'Idempotency-Key': random.text(20) };
    const { status, text } = await fleet.call(random.pick(customers), 'POST', '/jobs', { body, headers });
    if (status !== 202) this.wrong.push(`POST /jobs answers ${status} ${text}`);
  }
}
