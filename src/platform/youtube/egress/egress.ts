import type { Dispatcher } from 'undici';
import type { UseName } from './attempt.js';
import type { BudgetKind, Line } from './line.js';
import type { OptionalBackoff } from './optional-backoff.js';

/**
 * A network path to the platform: this machine's own address, a proxy, or a session of a gateway. Visitor data belongs to
 * one egress.
 */
export interface Egress {
  /** For logs and metrics: never the proxy's URL, which can contain a password. Sessions have the name of their gateway. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
  readonly uses: Readonly<Record<UseName, EgressUse>>;
  readonly optional: OptionalBackoff;
  /** The same for all sessions of a gateway; undefined for other egresses. */
  readonly gateway?: object;
  /** Keeps a session open until work has ended that does not end with its attempt. */
  keepOpen(work: Promise<unknown>): void;
}

/** A refusal, or a word that can be one, of which it is unknown whom it concerns: the video or channel, the client or the address. */
export interface Doubt {
  readonly kind: BudgetKind;
  /** Whose word it is about; null when any client that is served answers it. */
  readonly client: string | null;
  /** What is served to a request sent after this answers it, in milliseconds of `performance.now()`. */
  readonly sinceMs: number;
}

/**
 * Whom a doubt concerns. `served`: the video or channel, because another one is served. `unknown`: the control could not be
 * asked.
 */
export type Verdict = 'served' | 'client-refused' | 'address-refused' | 'unknown';

/**
 * One use (videos or channels) of one egress: its requests (`line`), and what is known of its address. The sessions of a
 * gateway share their line, and each has an address of its own.
 */
export class EgressUse {
  /** What was doubted since a request of the kind was served: the first video or channel, whether others were, and with which clients. */
  private readonly doubted = new Map<BudgetKind, { first: string; isOne: boolean; clients: Set<string> }>();
  /** When the newest request that was served was sent, by kind and client. */
  private readonly servedAtMs = new Map<string, number>();
  /** When a control of a client was refused. */
  private readonly refusedAtMs = new Map<string, number>();
  /** How many wait for a verdict. */
  private waiting = 0;
  /** The experiment that runs, for all who wait. */
  running: { readonly doubt: Doubt; readonly verdict: Promise<Verdict> } | null = null;

  /** @param isAlone whether the line is of this address alone: then its requests say something, and it can be held */
  constructor(
    readonly line: Line,
    private readonly isAlone: boolean,
  ) {}

  /** A request was served, which answers the doubts since it was sent. */
  served(kind: BudgetKind, client: string, sentAtMs: number): void {
    this.doubted.delete(kind);
    for (const key of [keyOf(kind, client), keyOf(kind, null)])
      this.servedAtMs.set(key, Math.max(sentAtMs, this.servedAtMs.get(key) ?? -Infinity));
    this.changed();
  }

  /** The control of a client was refused while another was served. */
  clientRefused(kind: BudgetKind, client: string): void {
    this.refusedAtMs.set(keyOf(kind, client), performance.now());
  }

  /** A channel or video is doubted. @returns whether it is the only one since a request of the kind was served */
  doubt(kind: BudgetKind, subject: string, client: string): boolean {
    const doubted = this.doubted.get(kind) ?? { first: subject, isOne: true, clients: new Set() };
    this.doubted.set(kind, doubted);
    doubted.isOne &&= doubted.first === subject;
    doubted.clients.add(client);
    this.changed();
    return doubted.isOne;
  }

  /** Whether a channel or video was doubted with a client, or with any, and no request of the kind was served since. */
  isDoubted(kind: BudgetKind, client?: string): boolean {
    const doubted = this.doubted.get(kind);
    return doubted !== undefined && (client === undefined || doubted.clients.has(client));
  }

  /** What is known about a doubt without an experiment; null for nothing. */
  verdictOn({ kind, client, sinceMs }: Doubt): Verdict | null {
    if (this.line.paused) return 'address-refused';
    if (this.isServed({ kind, client, sinceMs })) return 'served';
    return (this.refusedAtMs.get(keyOf(kind, client)) ?? -Infinity) >= sinceMs ? 'client-refused' : null;
  }

  isServed({ kind, client, sinceMs }: Doubt): boolean {
    return (this.servedAtMs.get(keyOf(kind, client)) ?? -Infinity) >= sinceMs;
  }

  /** Whether requests of others are in flight through this address or will be sent, whose responses answer a doubt at no cost. */
  get areOthersSent(): boolean {
    const { line } = this;
    return this.isAlone && (line.running > 0 || (line.waiting > 0 && !line.held));
  }

  /** Holds back what has not started from the second doubted video or channel in a row on, while somebody waits for a verdict. */
  async whileWaiting<T>(work: () => Promise<T>): Promise<T> {
    this.waiting += 1;
    this.changed();
    try {
      return await work();
    } finally {
      this.waiting -= 1;
      this.changed();
    }
  }

  /** Something has changed that a wait for a verdict goes by. */
  changed(): void {
    const areSeveral = [...this.doubted.values()].some(({ isOne }) => !isOne);
    if (this.isAlone) this.line.held = this.waiting > 0 && areSeveral;
    this.line.notify();
  }
}

function keyOf(kind: BudgetKind, client: string | null): string {
  return `${kind} ${client ?? '*'}`;
}
