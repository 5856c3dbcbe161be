import { randomBytes } from 'node:crypto';
import type { Registry } from 'prom-client';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { Environment } from '../../../config/environment.js';
import type { EgressState, EgressStates } from '../../egress-states.js';
import type { Requester } from '../../video-platform.js';
import { report } from '../event-log.js';
import { type AttemptEnd, EGRESS_USES, type UseName } from './attempt.js';
import { type Egress, EgressUse } from './egress.js';
import { countAttempts, exportEgressStates } from './egress-metrics.js';
import type { Experiment } from './experiment.js';
import { type BudgetKind, Line } from './line.js';
import { OptionalBackoff } from './optional-backoff.js';
import type { RequestQueue } from './request-queue.js';
import { SendingRate } from './sending-rate.js';

/** How long an egress that was not reached comes last, until a control is asked through it again. */
const REST_MS = 60_000;

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;
/** How many sessions of a gateway: with 60 % of bad addresses, five would fail 8 % of the videos, and eight 2 %. */
export const ATTEMPTS_MAX = 8;
/** This many refused sessions in a row mean that nearly all addresses of a gateway are refused. */
const SESSIONS_REFUSED_MAX = 100;

/** The placeholder in the URL of a rotating gateway, which gives each session an address of its own. */
const SESSION = '{session}';
/** The requests of one attempt are sent one after the other, and its exact date beside them. */
const CONNECTIONS_PER_SESSION = 2;

/** Asks for controls, at the end of a pause and to find out whether an egress is reached. */
export type Probes = Pick<Experiment, 'probe' | 'endPause'>;

export interface TakenEgress {
  readonly egress: Egress;
  /** Whether another egress, or another session of this one, can be tried. */
  readonly hasAlternative: boolean;
  /** Closes the session of a gateway. */
  readonly release: () => void;
}

/** An egress as configured: one that is used as it is, or a gateway, which opens a session for each attempt. */
class PoolMember {
  readonly uses: Egress['uses'];
  readonly isGateway: boolean;
  /** It was not reached: it comes last until then, and after that until a control is served. Null when it does not rest. */
  restsUntilMs: number | null = null;
  /** Sessions of a gateway that were refused in a row. */
  refusedSessions = 0;
  private readonly probing = new Set<UseName | 'rest'>();
  /** Undefined for a gateway. */
  private readonly direct: Egress | undefined;
  private readonly sessions = new Set<Dispatcher>();

  constructor(
    readonly name: string,
    private readonly proxyUrl: string | null,
    private readonly environment: Environment,
    queue: RequestQueue,
    private readonly probes: Probes,
    private readonly now: () => number,
  ) {
    const { UPSTREAM_PLAYER_PER_MINUTE, UPSTREAM_TIMEDTEXT_PER_MINUTE, UPSTREAM_CONCURRENCY } = environment;
    const isGateway = (this.isGateway = proxyUrl?.includes(SESSION) === true);
    const slots = { max: UPSTREAM_CONCURRENCY, running: 0 };
    const shared = { now, startsSlowly: !isGateway, onChange: () => queue.startNext() };
    const line = (use: UseName, rates: Line['rates'], videos?: Line) => {
      const onPause = (kind: BudgetKind, pauseMs: number | null) => this.reportPause(use, kind, pauseMs);
      return queue.open(new Line(slots, rates, { ...shared, onPause }, videos));
    };
    const ofVideos: readonly (readonly [BudgetKind, SendingRate])[] = [
      ['player', new SendingRate({ ceilingPerMinute: UPSTREAM_PLAYER_PER_MINUTE }, now)],
      ['captions', new SendingRate({ ceilingPerMinute: UPSTREAM_TIMEDTEXT_PER_MINUTE }, now)],
    ];
    const videos = line('video', new Map(ofVideos));
    const channels = line('channel', new Map([['list', new SendingRate({ background: 'apart' }, now)]]), videos);
    this.uses = { channel: new EgressUse(channels, !isGateway), video: new EgressUse(videos, !isGateway) };
    if (!isGateway) {
      const dispatcher = openDispatcher(proxyUrl, environment);
      const { uses } = this;
      this.direct = { name, dispatcher, uses, optional: new OptionalBackoff(), keepOpen: () => undefined };
    }
  }

