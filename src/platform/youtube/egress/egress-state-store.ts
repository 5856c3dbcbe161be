import type { ReleaseClaim, SharedDocuments } from '../../../cache/shared-documents.js';
import { isObject } from '../response-parsing.js';
import { applyEgressEvent, PACED_KINDS, type EgressEvent, type EgressState } from './egress-state.js';
import type { PaceState } from './request-pace.js';
import type { StoredEgressState } from './stored-egress-state.js';

/**
 * The kind of key of the states. The number is that of their format: replicas of two releases that run side by side must not
 * replace each other's states.
 */
const STATE_KIND = 'egress-2';
/** Shortest interval between two exchanges; what other replicas did since is not known meanwhile. */
const EXCHANGE_INTERVAL_MS = 1_000;
/** Longer than any pause and than the memory of the last one. */
const TTL_MS = 48 * 3_600_000;
/** How long a claim outlasts the deadline of its probe, which a later caller can extend. That of a killed replica ends then. */
const PROBE_CLAIM_MARGIN_MS = 30_000;
const PROBE_CLAIM_MAX_MS = 600_000;

type Documents = Pick<SharedDocuments, 'configured' | 'keyOf' | 'update' | 'claim'>;

interface Shared {
  readonly key: string;
  readonly stored: StoredEgressState;
}

/**
 * Shares the states of the egresses with the other replicas, and with the next start of this process. Requests do not wait
 * for it: each replica decides by the state that it last read and adds its own events to the shared one in the background.
 * While Redis is unavailable, each continues with what it knows.
 */
export class EgressStateStore {
  private readonly shared: Shared[] = [];
  private timer: NodeJS.Timeout | undefined;
  private exchanging: Promise<void> | null = null;
  private exchangedAtMs = Number.NEGATIVE_INFINITY;
  private known = false;
  private closed = false;

  /** @param documents undefined, or not configured: nothing is shared */
  constructor(private readonly documents: Documents | undefined) {}

  /**
   * Shares a state from now on.
   *
   * @param name the same in every replica, such as the URL of a proxy; it is hashed before it leaves the process
   */
  add(name: string, stored: StoredEgressState): void {
    if (this.documents?.configured) this.shared.push({ key: this.documents.keyOf(STATE_KIND, name), stored });
  }

  /** To be called after each event: shares it within a second, and a change of the pause at once. */
  changed(event: EgressEvent): void {
    const counted = event.kind === 'sent' || event.kind === 'answered';
    this.schedule(counted ? EXCHANGE_INTERVAL_MS : 0);
  }

  /** To be awaited before an egress is chosen. Waits for Redis only until the states were read once. */
  async refresh(): Promise<void> {
    if (this.shared.length === 0 || this.closed) return;
    if (performance.now() - this.exchangedAtMs < EXCHANGE_INTERVAL_MS) {
      if (!this.known) await this.exchanging;
      return;
    }
    const exchanging = this.exchange();
    if (!this.known) await exchanging;
  }

  /**
   * Claims the probe of an egress.
   *
   * @param forMs until the deadline of the probe
   * @returns to be called when the probe has ended, so that one without a result is soon followed by another; null while
   *   another replica probes the egress
   */
  async claimProbe(name: string, forMs: number): Promise<ReleaseClaim | null> {
    const { documents } = this;
    if (!documents?.configured) return () => Promise.resolve();
    const ttlMs = Math.min(PROBE_CLAIM_MAX_MS, Math.max(0, forMs) + PROBE_CLAIM_MARGIN_MS);
    return documents.claim(documents.keyOf('egress-probe', name), ttlMs);
  }

  /** Reads and writes all states that changed. */
  exchange(): Promise<void> {
    this.exchangedAtMs = performance.now();
    this.exchanging ??= Promise.all(this.shared.map((one) => this.exchangeOne(one)))
      .then((results) => {
        this.known ||= results.every(Boolean);
      })
      .finally(() => {
        this.exchanging = null;
      });
    return this.exchanging;
  }

  /** Writes what remains. To be called before the connection to Redis closes. */
  async close(): Promise<void> {
    clearTimeout(this.timer);
    if (this.closed) return;
    this.closed = true;
    await this.exchanging;
    if (this.shared.some(({ stored }) => stored.hasPending)) await this.exchange();
  }

  private schedule(delayMs: number): void {
    if (this.shared.length === 0 || this.closed) return;
    if (delayMs > 0 && this.timer) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      // Events of an exchange that is running are part of the next one.
      void Promise.resolve(this.exchanging).then(() => this.exchange());
    }, delayMs).unref();
  }

  /** @returns whether Redis was available */
  private async exchangeOne({ key, stored }: Shared): Promise<boolean> {
    const events = stored.takePending();
    const base = stored.current;
    let reached = false;
    const written = await this.documents?.update(key, TTL_MS, (bytes) => {
      reached = true;
      const shared = bytes && readEgressState(bytes);
      // Without a stored state, that of this process is the best that is known; its events are part of it.
      const next = shared ? events.reduce(applyEgressEvent, shared) : base;
      return shared && events.length === 0 ? undefined : Buffer.from(JSON.stringify(next));
    });
    const state = written && readEgressState(written);
    if (state) stored.adopt(state);
    else stored.restorePending(events);
    return reached;
  }
}

/** Reads a state that another version may have written; undefined when a field is missing or has another type. */
export function readEgressState(bytes: Buffer): EgressState | undefined {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
  return isEgressState(value) ? value : undefined;
}

const PAUSE_NUMBERS = ['untilMs', 'pauseMs', 'probesRefused', 'measuredMs', 'measuredAtMs'] as const;
const PACE_NUMBERS: readonly (keyof PaceState)[] = [
  'burst',
  'available',
  'atMs',
  'answered',
  'sinceMs',
  'fullAtMs',
  'answeredSinceFull',
  'growthSeconds',
];

function isEgressState(value: unknown): value is EgressState {
  if (!isObject(value) || !isObject(value['pause']) || !isObject(value['paces'])) return false;
  const { pause, paces } = value;
  return (
    PAUSE_NUMBERS.every((name) => isFiniteNumber(pause[name])) &&
    (pause['openedAtMs'] === null || isFiniteNumber(pause['openedAtMs'])) &&
    isKindOrNull(pause['by']) &&
    isKindOrNull(pause['measuredBy']) &&
    PACED_KINDS.every((kind) => isPaceState(paces[kind]))
  );
}

function isKindOrNull(value: unknown): boolean {
  return value === null || PACED_KINDS.some((kind) => kind === value);
}

function isPaceState(value: unknown): boolean {
  if (!isObject(value)) return false;
  const rate = value['ratePerSecond'];
  return (
    PACE_NUMBERS.every((name) => isFiniteNumber(value[name])) && (rate === null || (isFiniteNumber(rate) && rate > 0))
  );
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
