import { randomBytes } from 'node:crypto';
import type { Registry } from 'prom-client';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { Environment } from '../../../config/environment.js';
import type { EgressState, EgressStates } from '../../egress-states.js';
import type { Requester } from '../../video-platform.js';
import { report } from '../event-log.js';
import { type AttemptEnd, EGRESS_USES, type EgressUse } from './attempt.js';
import type { Egress } from './egress.js';
import { type BudgetKind, EgressGate } from './egress-gate.js';
import { countAttempts, exportEgressStates } from './egress-metrics.js';
import { Examination } from './examination.js';
import type { Line, RequestQueue } from './request-queue.js';
import { SendingRate } from './sending-rate.js';

/** How long an egress that was not reached comes last, until a control is asked through it again. */
const REST_MS = 60_000;

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;
/** How many sessions of a gateway: with 60 % of bad addresses, five would fail 8 % of the videos, and eight 2 %. */
const SESSIONS_PER_TASK_MAX = 8;
/** This many refused sessions in a row mean that nearly all addresses of a gateway are refused. */
const SESSIONS_REFUSED_MAX = 100;

/** The placeholder in the URL of a rotating gateway, which gives each session an address of its own. */
const SESSION = '{session}';
/** The requests of one attempt are sent one after the other, and its exact date beside them. */
const CONNECTIONS_PER_SESSION = 2;

/** How a request for something that is known to be served ended. `unreached`: no response of the platform arrived. */
export type ControlEnd = 'served' | 'refused' | 'unreached' | 'unknown';

/** Asks for something that is known to be served, to find out whether an egress is refused. */
export interface Control {
  /** @param kind the kind of request that was refused; null for any */
  ask(egress: Egress, kind: BudgetKind | null): Promise<ControlEnd>;
}

export interface TakenEgress {
  readonly egress: Egress;
  /** Whether another egress, or another session of this one, can be tried. */
  readonly hasAlternative: boolean;
  /** Closes the session of a gateway. */
  readonly release: () => void;
}

/** An egress as configured. */
class PoolMember {
  readonly gates: Egress['gates'];
  readonly isGateway: boolean;
  /** It was not reached: it comes last until then, and after that until a control is served. Null when it does not rest. */
  restsUntilMs: number | null = null;
  /** Sessions of a gateway that were refused in a row. */
  refusedSessions = 0;
  private readonly probing = new Set<EgressUse | 'rest'>();
  /** Undefined for a gateway, which opens a session for each attempt. */
  private readonly direct: Egress | undefined;
  private readonly sessions = new Set<Dispatcher>();

  constructor(
    readonly name: string,
    private readonly proxyUrl: string | null,
    private readonly environment: Environment,
    private readonly queue: RequestQueue,
    private readonly now: () => number,
  ) {
    const { UPSTREAM_PLAYER_PER_MINUTE, UPSTREAM_TIMEDTEXT_PER_MINUTE, UPSTREAM_CONCURRENCY } = environment;
    const rotating = (this.isGateway = proxyUrl?.includes(SESSION) === true);
    const slots = { max: UPSTREAM_CONCURRENCY, running: 0 };
    const gate = (use: EgressUse, ceilings: (readonly [BudgetKind, number | undefined])[], videos?: Line) => {
      const rates = new Map(ceilings.map(([kind, perMinute]) => [kind, new SendingRate(perMinute, now)]));
      const onPause = (kind: BudgetKind, pauseMs: number | null) => this.reportPause(use, kind, pauseMs);
      return new EgressGate({ queue, slots, videos, rates, startsSlowly: !rotating, now, onPause });
    };
    const video = gate('video', [
      ['player', UPSTREAM_PLAYER_PER_MINUTE],
      ['captions', UPSTREAM_TIMEDTEXT_PER_MINUTE],
    ]);
    this.gates = { channel: gate('channel', [['list', 0]], video.line), video };
    if (!rotating) this.direct = this.egress(openDispatcher(proxyUrl, environment));
  }

  /** Opens a session of a gateway, with connections of its own so that it gets an address of its own. */
  open(hasAlternative = false): TakenEgress {
    if (this.direct) return { egress: this.direct, hasAlternative, release: () => undefined };
    const url = this.proxyUrl?.replaceAll(SESSION, randomBytes(8).toString('hex')) ?? null;
    const dispatcher = openDispatcher(url, this.environment, CONNECTIONS_PER_SESSION);
    this.sessions.add(dispatcher);
    const release = () => {
      this.sessions.delete(dispatcher);
      void dispatcher.destroy();
    };
    return { egress: this.egress(dispatcher), hasAlternative: true, release };
  }

  /** Ends a pause that is over, or doubles it, by a control. */
  async probe(use: EgressUse, control: Control): Promise<void> {
    const gate = this.gates[use];
    const kind = gate.refusedKind;
    if (!gate.isDue || kind === null) return;
    await this.once(use, async (egress) => {
      const end = await control.ask(egress, kind);
      report('log', 'youtube_control_asked', { exit: this.name, use, kind, end });
      gate.noteControl(kind, end);
      if (end === 'served') gate.resume();
      else if (gate.isDue) gate.pause(kind, null);
    });
  }

