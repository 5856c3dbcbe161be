import { Counter, Gauge, type Registry } from 'prom-client';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { type Admission, CircuitBreaker } from './circuit-breaker.js';

/** What an egress is used for. The platform may refuse one use and not the other, so each has a breaker of its own. */
export type EgressUse = (typeof EGRESS_USES)[number];
const EGRESS_USES = ['channel', 'video'] as const;

/**
 * What an attempt says about its egress. `refused`: the platform blocks it. `unreached`: no response arrived through it.
 * Both lead to another egress. `withheld`: the caption texts were empty, which means a block when it happens for one video
 * after another and concerns the video otherwise; so it counts towards the breaker, and the attempt is final. `nothing`:
 * no sign of either.
 */
export type AttemptVerdict = (typeof ATTEMPT_VERDICTS)[number];
const ATTEMPT_VERDICTS = ['answered', 'refused', 'withheld', 'unreached', 'nothing'] as const;

/** How long an egress is skipped after a refusal while others are available, unless the platform sends `Retry-After`. */
const COOLDOWN_MS = 60_000;
const COOLDOWN_MAX_MS = 600_000;

/** A network path to the platform: this machine's own address, or a proxy. Visitor data belongs to one egress. */
export interface Egress {
  /** For logs and metrics: never the proxy's URL, which can contain a password. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
}

interface ManagedEgress extends Egress {
  readonly breakers: Readonly<Record<EgressUse, CircuitBreaker>>;
  coolingDownUntilMs: number;
}

export interface EgressPoolOptions {
  /** Empty: one direct egress. */
  proxyUrls: readonly string[];
  /** Of each egress. */
  connectionsMax: number;
  connectTimeoutMs: number;
  now?: () => number;
  /** Called when a breaker opens (with the pause in milliseconds) or closes (with null). */
  onBreaker?: (egress: string, use: EgressUse, openForMs: number | null) => void;
  onCooldown?: (egress: string, cooldownMs: number) => void;
  registry: Registry;
}

/** The egresses, in rotation. One that was refused cools down while others are used. */
export class EgressPool {
  private readonly egresses: readonly ManagedEgress[];
  private readonly now: () => number;
  private turn = 0;
  private readonly verdicts: Counter<'exit' | 'use' | 'finding'>;

  constructor(private readonly options: EgressPoolOptions) {
    this.now = options.now ?? (() => performance.now());
    const proxies: readonly (string | null)[] = options.proxyUrls.length > 0 ? options.proxyUrls : [null];
    this.egresses = proxies.map((proxyUrl, index) => this.manage(proxyUrl, index));
    this.verdicts = this.registerMetrics(options.registry);
  }

  get count(): number {
    return this.egresses.length;
  }

  /**
   * The next egress, and the admission whose result the caller must report. Null when every egress that is not in
   * `excluded` is blocked.
   */
  take(use: EgressUse, excluded: ReadonlySet<Egress> = new Set()): { egress: Egress; admission: Admission } | null {
    const nowMs = this.now();
    const inTurn = this.egresses.map((_, index) => this.egresses[(this.turn + index) % this.egresses.length]);
    const candidates = inTurn.flatMap((egress) => (egress && !excluded.has(egress) ? [egress] : []));
    const ready = candidates.filter((egress) => egress.coolingDownUntilMs <= nowMs);
    const coolingDown = candidates.filter((egress) => egress.coolingDownUntilMs > nowMs);
    // An egress that cools down is better than none, but not for a second attempt at the same subject.
    coolingDown.sort((one, other) => one.coolingDownUntilMs - other.coolingDownUntilMs);
    for (const egress of excluded.size > 0 ? ready : [...ready, ...coolingDown]) {
      const admission = egress.breakers[use].admit();
      if (!admission) continue;
      this.turn = (this.egresses.indexOf(egress) + 1) % this.egresses.length;
      return { egress, admission };
    }
    return null;
  }

  /**
   * An egress for requests that are not refused by address, whatever the breakers state. Null when all are in `excluded`.
   */
  any(excluded: ReadonlySet<Egress>): Egress | null {
    const candidates = this.egresses.filter((egress) => !excluded.has(egress));
    return candidates.find(({ coolingDownUntilMs }) => coolingDownUntilMs <= this.now()) ?? candidates[0] ?? null;
  }

  /** Skips an egress for a while. With a single egress there is nothing to switch to. */
  cooldown(egress: Egress, retryAfterSeconds: number | null): void {
    const managed = this.egresses.find((candidate) => candidate === egress);
    if (!managed || this.egresses.length === 1) return;
    const cooldownMs = Math.min(COOLDOWN_MAX_MS, retryAfterSeconds === null ? COOLDOWN_MS : retryAfterSeconds * 1000);
    const nowMs = this.now();
    // All requests in flight through it come back refused: one cooldown, reported once.
    const coolingDown = managed.coolingDownUntilMs > nowMs;
    managed.coolingDownUntilMs = Math.max(managed.coolingDownUntilMs, nowMs + cooldownMs);
    if (!coolingDown) this.options.onCooldown?.(egress.name, cooldownMs);
  }

  /** Counts the verdict of an attempt. */
  recordVerdict(egress: Egress, use: EgressUse, verdict: AttemptVerdict): void {
    this.verdicts.inc({ exit: egress.name, use, finding: verdict });
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.egresses.map((egress) => egress.dispatcher.destroy()));
  }

  private registerMetrics(registry: Registry): Counter<'exit' | 'use' | 'finding'> {
    const { egresses, now } = this;
    const registers = [registry];
    new Gauge({
      name: 'ct_upstream_exit_resting',
      help: '1 while an egress cools down and is skipped.',
      labelNames: ['exit'],
      registers,
      collect() {
        for (const { name, coolingDownUntilMs } of egresses)
          this.set({ exit: name }, Number(coolingDownUntilMs > now()));
      },
    });
    new Gauge({
      name: 'ct_upstream_breaker_open',
      help: '1 while the breaker of an egress is open because the platform refuses it.',
      labelNames: ['exit', 'use'],
      registers,
      collect() {
        for (const { name, breakers } of egresses)
          for (const use of EGRESS_USES) this.set({ exit: name, use }, Number(breakers[use].open));
      },
    });
    const verdicts = new Counter({
      name: 'ct_upstream_exit_findings_total',
      help: 'Verdicts of attempts (one per channel or video and egress) about their egress.',
      labelNames: ['exit', 'use', 'finding'],
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const { name } of egresses)
      for (const use of EGRESS_USES)
        for (const finding of ATTEMPT_VERDICTS) verdicts.inc({ exit: name, use, finding }, 0);
    return verdicts;
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
