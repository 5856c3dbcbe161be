import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { ExitState } from '../../upstream-traffic.js';
import { type Admission, CircuitBreaker } from './circuit-breaker.js';

/** What an exit is used for. The platform refuses one and not the other, so each is judged by itself. */
export type ExitUse = 'channel' | 'video';

/** How long an exit is passed over after a refusal while another one is there, unless the platform names a time. */
const REST_MS = 60_000;
const REST_MAX_MS = 600_000;

/** One way out to the platform: this machine's own address, or a proxy. What the platform knows it by stays with it. */
export interface Exit {
  /** For logs: never the proxy's URL, which can hold a password. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
}

interface ManagedExit extends Exit {
  readonly breakers: Readonly<Record<ExitUse, CircuitBreaker>>;
  restsUntilMs: number;
}

export interface ExitOptions {
  /** Empty: one exit without a proxy. */
  proxyUrls: readonly string[];
  /** Connections of each exit. */
  connectionsMax: number;
  connectTimeoutMs: number;
  now?: () => number;
  /** Told when an exit's breaker opens (with the pause in milliseconds) or closes (with null). */
  onBreaker?: (exit: string, use: ExitUse, openForMs: number | null) => void;
  onRest?: (exit: string, restMs: number) => void;
  /** Told what each piece of work found out about its exit. */
  onFinding?: (exit: string, use: ExitUse, finding: string) => void;
}

/** The ways out, in turn; one that was refused rests while another takes over. */
export class Exits {
  private readonly exits: readonly ManagedExit[];
  private readonly now: () => number;
  private turn = 0;

  constructor(private readonly options: ExitOptions) {
    this.now = options.now ?? (() => performance.now());
    const proxies: readonly (string | null)[] = options.proxyUrls.length > 0 ? options.proxyUrls : [null];
    this.exits = proxies.map((proxyUrl, index) => this.manage(proxyUrl, index));
  }

  get count(): number {
    return this.exits.length;
  }

  /**
   * The next exit for a piece of work, and the admission that has to be ended with it. Null when every exit that is not
   * in `excluded` is shut.
   */
  take(use: ExitUse, excluded: ReadonlySet<Exit> = new Set()): { exit: Exit; admission: Admission } | null {
    const nowMs = this.now();
    const inTurn = this.exits.map((_, index) => this.exits[(this.turn + index) % this.exits.length]);
    const candidates = inTurn.flatMap((exit) => (exit && !excluded.has(exit) ? [exit] : []));
    const rested = candidates.filter((exit) => exit.restsUntilMs <= nowMs);
    const resting = candidates.filter((exit) => exit.restsUntilMs > nowMs);
    // One that rests is better than none; a second try of the same work (something is excluded) does not go to it.
    resting.sort((one, other) => one.restsUntilMs - other.restsUntilMs);
    for (const exit of excluded.size > 0 ? rested : [...rested, ...resting]) {
      const admission = exit.breakers[use].admit();
      if (!admission) continue;
      this.turn = (this.exits.indexOf(exit) + 1) % this.exits.length;
      return { exit, admission };
    }
    return null;
  }

  /** Passes an exit over for a while. With a single exit there is nothing to change to. */
  rest(exit: Exit, retryAfterSeconds: number | null): void {
    const managed = this.exits.find((candidate) => candidate === exit);
    if (!managed || this.exits.length === 1) return;
    const restMs = Math.min(REST_MAX_MS, retryAfterSeconds === null ? REST_MS : retryAfterSeconds * 1000);
    const nowMs = this.now();
    // All that was under way through it comes back refused: that is one rest, told once.
    const resting = managed.restsUntilMs > nowMs;
    managed.restsUntilMs = Math.max(managed.restsUntilMs, nowMs + restMs);
    if (!resting) this.options.onRest?.(exit.name, restMs);
  }

  /** Passes on what a piece of work found out about its exit. */
  note(exit: Exit, use: ExitUse, finding: string): void {
    this.options.onFinding?.(exit.name, use, finding);
  }

  /** How each exit stands now. */
  state(): ExitState[] {
    const nowMs = this.now();
    return this.exits.map(({ name, restsUntilMs, breakers: { channel, video } }) => ({
      name,
      resting: restsUntilMs > nowMs,
      shut: { channel: channel.open, video: video.open },
    }));
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.exits.map((exit) => exit.dispatcher.destroy()));
  }

  private manage(proxyUrl: string | null, index: number): ManagedExit {
    const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
    const { connectionsMax: connections, connectTimeoutMs: timeout } = this.options;
    const shared = { connections, pipelining: 1, connect: { timeout } };
    const breaker = (use: ExitUse) =>
      new CircuitBreaker(this.now, (openForMs) => this.options.onBreaker?.(name, use, openForMs));
    return {
      name,
      dispatcher:
        proxyUrl === null
          ? new Agent(shared)
          : new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: { timeout }, proxyTls: { timeout } }),
      breakers: { channel: breaker('channel'), video: breaker('video') },
      restsUntilMs: 0,
    };
  }
}
