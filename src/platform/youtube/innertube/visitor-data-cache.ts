import type { InnertubeClientName } from './request-templates.js';
import type { Egress } from '../egress/egress-pool.js';

/** A day is well within the life of what the platform issues (months, by its cookie of the same content). */
const AGE_MAX_MS = 24 * 3_600_000;
/** How soon after an attempt the next one is made: a blocked exit is not asked for a new identity per video. */
const RENEWAL_PAUSE_MS = 30_000;

interface CachedVisitorData {
  /** Settles with what to use, issued or local; it never rejects. */
  value: Promise<string>;
  requestedAtMs: number;
  issued: boolean;
  invalidated: boolean;
}

/**
 * Each exit's and client's visitor data. One issued by the platform is accepted more readily than a local one, so it is
 * asked for once and kept; while none can be had the local one has to do.
 */
export class VisitorDataCache {
  private readonly cached = new WeakMap<Egress, Map<InnertubeClientName, CachedVisitorData>>();

  /**
   * @param ask asks the platform; null when it gave none. May reject.
   * @param local makes one without asking
   */
  constructor(
    private readonly ask: (egress: Egress, client: InnertubeClientName) => Promise<string | null>,
    private readonly local: () => string,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** What to send. Callers that come at once share one request, which goes on for the others when one of them leaves. */
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

  /** Says that the platform took the holder for a machine: the next caller asks for a new one. */
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
    const asked = async (): Promise<string | null> => this.ask(egress, client);
    cached.value = asked()
      .catch(() => null)
      .then((issued) => {
        cached.issued = issued !== null;
        return issued ?? this.local();
      });
    return cached;
  }
}

/** Waits for a promise that never rejects, but not longer than the caller does. */
function unlessAborted<T>(value: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    signal.addEventListener('abort', leave, { once: true });
    void value.then((result) => {
      signal.removeEventListener('abort', leave);
      resolve(result);
    });
  });
}