  /** Finds out whether an egress through which a response did not arrive can be reached, and lets it rest otherwise. */
  async check(control: Control): Promise<void> {
    if (this.restsUntilMs !== null && this.restsUntilMs > this.now()) return;
    await this.once('rest', async (egress) => {
      const rested = this.restsUntilMs !== null;
      // It comes last from now on.
      this.restsUntilMs = this.now() + REST_MS;
      const end = await control.ask(egress, null);
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
  private async once(what: EgressUse | 'rest', work: (egress: Egress) => Promise<void>): Promise<void> {
    if (this.probing.has(what)) return;
    this.probing.add(what);
    const { egress, release } = this.open();
    await work(egress).finally(() => {
      release();
      this.probing.delete(what);
    });
  }

  private egress(dispatcher: Dispatcher): Egress {
    const { name, gates, queue, isGateway } = this;
    const examination = (use: EgressUse) => new Examination(gates[use], queue, !isGateway);
    const examinations = { channel: examination('channel'), video: examination('video') };
    return { name, dispatcher, gates, examinations, ...(isGateway && { gateway: this }) };
  }

  private reportPause(use: EgressUse, kind: BudgetKind, pauseMs: number | null): void {
    const { name: exit } = this;
    if (pauseMs !== null)
      return report('warn', 'youtube_block_opened', { exit, use, kind, openForSeconds: pauseMs / 1000 });
    report('log', 'youtube_block_closed', { exit, use, kind });
    if (use === 'channel') return;
    const [playerPerMinute, captionsPerMinute] = [...this.gates.video.rates.values()].map((rate) => rate.perMinute);
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
    private readonly now = () => performance.now(),
  ) {
    const proxies = environment.UPSTREAM_PROXY_URL ?? [null];
    this.members = proxies.map((proxyUrl, index) => {
      const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
      return new PoolMember(name, proxyUrl, environment, queue, now);
    });
    exportEgressStates(registry, this.members);
    this.ends = countAttempts(registry, this.members);
  }

  get attemptsMax(): number {
    return this.members.some(({ isGateway }) => isGateway) ? SESSIONS_PER_TASK_MAX : EGRESSES_PER_TASK_MAX;
  }

  /**
   * The next egress: of those that are not refused the one that can serve first. Null when all are refused. A control of what
   * may serve again is asked meanwhile; only when there is nothing else, the attempt waits for it.
   *
   * @param tried the names of earlier attempts at the same subject: each proxy is tried once, a gateway repeatedly
   */
  take(use: EgressUse, tried: readonly string[], requester: Requester, control: Control): TakenEgress | null {
    const inTurn = [...this.members.slice(this.turn), ...this.members.slice(0, this.turn)];
    for (const member of this.members) this.probe(member, use, control);
    const free = inTurn.filter(
      (member) => (member.isGateway || !tried.includes(member.name)) && member.gates[use].pauseRemainingMs === 0,
    );
    const isReady = ({ gates, restsUntilMs }: PoolMember) => !gates[use].paused && restsUntilMs === null;
    const ready = free.filter(isReady);
    // An egress that rests is better than none, but not for a second attempt at the same subject.
    const last = free.filter(({ restsUntilMs }) => restsUntilMs === null || tried.length === 0);
    const waitMs = (member: PoolMember) => this.queue.waitMs(member.gates[use].line, requester);
    const first = minimumOf(ready, waitMs) ?? last[0];
    if (!first) return null;
    this.turn = (this.members.indexOf(first) + 1) % this.members.length;
    return first.open(ready.some((member) => member !== first));
  }

  /** Seconds until the first of the refused egresses may serve again; null while one is not refused. */
  blockedForSeconds(use: EgressUse): number | null {
    const firstMs = Math.min(...this.members.map(({ gates }) => gates[use].pauseRemainingMs));
    return firstMs === 0 ? null : Math.ceil(firstMs / 1000);
  }

  /** Counts how an attempt ended for its egress, and lets it rest when no response arrived although others may serve. */
  recordEnd({ name: exit }: Egress, use: EgressUse, end: AttemptEnd, control: Control): void {
    this.ends.inc({ exit, use, finding: end });
    const member = this.members.find(({ name }) => name === exit);
    if (!member) return;
    if (member.isGateway) {
      member.refusedSessions =
        end === 'refused' ? member.refusedSessions + 1 : end === 'answered' ? 0 : member.refusedSessions;
      if (member.refusedSessions < SESSIONS_REFUSED_MAX) return;
      member.refusedSessions = 0;
      member.gates[use].pause(use === 'video' ? 'player' : 'list', null);
    } else if (end === 'unreached' && this.members.length > 1) void member.check(control);
  }

  states(): EgressState[] {
    return this.members.map(({ name, restsUntilMs, gates }) => ({
      name,
      resting: restsUntilMs !== null,
      uses: EGRESS_USES.map((use) => ({ use, ...gates[use].state })),
    }));
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }

  private probe(member: PoolMember, use: EgressUse, control: Control): void {
    void member.probe(use, control);
    if (member.restsUntilMs !== null) void member.check(control);
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
