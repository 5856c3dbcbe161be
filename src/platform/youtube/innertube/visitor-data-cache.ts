import type { InnertubeClientName } from './request-templates.js';
import type { Exit } from '../egress/egress-pool.js';

/** A day is well within the life of what the platform issues (months, by its cookie of the same content). */
const AGE_MAX_MS = 24 * 3_600_000;
/** How soon after an attempt the next one is made: a blocked exit is not asked for a new identity per video. */
const RENEWAL_PAUSE_MS = 30_000;

interface Held {
  /** Settles with what to use, issued or local; it never rejects. */
  value: Promise<string>;
  askedAtMs: number;
  issued: boolean;
  spoilt: boolean;
}

/**
 * Each exit's and client's visitor data. One issued by the platform is accepted more readily than a local one, so it is
 * asked for once and kept; while none can be had the local one has to do.
 */
export class VisitorDesk {
  private readonly held = new WeakMap<Exit, Map<InnertubeClientName, Held>>();

  /**
   * @param ask asks the platform; null when it gave none. May reject.
   * @param local makes one without asking
   */
  constructor(
    private readonly ask: (exit: Exit, client: InnertubeClientName) => Promise<string | null>,
    private readonly local: () => string,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** What to send. Callers that come at once share one request, which goes on for the others when one of them leaves. */
  async get(exit: Exit, client: InnertubeClientName, signal: AbortSignal): Promise<string> {
    const clients = this.held.get(exit) ?? new Map<InnertubeClientName, Held>();
    this.held.set(exit, clients);
    let held = clients.get(client);
    if (!held || this.isDue(held)) {
      held = this.request(exit, client);
      clients.set(client, held);
    }
    return unlessAborted(held.value, signal);
  }

  /** Says that the platform took the holder for a machine: the next caller asks for a new one. */
  spoil(exit: Exit, client: InnertubeClientName): void {
    const held = this.held.get(exit)?.get(client);
    if (held) held.spoilt = true;
  }

  private isDue(held: Held): boolean {
    const ageMs = this.now() - held.askedAtMs;
    return ageMs > AGE_MAX_MS || (ageMs > RENEWAL_PAUSE_MS && (held.spoilt || !held.issued));
  }

  private request(exit: Exit, client: InnertubeClientName): Held {
    const held: Held = { value: Promise.resolve(''), askedAtMs: this.now(), issued: true, spoilt: false };
    const asked = async (): Promise<string | null> => this.ask(exit, client);
    held.value = asked()
      .catch(() => null)
      .then((issued) => {
        held.issued = issued !== null;
        return issued ?? this.local();
      });
    return held;
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
