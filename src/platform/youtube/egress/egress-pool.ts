import { randomBytes } from 'node:crypto';
import type { Registry } from 'prom-client';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { Environment } from '../../../config/environment.js';
import type { Requester } from '../../video-platform.js';
import { report } from '../event-log.js';
import type { AttemptVerdict, Egress, EgressUse } from './egress.js';
import { countVerdicts, exportEgressStates } from './egress-metrics.js';
import type { FairLimiter } from './fair-limiter.js';
import { type ControlledKind, RequestControl } from './request-control.js';
import { SendingRate } from './sending-rate.js';

/** How long an egress is skipped after it was refused or not reached, while others are available. */
const COOLDOWN_MS = 60_000;

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;
/** How many sessions of a gateway: with 60 % of bad addresses, five would fail 8 % of the videos, and eight 2 %. */
const SESSIONS_PER_TASK_MAX = 8;

/** The placeholder in the URL of a rotating gateway, which gives each session an address of its own. */
const SESSION = '{session}';
/** The requests of one attempt are sent one after the other, and its exact date beside them. */
const CONNECTIONS_PER_SESSION = 2;

/** An egress to use for one attempt. */
interface TakenEgress {
  readonly egress: Egress;
  /** Closes the session of a gateway. */
  release(): void;
}

/** An egress as configured. */
class PoolMember {
  readonly controls: Egress['controls'];
  readonly isGateway: boolean;
  coolingDownUntilMs = 0;
  /** Undefined for a gateway, which opens a session for each attempt. */
  private readonly direct: Egress | undefined;
  /** The open sessions. */
  private readonly sessions = new Set<Dispatcher>();

  constructor(
    readonly name: string,
    private readonly proxyUrl: string | null,
    private readonly environment: Environment,
    limiter: FairLimiter,
    now: () => number,
  ) {
    const { UPSTREAM_PLAYER_PER_MINUTE, UPSTREAM_TIMEDTEXT_PER_MINUTE } = environment;
    const rotating = (this.isGateway = proxyUrl?.includes(SESSION) === true);
    const control = (use: EgressUse, ...ceilings: (readonly [ControlledKind, number | undefined])[]) => {
      const rates = new Map(ceilings.map(([kind, perMinute]) => [kind, new SendingRate(perMinute, now)]));
      const onPause = (pauseMs: number | null) => this.reportPause(use, pauseMs);
      return new RequestControl({ limiter, rates, rotating, now, onPause });
    };
    this.controls = {
      channel: control('channel', ['list', 0]),
      video: control('video', ['player', UPSTREAM_PLAYER_PER_MINUTE], ['captions', UPSTREAM_TIMEDTEXT_PER_MINUTE]),
    };
    if (!rotating) this.direct = { name, controls: this.controls, dispatcher: openDispatcher(proxyUrl, environment) };
  }

  /** Opens a session of a gateway, with connections of its own so that it gets an address of its own. */
  open(): TakenEgress {
    if (this.direct) return { egress: this.direct, release: () => undefined };
    const url = this.proxyUrl?.replaceAll(SESSION, randomBytes(8).toString('hex')) ?? null;
    const dispatcher = openDispatcher(url, this.environment, CONNECTIONS_PER_SESSION);
    this.sessions.add(dispatcher);
    const release = () => {
      this.sessions.delete(dispatcher);
      void dispatcher.destroy();
    };
    return { egress: { name: this.name, controls: this.controls, dispatcher, gateway: this }, release };
  }

  async close(): Promise<void> {
    const dispatchers = [...(this.direct ? [this.direct.dispatcher] : []), ...this.sessions];
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()));
  }

  private reportPause(use: EgressUse, pauseMs: number | null): void {
    const { name: exit } = this;
    if (pauseMs !== null) return report('warn', 'youtube_block_opened', { exit, use, openForSeconds: pauseMs / 1000 });
    report('log', 'youtube_block_closed', { exit, use });
    if (use === 'channel') return;
    const [playerPerMinute, captionsPerMinute] = [...this.controls.video.rates.values()].map((rate) => rate.perMinute);
    report('log', 'youtube_pace_learned', { exit, playerPerMinute, captionsPerMinute });
  }
}

