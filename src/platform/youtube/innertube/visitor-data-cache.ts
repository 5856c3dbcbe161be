import type { InnertubeClientName } from './request-templates.js';
import type { Egress } from '../egress/egress.js';

/** A day is well within the lifetime of issued visitor data (months, by the cookie of the same content). */
const AGE_MAX_MS = 24 * 3_600_000;
/** Shortest pause between two requests, so that a blocked egress does not request new data for every video. */
const RENEWAL_PAUSE_MS = 30_000;

interface CachedVisitorData {
  /** Resolves to issued or local data; never rejects. */
  value: Promise<string>;
  requestedAtMs: number;
  issued: boolean;
  invalidated: boolean;
}

/**
 * The visitor data of each egress and client. Data that the platform issued is accepted more readily than locally generated
 * data, so it is requested once and cached; local data is the fallback.
 */
export class VisitorDataCache {
  private readonly cached = new WeakMap<Egress, Map<InnertubeClientName, CachedVisitorData>>();

  /**
   * @param requestIssued requests visitor data from the platform; null when it issued none. May reject.
   * @param local generates visitor data
   */
  constructor(
    private readonly requestIssued: (egress: Egress, client: InnertubeClientName) => Promise<string | null>,
    private readonly local: () => string,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The data to send. Concurrent callers share one request, which continues when one of them disconnects. */
  async get(egress: Egress, client: InnertubeClientName, signal: AbortSignal): Promise<string> {
    const clients = this.cached.get(egress) ?? new Map<InnertubeClientName, CachedVisitorData>();
    this.cached.set(egress, clients);
    let cached = clients.get(client);
    if (!cached || this.isDue(cached)) {
      cached = this.request(egress, client);
      clients.set(client, cached);
    }
    return unlessAborted(cached.value, signal);
  }

  /** Marks data that the platform rejected with a bot check: the next caller requests new data. */
  invalidate(egress: Egress, client: InnertubeClientName): void {
    const cached = this.cached.get(egress)?.get(client);
    if (cached) cached.invalidated = true;
  }

  private isDue(cached: CachedVisitorData): boolean {
    const ageMs = this.now() - cached.requestedAtMs;
    return ageMs > AGE_MAX_MS || (ageMs > RENEWAL_PAUSE_MS && (cached.invalidated || !cached.issued));
  }

  private request(egress: Egress, client: InnertubeClientName): CachedVisitorData {
    const cached: CachedVisitorData = {
      value: Promise.resolve(''),
      requestedAtMs: this.now(),
      issued: true,
      invalidated: false,
    };
    const request = async (): Promise<string | null> => this.requestIssued(egress, client);
    cached.value = request()
      .catch(() => null)
      .then((issued) => {
        cached.issued = issued !== null;
        return issued ?? this.local();
      });
    return cached;
  }
}

/** Waits for a promise that never rejects, unless the signal is aborted first. */
function unlessAborted<T>(value: Promise<T>, signal: AbortSignal): Promise<T> {
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