  /** Opens a session of a gateway, with connections of its own so that it gets an address of its own. */
  open(hasAlternative = false): TakenEgress {
    if (this.direct) return { egress: this.direct, hasAlternative, release: () => undefined };
    const { name, uses } = this;
    const url = this.proxyUrl?.replaceAll(SESSION, randomBytes(8).toString('hex')) ?? null;
    const dispatcher = openDispatcher(url, this.environment, CONNECTIONS_PER_SESSION);
    this.sessions.add(dispatcher);
    const works: Promise<unknown>[] = [];
    const release = () => {
      void Promise.allSettled(works).then(() => {
        this.sessions.delete(dispatcher);
        return dispatcher.destroy();
      });
    };
    const ownUses = { channel: new EgressUse(uses.channel.line, false), video: new EgressUse(uses.video.line, false) };
    const keepOpen = (work: Promise<unknown>) => void works.push(work);
    const egress = { name, dispatcher, uses: ownUses, optional: new OptionalBackoff(), gateway: this, keepOpen };
    return { egress, hasAlternative: true, release };
  }

  /** Ends a pause that is over, or prolongs it, by a control. */
  async endPause(use: UseName): Promise<void> {
    if (this.uses[use].line.isDue) await this.once(use, (egress) => this.probes.endPause(egress, use));
  }

  /** Finds out whether an egress through which a response did not arrive can be reached, and lets it rest otherwise. */
  async check(): Promise<void> {
    if (this.restsUntilMs !== null && this.restsUntilMs > this.now()) return;
    await this.once('rest', async (egress) => {
      const rested = this.restsUntilMs !== null;
      // It comes last from now on.
      this.restsUntilMs = this.now() + REST_MS;
      const end = await this.probes.probe(egress, null);
      if (end === 'unreached') report('warn', 'youtube_exit_rested', { exit: this.name, restSeconds: REST_MS / 1000 });
      else this.restsUntilMs = null;
      if (rested && end !== 'unreached') report('log', 'youtube_exit_back', { exit: this.name });
    });
  }

  async close(): Promise<void> {
    const dispatchers = [...(this.direct ? [this.direct.dispatcher] : []), ...this.sessions];
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()));
  }

  /** Runs at most one of a kind at a time, through this egress. */
  private async once(what: UseName | 'rest', work: (egress: Egress) => Promise<void>): Promise<void> {
    if (this.probing.has(what)) return;
    this.probing.add(what);
    const { egress, release } = this.open();
    await work(egress).finally(() => {
      release();
      this.probing.delete(what);
    });
  }

  private reportPause(use: UseName, kind: BudgetKind, pauseMs: number | null): void {
    const { name: exit } = this;
    if (pauseMs !== null)
      return report('warn', 'youtube_block_opened', { exit, use, kind, openForSeconds: pauseMs / 1000 });
    report('log', 'youtube_block_closed', { exit, use, kind });
    if (use === 'channel') return;
    const { rates } = this.uses.video.line;
    const [playerPerMinute, captionsPerMinute] = [...rates.values()].map((rate) => rate.perMinute);
    report('log', 'youtube_pace_learned', { exit, playerPerMinute, captionsPerMinute });
  }
}

/** The egresses, in rotation: those that are refused or not reached are skipped while others are available. */
export class EgressPool implements EgressStates {
  private readonly members: readonly PoolMember[];
  private readonly ends: ReturnType<typeof countAttempts>;
  private turn = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(
    environment: Environment,
    registry: Registry,
    private readonly queue: RequestQueue,
    probes: Probes,
    now = () => performance.now(),
  ) {
    const proxies = environment.UPSTREAM_PROXY_URL ?? [null];
    this.members = proxies.map((proxyUrl, index) => {
      const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
      return new PoolMember(name, proxyUrl, environment, queue, probes, now);
    });
    exportEgressStates(registry, () => this.states());
    this.ends = countAttempts(
      registry,
      this.members.map(({ name }) => name),
    );
  }

  get attemptsMax(): number {
    return this.members.some(({ isGateway }) => isGateway) ? ATTEMPTS_MAX : EGRESSES_PER_TASK_MAX;
  }