/** The egresses, in rotation. One that was refused cools down while others are used. */
export class EgressPool {
  private readonly members: readonly PoolMember[];
  private readonly verdicts: ReturnType<typeof countVerdicts>;
  private turn = 0;

  /**
   * @param limiter runs the requests of all egresses
   * @param now milliseconds of a monotonic clock
   */
  constructor(
    environment: Environment,
    registry: Registry,
    limiter: FairLimiter,
    private readonly now = () => performance.now(),
  ) {
    const proxies = environment.UPSTREAM_PROXY_URL ?? [null];
    this.members = proxies.map((proxyUrl, index) => {
      const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
      return new PoolMember(name, proxyUrl, environment, limiter, now);
    });
    exportEgressStates(registry, this.members, now);
    this.verdicts = countVerdicts(registry, this.members);
  }

  /** The number of attempts at one channel or video. */
  get attemptsMax(): number {
    return this.members.some(({ isGateway }) => isGateway) ? SESSIONS_PER_TASK_MAX : EGRESSES_PER_TASK_MAX;
  }

  /**
   * The next egress: of those that are not paused, one that can serve first. Null when all are paused.
   *
   * @param tried the names of earlier attempts at the same subject: each proxy is tried once, a gateway repeatedly
   */
  take(use: EgressUse, tried: readonly string[] = [], requester: Requester = { fairnessKey: {} }): TakenEgress | null {
    const nowMs = this.now();
    const inTurn = [...this.members.slice(this.turn), ...this.members.slice(0, this.turn)];
    const free = inTurn.filter(
      (member) => (member.isGateway || !tried.includes(member.name)) && member.controls[use].pauseRemainingMs === 0,
    );
    const ready = free.filter(({ coolingDownUntilMs }) => coolingDownUntilMs <= nowMs);
    // An egress that cools down is better than none, but not for a second attempt at the same subject.
    const first =
      ready.length > 0
        ? minimumOf(ready, (member) => {
            const control = member.controls[use];
            return control.asking ? Infinity : control.waitMs(requester);
          })
        : minimumOf(tried.length > 0 ? [] : free, ({ coolingDownUntilMs }) => coolingDownUntilMs);
    if (!first) return null;
    this.turn = (this.members.indexOf(first) + 1) % this.members.length;
    return first.open();
  }

  /** Seconds until the first of the paused egresses is probed; null while one is not paused. */
  blockedForSeconds(use: EgressUse): number | null {
    const firstMs = Math.min(...this.members.map((member) => member.controls[use].pauseRemainingMs));
    return firstMs === 0 ? null : Math.ceil(firstMs / 1000);
  }

  /**
   * Counts the verdict of an attempt. An egress that was refused or not reached is skipped for a while, unless there is
   * nothing to switch to: a single egress, or a gateway, which changes its address.
   */
  recordVerdict({ name: exit }: Egress, use: EgressUse, finding: AttemptVerdict): void {
    this.verdicts.inc({ exit, use, finding });
    const member = this.members.find(({ name }) => name === exit);
    const isSkipped = finding === 'refused' || finding === 'unreached';
    if (!isSkipped || !member || member.isGateway || this.members.length === 1) return;
    const nowMs = this.now();
    // All attempts in flight through it end alike: one cooldown, reported once.
    if (member.coolingDownUntilMs <= nowMs)
      report('log', 'youtube_exit_rested', { exit, restSeconds: COOLDOWN_MS / 1000 });
    member.coolingDownUntilMs = nowMs + COOLDOWN_MS;
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }
}

/** The first of the members with the smallest value. */
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
