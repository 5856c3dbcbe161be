import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { EgressState } from '../../upstream-traffic.js';
import { type Admission, CircuitBreaker } from './circuit-breaker.js';

/** What an exit is used for. The platform refuses one and not the other, so each is judged by itself. */
export type EgressUse = 'channel' | 'video';

/** How long an exit is passed over after a refusal while another one is there, unless the platform names a time. */
const COOLDOWN_MS = 60_000;
const COOLDOWN_MAX_MS = 600_000;

/** One way out to the platform: this machine's own address, or a proxy. What the platform knows it by stays with it. */
export interface Egress {
  /** For logs: never the proxy's URL, which can hold a password. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
}

interface ManagedEgress extends Egress {
  readonly breakers: Readonly<Record<EgressUse, CircuitBreaker>>;
  coolingDownUntilMs: number;
}

export interface EgressPoolOptions {
  /** Empty: one exit without a proxy. */
  proxyUrls: readonly string[];
  /** Connections of each exit. */
  connectionsMax: number;
  connectTimeoutMs: number;
  now?: () => number;
  /** Told when an exit's breaker opens (with the pause in milliseconds) or closes (with null). */
  onBreaker?: (egress: string, use: EgressUse, openForMs: number | null) => void;
  onCooldown?: (egress: string, restMs: number) => void;
  /** Told what each piece of work found out about its exit. */
  onVerdict?: (egress: string, use: EgressUse, verdict: string) => void;
}

/** The ways out, in turn; one that was refused rests while another takes over. */
export class EgressPool {
  private readonly egresses: readonly ManagedEgress[];
  private readonly now: () => number;
  private turn = 0;

  constructor(private readonly options: EgressPoolOptions) {
    this.now = options.now ?? (() => performance.now());
    const proxies: readonly (string | null)[] = options.proxyUrls.length > 0 ? options.proxyUrls : [null];
    this.egresses = proxies.map((proxyUrl, index) => this.manage(proxyUrl, index));
  }

  get count(): number {
    return this.egresses.length;
  }

  /**
   * The next exit for a piece of work, and the admission that has to be ended with it. Null when every exit that is not
   * in `excluded` is shut.
   */
  take(use: EgressUse, excluded: ReadonlySet<Egress> = new Set()): { egress: Egress; admission: Admission } | null {
    const nowMs = this.now();
    const inTurn = this.egresses.map((_, index) => this.egresses[(this.turn + index) % this.egresses.length]);
    const candidates = inTurn.flatMap((egress) => (egress && !excluded.has(egress) ? [egress] : []));
    const rested = candidates.filter((egress) => egress.coolingDownUntilMs <= nowMs);
    const coolingDown = candidates.filter((egress) => egress.coolingDownUntilMs > nowMs);
    // One that rests is better than none; a second try of the same work (something is excluded) does not go to it.
    coolingDown.sort((one, other) => one.coolingDownUntilMs - other.coolingDownUntilMs);
    for (const egress of excluded.size > 0 ? rested : [...rested, ...coolingDown]) {
      const admission = egress.breakers[use].admit();
      if (!admission) continue;
      this.turn = (this.egresses.indexOf(egress) + 1) % this.egresses.length;
      return { egress, admission };
    }
    return null;
  }

  /** Passes an exit over for a while. With a single exit there is nothing to change to. */
  cooldown(egress: Egress, retryAfterSeconds: number | null): void {
    const managed = this.egresses.find((candidate) => candidate === egress);
    if (!managed || this.egresses.length === 1) return;
    const restMs = Math.min(COOLDOWN_MAX_MS, retryAfterSeconds === null ? COOLDOWN_MS : retryAfterSeconds * 1000);
    const nowMs = this.now();
    // All that was under way through it comes back refused: that is one rest, told once.
    const coolingDown = managed.coolingDownUntilMs > nowMs;
    managed.coolingDownUntilMs = Math.max(managed.coolingDownUntilMs, nowMs + restMs);
    if (!coolingDown) this.options.onCooldown?.(egress.name, restMs);
  }

  /** Passes on what a piece of work found out about its exit. */
  recordVerdict(egress: Egress, use: EgressUse, verdict: string): void {
    this.options.onVerdict?.(egress.name, use, verdict);
  }

  /** How each exit stands now. */
  state(): EgressState[] {
    const nowMs = this.now();
    return this.egresses.map(({ name, coolingDownUntilMs, breakers: { channel, video } }) => ({
      name,
      coolingDown: coolingDownUntilMs > nowMs,
      blocked: { channel: channel.open, video: video.open },
    }));
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.egresses.map((egress) => egress.dispatcher.destroy()));
  }

  private manage(proxyUrl: string | null, index: number): ManagedEgress {
    const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
    const { connectionsMax: connections, connectTimeoutMs: timeout } = this.options;
    const shared = { connections, pipelining: 1, connect: { timeout } };
    const breaker = (use: EgressUse) =>
      new CircuitBreaker(this.now, (openForMs) => this.options.onBreaker?.(name, use, openForMs));
    return {
      name,
      dispatcher:
        proxyUrl === null
          ? new Agent(shared)
          : new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: { timeout }, proxyTls: { timeout } }),
      breakers: { channel: breaker('channel'), video: breaker('video') },
      coolingDownUntilMs: 0,
    };
  }
}
