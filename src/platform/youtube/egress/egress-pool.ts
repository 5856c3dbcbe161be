import type { Registry } from 'prom-client';
import type { Requester } from '../../video-platform.js';
import { report } from '../event-log.js';
import type { AttemptVerdict, ControlledKind, Egress, EgressUse } from './egress.js';
import { EgressMetrics } from './egress-metrics.js';
import { GatewaySessions, isGatewayUrl, openDispatcher, type ConnectionOptions } from './proxy-dispatcher.js';
import { RequestControl } from './request-control.js';

/** How long an egress is skipped after a refusal while others are available, unless the platform sends `Retry-After`. */
const COOLDOWN_MS = 60_000;
const COOLDOWN_MAX_MS = 600_000;

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;
/** How many sessions of a gateway: with 60 % of bad addresses, five would fail 8 % of the videos, and eight 2 %. */
const SESSIONS_PER_TASK_MAX = 8;

/** An egress to use for one attempt. */
interface TakenEgress {
  readonly egress: Egress;
  /** Closes the session of a gateway. */
  release(): void;
}

interface EgressPoolOptions extends ConnectionOptions {
  /** Empty: one direct egress. */
  proxyUrls: readonly string[];
  /** The most requests a minute of each egress: undefined, the rate is learned without a ceiling; 0, it is not limited. */
  ceilings?: Readonly<Record<'player' | 'captions', number | undefined>>;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
  registry: Registry;
}

/** An egress as configured: a gateway opens a session for each use. */
class PoolMember {
  readonly controls: Egress['controls'];
  private readonly connections: { readonly egress: Egress } | { readonly sessions: GatewaySessions };
  coolingDownUntilMs = 0;

  constructor(
    readonly name: string,
    proxyUrl: string | null,
    options: EgressPoolOptions,
    now: () => number,
  ) {
    const rotating = proxyUrl !== null && isGatewayUrl(proxyUrl);
    const control = (kind: ControlledKind) =>
      new RequestControl({
        concurrencyMax: options.connectionsMax,
        ceilingPerMinute: kind === 'lists' ? 0 : options.ceilings?.[kind],
        rotating,
        now,
        onPause: (pauseMs) => this.reportPause(kind === 'lists' ? 'channel' : 'video', pauseMs),
      });
    this.controls = { player: control('player'), captions: control('captions'), lists: control('lists') };
    this.connections = rotating
      ? { sessions: new GatewaySessions(proxyUrl, options) }
      : { egress: { name, controls: this.controls, dispatcher: openDispatcher(proxyUrl, options) } };
  }

  get isGateway(): boolean {
    return 'sessions' in this.connections;
  }

  /** A video needs its player and then its captions. */
  pauseRemainingMs(use: EgressUse): number {
    return Math.max(...this.controlsOf(use).map(({ pauseRemainingMs }) => pauseRemainingMs));
  }

  /** Milliseconds until an attempt can start; Infinity while another attempt finds out whether the egress is refused. */
  waitMs(use: EgressUse, requester: Requester): number {
    if (this.controlsOf(use).some(({ asking }) => asking)) return Infinity;
    const { player, captions } = this.controls;
    return use === 'channel' ? 0 : Math.max(player.waitMs(requester), captions.waitMs(requester, player.pending));
  }

  open(): TakenEgress {
    if ('egress' in this.connections) return { egress: this.connections.egress, release: () => undefined };
    const { sessions } = this.connections;
    const dispatcher = sessions.open();
    const egress = { name: this.name, controls: this.controls, dispatcher, gateway: sessions };
    return { egress, release: () => void sessions.close(dispatcher) };
  }

  async close(): Promise<void> {
    await ('egress' in this.connections
      ? this.connections.egress.dispatcher.destroy()
      : this.connections.sessions.closeAll());
  }

  private reportPause(use: EgressUse, pauseMs: number | null): void {
    const { name: exit, controls } = this;
    if (pauseMs !== null) return report('warn', 'youtube_block_opened', { exit, use, openForSeconds: pauseMs / 1000 });
    report('log', 'youtube_block_closed', { exit, use });
    const [playerPerMinute, captionsPerMinute] = [controls.player.perMinute, controls.captions.perMinute];
    if (use === 'video') report('log', 'youtube_pace_learned', { exit, playerPerMinute, captionsPerMinute });
  }

