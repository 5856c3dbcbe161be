import type { Registry } from 'prom-client';
import type { Requester } from '../../video-platform.js';
import {
  type Admission,
  BLOCKS_TO_OPEN,
  BLOCKS_TO_OPEN_AGAIN,
  CircuitBreaker,
  EGRESS_LIMITS,
  GATEWAY_SHARE_ATTEMPTS,
  refusedInARow,
  refusedShare,
} from './circuit-breaker.js';
import type { AttemptVerdict, Egress, EgressUse } from './egress.js';
import { EgressMetrics } from './egress-metrics.js';
import type { PacedKind } from './egress-state.js';
import { EgressStateStore } from './egress-state-store.js';
import { GatewaySessions, isGatewayUrl } from './gateway-sessions.js';
import { openDispatcher, type ConnectionOptions } from './proxy-dispatcher.js';
import { type PaceCeilings, RequestPacer } from './request-pacer.js';
import { StoredEgressState } from './stored-egress-state.js';

/** How long an egress is skipped after a refusal while others are available, unless the platform sends `Retry-After`. */
const COOLDOWN_MS = 60_000;
const COOLDOWN_MAX_MS = 600_000;

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;
/** How many sessions of a gateway: with 60 % of bad addresses, five would fail 8 % of the videos, and eight 2 %. */
const SESSIONS_PER_TASK_MAX = 8;

/** An egress as configured: a gateway opens a session for each use. */
interface PoolMember {
  readonly name: string;
  readonly breakers: Readonly<Record<EgressUse, CircuitBreaker>>;
  readonly pacer: RequestPacer;
  readonly connections: { readonly egress: Egress } | { readonly sessions: GatewaySessions };
  /** What identifies it in the shared state. */
  readonly id: string;
  coolingDownUntilMs: number;
}

/** An egress to use for one attempt. */
export interface TakenEgress {
  readonly egress: Egress;
  /** Its result must be reported. */
  readonly admission: Admission;
  /** Closes the session of a gateway. */
  release(): void;
}

export interface EgressPoolOptions extends ConnectionOptions {
  /** Empty: one direct egress. */
  proxyUrls: readonly string[];
  ceilings?: PaceCeilings;
  /** Milliseconds of the epoch; monotonic. */
  now?: () => number;
  /** Called when a breaker opens (with the pause in milliseconds) or closes (with null). */
  onBreaker?: (egress: string, use: EgressUse, openForMs: number | null) => void;
  /** Called after a block, with the requests a minute that the platform sustains; null for no limit. */
  onPace?: (egress: string, perMinute: Readonly<Record<PacedKind, number | null>>) => void;
  onCooldown?: (egress: string, cooldownMs: number) => void;
  store?: EgressStateStore;
  registry: Registry;
}

/** The egresses, in rotation. One that was refused cools down while others are used. */
export class EgressPool {
  private readonly members: readonly PoolMember[];
  private readonly now: () => number;
  private readonly store: EgressStateStore;
  private readonly metrics: EgressMetrics;
  private turn = 0;

  constructor(private readonly options: EgressPoolOptions) {
    this.now = options.now ?? (() => performance.timeOrigin + performance.now());
    this.store = options.store ?? new EgressStateStore(undefined);
    const proxies: readonly (string | null)[] = options.proxyUrls.length > 0 ? options.proxyUrls : [null];
    this.members = proxies.map((proxyUrl, index) => this.manage(proxyUrl, index));
    this.metrics = new EgressMetrics(options.registry, this.members, this.now);
  }

  get count(): number {
    return this.members.length;
  }

  /** The number of attempts at one channel or video. */
  get attemptsMax(): number {
    return this.members.some(isGateway) ? SESSIONS_PER_TASK_MAX : EGRESSES_PER_TASK_MAX;
  }

  /** To be awaited before an egress is taken: reads what other replicas know, at most once a second. */
  refresh(): Promise<void> {
    return this.store.refresh();
  }

  /**
   * The next egress: of those that are not blocked, one whose pace can serve first. Null when all are blocked.
   *
   * @param tried the names of earlier attempts at the same subject: each proxy is tried once, a gateway repeatedly
   */
  take(use: EgressUse, tried: readonly string[] = [], requester: Requester = { fairnessKey: {} }): TakenEgress | null {
    const nowMs = this.now();
    const inTurn = this.members.map((_, index) => this.members[(this.turn + index) % this.members.length]);
    const candidates = inTurn.flatMap((member) =>
      member && (isGateway(member) || !tried.includes(member.name)) ? [member] : [],
    );
    const waitMs = (member: PoolMember) => (use === 'video' ? member.pacer.videoWaitMs(requester) : 0);
    const ready = candidates
      .filter((member) => member.coolingDownUntilMs <= nowMs)
      .map((member) => ({ member, waitMs: waitMs(member) }))
      .sort((one, other) => one.waitMs - other.waitMs)
      .map(({ member }) => member);
    const coolingDown = candidates.filter((member) => member.coolingDownUntilMs > nowMs);
    // An egress that cools down is better than none, but not for a second attempt at the same subject.
    coolingDown.sort((one, other) => one.coolingDownUntilMs - other.coolingDownUntilMs);
    for (const member of tried.length > 0 ? ready : [...ready, ...coolingDown]) {
      const admission = member.breakers[use].admit();
      if (!admission) continue;
      this.turn = (this.members.indexOf(member) + 1) % this.members.length;
      return { admission, ...this.open(member) };
    }
    return null;
  }

