import { setImmediate } from 'node:timers/promises';
import { withTimeout } from '../../../domain/with-timeout.js';
import type { ReadingContext } from '../../video-platform.js';
import { unlessAborted } from '../unless-aborted.js';
import type { BudgetKind, EgressGate } from './egress-gate.js';
import type { RequestQueue } from './request-queue.js';

/** How long an examination waits for requests of others that are or will be sent, whose responses answer it at no cost. */
const OTHERS_WAIT_MS = 30_000;
/** The time for a control before the deadline. */
const CONTROL_MS = 5_000;

/** What the control found out. `unknown`: it could not be asked. */
export type Finding = 'served' | 'client-refused' | 'address-refused' | 'unknown';

/** A doubt about an address. */
export interface Doubt {
  readonly kind: BudgetKind;
  /** Whose word it is about; null when any client that is served answers it. */
  readonly client: string | null;
  /** What is served to a request sent after this answers it, in milliseconds of `performance.now()`. */
  readonly sinceMs: number;
}

/**
 * Finds out about one address whom a refusal concerns. A refusal, and the word "unavailable", can be about the video, the
 * client or the address, and no wording tells which. What tells is a request for something that is known to be served: one of
 * another caller that was sent later, which costs nothing, or else a control (`askControl`). Until then nobody else is
 * affected, unless a second channel or video in a row is refused: then what has not started waits for the result.
 */
export class Examination {
  /** The channels or videos that were doubted since a request of the kind was served, and the clients that they were asked with. */
  private readonly doubted = new Map<BudgetKind, { subjects: Set<string>; clients: Set<string> }>();
  /** When the newest request that was served was sent, by kind and client. */
  private readonly servedAtMs = new Map<string, number>();
  /** When a control of a client was refused. */
  private readonly refusedAtMs = new Map<string, number>();
  private running: { doubt: Doubt; finding: Promise<Finding> } | null = null;
  private open = 0;
  private readonly listeners = new Set<() => void>();

  /**
   * @param holds whether the gate is of this address alone: then its requests in flight say something, and it can be held
   * @param now milliseconds of the clock of deadlines
   */
  constructor(
    private readonly gate: EgressGate,
    private readonly queue: RequestQueue,
    private readonly holds: boolean,
    private readonly now: () => number = () => performance.now(),
  ) {
    if (holds) gate.requestEnded = () => this.changed();
  }

  served(kind: BudgetKind, client: string, sentAtMs: number): void {
    this.doubted.delete(kind);
    for (const key of [budgetKey(kind, client), budgetKey(kind, null)])
      this.servedAtMs.set(key, Math.max(sentAtMs, this.servedAtMs.get(key) ?? -Infinity));
    this.changed();
  }

  /** A channel or video is doubted. @returns whether it is the only one since a request of the kind was served */
  doubt(kind: BudgetKind, subject: string, client: string): boolean {
    const doubted = this.doubted.get(kind) ?? { subjects: new Set(), clients: new Set() };
    this.doubted.set(kind, doubted);
    doubted.subjects.add(subject);
    doubted.clients.add(client);
    this.changed();
    return doubted.subjects.size === 1;
  }

  /** Whether a client was refused since a request of the kind was served. */
  isClientDoubted(kind: BudgetKind, client: string): boolean {
    return this.doubted.get(kind)?.clients.has(client) === true;
  }

  /** Whether a channel or video was doubted, and no request of the kind was served since. */
  isDoubted(kind: BudgetKind): boolean {
    return this.doubted.has(kind);
  }

  isServed({ kind, client, sinceMs }: Doubt): boolean {
    return (this.servedAtMs.get(budgetKey(kind, client)) ?? -Infinity) >= sinceMs;
  }

  /**
   * Settles a doubt. One experiment runs at a time, for all who wait. Rejects only when the signal of the context is aborted.
   *
   * @param experiment asks the control; it reports `served` and `clientRefused` itself, and pauses the gate
   */
  async settle(
    doubt: Doubt,
    { signal, deadlineAtMs }: Pick<ReadingContext, 'signal' | 'deadlineAtMs'>,
    experiment: () => Promise<Finding>,
  ): Promise<Finding> {
    const othersUntilMs = Math.min(this.now() + OTHERS_WAIT_MS, deadlineAtMs - CONTROL_MS);
    let isQuiet = false;
    this.open += 1;
    this.changed();
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.gate.paused) return 'address-refused';
        if (this.isServed(doubt)) return 'served';
        if ((this.refusedAtMs.get(budgetKey(doubt.kind, doubt.client)) ?? -Infinity) >= doubt.sinceMs)
          return 'client-refused';
        const nowMs = this.now();
        if (nowMs >= deadlineAtMs) return 'unknown';
        if (this.running) {
          const { kind, client } = this.running.doubt;
          const finding = await unlessAborted(this.running.finding, signal);
          // What was served before this doubt does not answer it, and neither does another refusal of a client.
          const isAlike = kind === doubt.kind && client === doubt.client;
          if (finding !== 'served' && (finding !== 'client-refused' || isAlike)) return finding;
        } else if (nowMs < othersUntilMs && this.areOthersSent) {
          await unlessAborted(withTimeout(this.change(), othersUntilMs - nowMs), signal);
          isQuiet = false;
        } else if (!isQuiet) {
          // What just arrived is read first: it may be the answer, or name another client that is refused.
          await setImmediate();
          isQuiet = true;
        } else {
          const finding = experiment().finally(() => {
            this.running = null;
            this.changed();
          });
          this.running = { doubt, finding };
        }
      }
    } finally {
      this.open -= 1;
      this.changed();
    }
  }

  /** The control of a client was refused while another was served. */
  clientRefused(kind: BudgetKind, client: string): void {
    this.refusedAtMs.set(budgetKey(kind, client), this.now());
  }

  /** Whether requests of others are in flight through this address or will be sent. */
  private get areOthersSent(): boolean {
    const { line, held } = this.gate;
    return this.holds && (line.running > 0 || (line.waiting > 0 && !held));
  }

  private change(): Promise<void> {
    return new Promise((resolve) => this.listeners.add(resolve));
  }

  /** Something that an examination waits for may have changed. */
  private changed(): void {
    const inARow = Math.max(0, ...[...this.doubted.values()].map(({ subjects }) => subjects.size));
    const held = this.holds && this.open > 0 && inARow >= 2;
    if (held !== this.gate.held) {
      this.gate.held = held;
      if (!held) this.queue.startNext();
    }
    const listeners = [...this.listeners];
    this.listeners.clear();
    for (const resolve of listeners) resolve();
  }
}

function budgetKey(kind: BudgetKind, client: string | null): string {
  return `${kind} ${client ?? '*'}`;
}
