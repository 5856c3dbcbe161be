import type { DataSource } from 'typeorm';
import { DatabaseBusyError } from './database-errors.js';

/** How much of one key may run at once. */
export interface TurnLimits {
  readonly atOnce: number;
  /** How much while its work takes long, which is when it waits for a lock that somebody holds. */
  readonly atOnceWhenSlow: number;
  readonly slowMs: number;
}

/**
 * How many of a process's ten connections may work for one organization. The lock of an organization is held for a
 * millisecond usually, and a burst of its calls is served best by many; but while it is held elsewhere they would only
 * wait, and the others of the pool remain for other organizations.
 */
const OF_ORGANIZATION: TurnLimits = { atOnce: 6, atOnceWhenSlow: 2, slowMs: 500 };

/** A piece of work that runs. */
interface Place {
  readonly begunAtMs: number;
}

interface Line {
  /** The oldest first. */
  readonly running: Set<Place>;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
  lastWasSlow: boolean;
}

/** Lets only so much work of one key run at a time; the rest waits in line. */
export class Turns {
  private readonly lines = new Map<string, Line>();

  constructor(private readonly limits: TurnLimits) {}

  /**
   * Runs the work when its turn comes.
   *
   * @param signal ends the wait, with its reason; work that has begun is not ended
   */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const line = this.lines.get(key) ?? {
      running: new Set<Place>(),
      waiting: new Set<() => void>(),
      lastWasSlow: false,
    };
    this.lines.set(key, line);
    const place = line.waiting.size === 0 && this.hasRoom(line) ? begin(line) : await waitIn(line, signal);
    try {
      return await work();
    } finally {
      line.running.delete(place);
      line.lastWasSlow = this.isSlow(place);
      for (const next of line.waiting) {
        if (!this.hasRoom(line)) break;
        line.waiting.delete(next);
        next();
      }
      if (line.running.size === 0 && line.waiting.size === 0) this.lines.delete(key);
    }
  }

  /** How many keys have work that runs or waits. */
  get size(): number {
    return this.lines.size;
  }

  private hasRoom({ running, lastWasSlow }: Line): boolean {
    const [oldest] = running;
    const slow = lastWasSlow || (oldest !== undefined && this.isSlow(oldest));
    return running.size < (slow ? this.limits.atOnceWhenSlow : this.limits.atOnce);
  }

  private isSlow({ begunAtMs }: Place): boolean {
    return performance.now() - begunAtMs > this.limits.slowMs;
  }
}

function begin({ running }: Line): Place {
  const place = { begunAtMs: performance.now() };
  running.add(place);
  return place;
}

function waitIn(line: Line, signal: AbortSignal): Promise<Place> {
  return new Promise((resolve, reject) => {
    const called = (): void => {
      signal.removeEventListener('abort', aborted);
      // At once, so that no other takes the same place.
      resolve(begin(line));
    };
    const aborted = (): void => {
      line.waiting.delete(called);
      reject(signal.reason as Error);
    };
    line.waiting.add(called);
    signal.addEventListener('abort', aborted, { once: true });
  });
}

const turnsOf = new WeakMap<object, Turns>();

/** As long as for a connection. */
const WAIT_MS = 2_000;

/**
 * Runs work that needs the lock of an organization, or of rows of its own, and a connection to wait for it with. Until its
 * turn it waits without a connection.
 *
 * @param signal ends the wait for the turn, with its reason
 * @throws what the work throws, and DatabaseBusyError when the turn does not come in time
 */
export function inOrganizationTurn<T>(
  database: Pick<DataSource, 'query'>,
  organizationId: string,
  work: () => Promise<T>,
  signal = busyAfter(WAIT_MS),
): Promise<T> {
  const turns = turnsOf.get(database) ?? new Turns(OF_ORGANIZATION);
  turnsOf.set(database, turns);
  return turns.run(organizationId, signal, work);
}

function busyAfter(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new DatabaseBusyError()), ms).unref();
  return controller.signal;
}
