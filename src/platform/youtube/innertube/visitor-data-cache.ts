import type { YoutubeClient } from '../../../config/environment.js';
import type { Egress } from '../egress/egress.js';

/** A day is well within the lifetime of issued visitor data (months, by the cookie of the same content). */
const AGE_MAX_MS = 24 * 3_600_000;
/** Shortest pause between two replacements, so that a blocked egress does not try new data for every video. */
const RENEWAL_PAUSE_MS = 30_000;
/** Rejected data that is remembered for each client of an egress: what a few hours of blocks bring. */
const REJECTED_MAX = 32;

/** The visitor data of one request and of its response; null where there was none. */
export interface VisitorExchange {
  sent: string | null;
  offered: string | null;
}

interface CachedVisitorData {
  /** Resolves to issued data, or to null when none was issued; never rejects. */
  value: Promise<string | null>;
  /** The resolved value; undefined while it is requested. */
  current: string | null | undefined;
  sinceMs: number;
  invalidated: boolean;
}

interface ClientVisitorData {
  cached: CachedVisitorData;
  readonly rejected: Set<string>;
  adoptedAtMs: number;
}

/**
 * The visitor data of each egress and client, always issued by the platform, which accepts locally generated data less
 * readily. It is requested once and cached. When none was issued, requests send none and that of their first response is
 * adopted. After a bot check, the data in its response is adopted: the platform accepts it more readily than another client
 * without (reported in August 2026).
 */
export class VisitorDataCache {
  private readonly byEgress = new WeakMap<Egress, Map<YoutubeClient, ClientVisitorData>>();

  /** @param requestIssued requests visitor data from the platform; null when it issued none. May reject. */
  constructor(
    private readonly requestIssued: (egress: Egress, client: YoutubeClient) => Promise<string | null>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * The data to send, or null to send none. Concurrent callers share one request, which continues when one of them
   * disconnects.
   */
  async get(egress: Egress, client: YoutubeClient, signal: AbortSignal): Promise<string | null> {
    const clients = this.byEgress.get(egress) ?? new Map<YoutubeClient, ClientVisitorData>();
    this.byEgress.set(egress, clients);
    let entry = clients.get(client);
    if (!entry) {
      entry = { cached: this.request(egress, client), rejected: new Set(), adoptedAtMs: Number.NEGATIVE_INFINITY };
      clients.set(client, entry);
    } else if (this.isDue(entry.cached)) entry.cached = this.request(egress, client);
    return unlessAborted(entry.cached.value, signal);
  }

  /** Adopts the data of a response to a request that sent none. */
  adoptFirst(egress: Egress, client: YoutubeClient, { sent, offered }: VisitorExchange): void {
    const entry = this.byEgress.get(egress)?.get(client);
    if (sent === null && offered !== null && entry?.cached.current === null) this.adopt(entry, offered);
  }

  /**
   * Marks the data of a request that the platform refused as rejected, and replaces it by that of the response unless that
   * was rejected before.
   *
   * @returns whether other data is available than was sent
   */
  replace(egress: Egress, client: YoutubeClient, { sent, offered }: VisitorExchange): boolean {
    const entry = this.byEgress.get(egress)?.get(client);
    if (!entry) return false;
    if (sent !== null) remember(entry.rejected, sent);
    const { current } = entry.cached;
    // Another request has replaced it meanwhile, or requests a replacement.
    if (current !== sent) return current === undefined || (current !== null && !entry.rejected.has(current));
    const pausing = this.now() - entry.adoptedAtMs < RENEWAL_PAUSE_MS;
    if (offered !== null && !entry.rejected.has(offered) && !pausing) {
      this.adopt(entry, offered);
      return true;
    }
    entry.cached.invalidated = true;
    return false;
  }

  private adopt(entry: ClientVisitorData, offered: string): void {
    const nowMs = this.now();
    entry.adoptedAtMs = nowMs;
    entry.cached = { value: Promise.resolve(offered), current: offered, sinceMs: nowMs, invalidated: false };
  }

  private isDue({ sinceMs, invalidated, current }: CachedVisitorData): boolean {
    const ageMs = this.now() - sinceMs;
    return ageMs > AGE_MAX_MS || (ageMs > RENEWAL_PAUSE_MS && (invalidated || current === null));
  }

  private request(egress: Egress, client: YoutubeClient): CachedVisitorData {
    const cached: CachedVisitorData = {
      value: Promise.resolve(null),
      current: undefined,
      sinceMs: this.now(),
      invalidated: false,
    };
    const request = async (): Promise<string | null> => this.requestIssued(egress, client);
    cached.value = request()
      .catch(() => null)
      .then((issued) => (cached.current = issued));
    return cached;
  }
}

function remember(rejected: Set<string>, value: string): void {
  rejected.add(value);
  const [oldest] = rejected;
  if (rejected.size > REJECTED_MAX && oldest !== undefined) rejected.delete(oldest);
}

/** Waits for a promise that never rejects, unless the signal is aborted first. */
export function unlessAborted<T>(value: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    void value.then((result) => {
      signal.removeEventListener('abort', abort);
      resolve(result);
    });
  });
}