  private controlsOf(use: EgressUse): RequestControl[] {
    const { player, captions, lists } = this.controls;
    return use === 'channel' ? [lists] : [player, captions];
  }
}

/** The egresses, in rotation. One that was refused cools down while others are used. */
export class EgressPool {
  private readonly members: readonly PoolMember[];
  private readonly now: () => number;
  private readonly metrics: EgressMetrics;
  private turn = 0;

  constructor(options: EgressPoolOptions) {
    this.now = options.now ?? (() => performance.now());
    const proxies: readonly (string | null)[] = options.proxyUrls.length > 0 ? options.proxyUrls : [null];
    this.members = proxies.map((proxyUrl, index) => {
      const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
      return new PoolMember(name, proxyUrl, options, this.now);
    });
    this.metrics = new EgressMetrics(options.registry, this.members, this.now);
  }

  get count(): number {
    return this.members.length;
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
    const free = this.candidates(tried, inTurn).filter((member) => member.pauseRemainingMs(use) === 0);
    const ready = free.filter(({ coolingDownUntilMs }) => coolingDownUntilMs <= nowMs);
    // An egress that cools down is better than none, but not for a second attempt at the same subject.
    const usable = ready.length > 0 || tried.length > 0 ? ready : free;
    const first = minimumOf(usable, (member) =>
      ready.length > 0 ? member.waitMs(use, requester) : member.coolingDownUntilMs,
    );
    if (!first) return null;
    this.turn = (this.members.indexOf(first) + 1) % this.members.length;
    return first.open();
  }

  /**
   * Another egress for a caption request that this one cannot send or was refused: of those whose captions are not paused,
   * the one that can serve first.
   */
  takeForCaptions(requester: Requester, tried: readonly string[]): TakenEgress | null {
    const free = this.candidates(tried).filter(
      ({ controls, coolingDownUntilMs }) => controls.captions.open && coolingDownUntilMs <= this.now(),
    );
    return minimumOf(free, ({ controls }) => controls.captions.waitMs(requester))?.open() ?? null;
  }

  /** Seconds until the first of the paused egresses is probed; null while one is not paused. */
  blockedForSeconds(use: EgressUse): number | null {
    const firstMs = Math.min(...this.members.map((member) => member.pauseRemainingMs(use)));
    return firstMs === 0 ? null : Math.ceil(firstMs / 1000);
  }

  /** Skips an egress for a while. With a single egress there is nothing to switch to; a gateway changes its address. */
  cooldown({ name }: Egress, retryAfterSeconds: number | null): void {
    const member = this.members.find((candidate) => candidate.name === name);
    if (!member || member.isGateway || this.members.length === 1) return;
    const cooldownMs = Math.min(COOLDOWN_MAX_MS, retryAfterSeconds === null ? COOLDOWN_MS : retryAfterSeconds * 1000);
    const nowMs = this.now();
    // All requests in flight through it come back refused: one cooldown, reported once.
    const coolingDown = member.coolingDownUntilMs > nowMs;
    member.coolingDownUntilMs = Math.max(member.coolingDownUntilMs, nowMs + cooldownMs);
    if (!coolingDown) report('log', 'youtube_exit_rested', { exit: name, restSeconds: cooldownMs / 1000 });
  }

  /** Counts the verdict of an attempt. */
  recordVerdict({ name }: Egress, use: EgressUse, verdict: AttemptVerdict): void {
    this.metrics.verdict(name, use, verdict);
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }

  private candidates(tried: readonly string[], members = this.members): PoolMember[] {
    return members.filter(({ isGateway, name }) => isGateway || !tried.includes(name));
  }
}

/** The first of the members with the smallest value. */
function minimumOf(members: readonly PoolMember[], valueOf: (member: PoolMember) => number): PoolMember | undefined {
  const values = members.map(valueOf);
  return members[values.indexOf(Math.min(...values))];
}