  /**
   * The next egress: of those that are not refused the one that can serve first. Null when all are refused. A control of what
   * may serve again is asked meanwhile; only when there is nothing else, the attempt waits for it.
   *
   * @param tried the names of earlier attempts at the same subject: each proxy is tried once, a gateway repeatedly
   */
  take(use: UseName, tried: readonly string[], requester: Requester): TakenEgress | null {
    for (const member of this.members) {
      void member.endPause(use);
      if (member.restsUntilMs !== null) void member.check();
    }
    const inTurn = [...this.members.slice(this.turn), ...this.members.slice(0, this.turn)];
    const lineOf = ({ uses }: PoolMember) => uses[use].line;
    const free = inTurn.filter(
      (member) => (member.isGateway || !tried.includes(member.name)) && lineOf(member).pauseRemainingMs === 0,
    );
    const ready = free.filter((member) => !lineOf(member).paused && member.restsUntilMs === null);
    // An egress that rests is better than none, but not for a second attempt at the same subject.
    const last = free.filter(({ restsUntilMs }) => restsUntilMs === null || tried.length === 0);
    const first = minimumOf(ready, (member) => this.queue.waitMs(lineOf(member), requester)) ?? last[0];
    if (!first) return null;
    this.turn = (this.members.indexOf(first) + 1) % this.members.length;
    return first.open(ready.some((member) => member !== first));
  }

  /** Whether a proxy was not tried, or a gateway has further addresses. */
  hasUntried(tried: readonly string[]): boolean {
    return this.members.some(({ name, isGateway }) => isGateway || !tried.includes(name));
  }

  /** Seconds until the first of the refused egresses may serve again; null while one is not refused. */
  blockedForSeconds(use: UseName): number | null {
    const firstMs = Math.min(...this.members.map(({ uses }) => uses[use].line.pauseRemainingMs));
    return firstMs === 0 ? null : Math.ceil(firstMs / 1000);
  }

  /** Whether background work may begin to read a list: one egress is not refused for lists, and its rate allows it. */
  get admitsLists(): boolean {
    const lines = this.members.map(({ uses }) => uses.channel.line);
    return lines.some(({ pauseRemainingMs, rates }) => pauseRemainingMs === 0 && rates.get('list')?.admitsBackground);
  }

  /** Counts how an attempt ended for its egress, and lets it rest when no response arrived although others may serve. */
  recordEnd({ name: exit }: Egress, use: UseName, end: AttemptEnd): void {
    this.ends.inc({ exit, use, finding: end });
    const member = this.members.find(({ name }) => name === exit);
    if (!member) return;
    if (member.isGateway) {
      if (end === 'refused') member.refusedSessions += 1;
      else if (end === 'answered') member.refusedSessions = 0;
      if (member.refusedSessions < SESSIONS_REFUSED_MAX) return;
      member.refusedSessions = 0;
      member.uses[use].line.pause(use === 'video' ? 'player' : 'list', null);
    } else if (end === 'unreached' && this.members.length > 1) void member.check();
  }

  states(): EgressState[] {
    return this.members.map(({ name, restsUntilMs, uses }) => ({
      name,
      resting: restsUntilMs !== null,
      uses: EGRESS_USES.map((use) => ({ use, ...uses[use].line.state })),
    }));
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }
}

function minimumOf(members: readonly PoolMember[], valueOf: (member: PoolMember) => number): PoolMember | undefined {
  const values = members.map(valueOf);
  return members[values.indexOf(Math.min(...values))];
}

/** Opens connections directly, or through an HTTP(S) proxy. @param proxyUrl null for direct connections */
function openDispatcher(
  proxyUrl: string | null,
  { UPSTREAM_CONCURRENCY, UPSTREAM_TIMEOUT_SECONDS }: Environment,
  connections = UPSTREAM_CONCURRENCY,
): Dispatcher {
  const timeout = UPSTREAM_TIMEOUT_SECONDS * 1000;
  const shared = { connections, pipelining: 1, connect: { timeout } };
  if (proxyUrl === null) return new Agent(shared);
  return new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: { timeout }, proxyTls: { timeout } });
}