  /**
   * An egress for requests that the platform does not refuse by address, whatever breakers and paces state. Null when all of
   * them were tried.
   */
  takeUnpaced(tried: readonly string[]): Pick<TakenEgress, 'egress' | 'release'> | null {
    const candidates = this.members.filter((member) => !tried.includes(member.name));
    const ready = candidates.find(({ coolingDownUntilMs }) => coolingDownUntilMs <= this.now()) ?? candidates[0];
    return ready ? this.open(ready) : null;
  }

  /**
   * Another egress for a caption request that this one cannot send or was refused: of those whose captions are not paused,
   * the one whose pace can serve first.
   */
  takeForCaptions(requester: Requester, tried: readonly string[]): Pick<TakenEgress, 'egress' | 'release'> | null {
    const nowMs = this.now();
    const candidates = this.members
      .filter((member) => isGateway(member) || !tried.includes(member.name))
      .filter(({ pacer, coolingDownUntilMs }) => !pacer.isPaused('captions') && coolingDownUntilMs <= nowMs)
      .map((member) => ({ member, waitMs: member.pacer.captionsWaitMs(requester) }))
      .sort((one, other) => one.waitMs - other.waitMs);
    const [first] = candidates;
    return first ? this.open(first.member) : null;
  }

  /** Seconds until the first of the blocked egresses is probed; null while one is not blocked. */
  blockedForSeconds(use: EgressUse): number | null {
    const breakers = this.members.map((member) => member.breakers[use]);
    if (breakers.some((breaker) => !breaker.open)) return null;
    return Math.max(1, Math.ceil(Math.min(...breakers.map(({ pauseRemainingMs }) => pauseRemainingMs)) / 1000));
  }

  /** Skips an egress for a while. With a single egress there is nothing to switch to; a gateway changes its address. */
  cooldown({ name }: Egress, retryAfterSeconds: number | null): void {
    const member = this.members.find((candidate) => candidate.name === name);
    if (!member || isGateway(member) || this.members.length === 1) return;
    const cooldownMs = Math.min(COOLDOWN_MAX_MS, retryAfterSeconds === null ? COOLDOWN_MS : retryAfterSeconds * 1000);
    const nowMs = this.now();
    // All requests in flight through it come back refused: one cooldown, reported once.
    const coolingDown = member.coolingDownUntilMs > nowMs;
    member.coolingDownUntilMs = Math.max(member.coolingDownUntilMs, nowMs + cooldownMs);
    if (!coolingDown) this.options.onCooldown?.(name, cooldownMs);
  }

  /** Counts the verdict of an attempt. */
  recordVerdict({ name }: Egress, use: EgressUse, verdict: AttemptVerdict): void {
    this.metrics.verdict(name, use, verdict);
  }

  /** Shares what was not shared yet. To be called before Redis is closed. */
  async storeState(): Promise<void> {
    await this.store.close();
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(
      this.members.map(({ connections }) =>
        'egress' in connections ? connections.egress.dispatcher.destroy() : connections.sessions.closeAll(),
      ),
    );
  }

  private open({ name, pacer, connections }: PoolMember): Pick<TakenEgress, 'egress' | 'release'> {
    if ('egress' in connections) return { egress: connections.egress, release: () => undefined };
    const { sessions } = connections;
    const dispatcher = sessions.open();
    const egress = { name, pacer, dispatcher, gateway: sessions };
    return { egress, release: () => void sessions.close(dispatcher) };
  }

  private manage(proxyUrl: string | null, index: number): PoolMember {
    const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
    const id = proxyUrl ?? 'direct';
    const gateway = proxyUrl !== null && isGatewayUrl(proxyUrl);
    const stored = (use: EgressUse) => {
      const state = new StoredEgressState((event) => this.store.changed(event));
      this.store.add(`${id} ${use}`, state);
      return state;
    };
    // The pace is that of players, which says nothing about channels.
    const blocksToOpen = (use: EgressUse) => (): number =>
      use === 'video' && pacer.learned ? BLOCKS_TO_OPEN_AGAIN : BLOCKS_TO_OPEN;
    const breaker = (use: EgressUse, state: StoredEgressState): CircuitBreaker =>
      new CircuitBreaker(
        this.now,
        (openForMs) => {
          this.options.onBreaker?.(name, use, openForMs);
          if (use === 'video') onVideoBreaker(openForMs !== null);
        },
        EGRESS_LIMITS,
        gateway ? refusedShare(GATEWAY_SHARE_ATTEMPTS) : refusedInARow(blocksToOpen(use)),
        state,
        (forMs) => this.store.claimProbe(`${id} ${use}`, forMs),
      );
    const onVideoBreaker = (open: boolean) => {
      if (open) pacer.releasePaused();
      else this.options.onPace?.(name, { player: pacer.perMinute('player'), captions: pacer.perMinute('captions') });
    };
    const videoState = stored('video');
    const breakers = { channel: breaker('channel', stored('channel')), video: breaker('video', videoState) };
    const ceilings = this.options.ceilings ?? { player: undefined, captions: undefined };
    const pacer: RequestPacer = new RequestPacer(videoState, breakers.video, ceilings, gateway, this.now);
    const connections = gateway
      ? { sessions: new GatewaySessions(proxyUrl, this.options) }
      : { egress: { name, pacer, dispatcher: openDispatcher(proxyUrl, this.options) } };
    return { name, id, breakers, pacer, connections, coolingDownUntilMs: 0 };
  }
}

function isGateway({ connections }: PoolMember): boolean {
  return 'sessions' in connections;
}
