import type { DataSource } from 'typeorm';
import { DatabaseBusyError } from './database-errors.js';

/**
 * How many connections of a process may work for one organization at a time. They wait for one lock, so more would not be
 * faster; and while that lock is held elsewhere, the others of the pool remain for other organizations.
 */
const CONNECTIONS_PER_ORGANIZATION = 2;

interface Line {
  working: number;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
}

/** Lets only so many pieces of work of one key run at a time; the others wait in line. */
export class Turns {
  private readonly lines = new Map<string, Line>();

  constructor(private readonly atOnce: number) {}

  /**
   * Runs the work when its turn comes.
   *
   * @param signal ends the wait, with its reason; work that has begun is not ended
   */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const line = this.lines.get(key) ?? { working: 0, waiting: new Set() };
    this.lines.set(key, line);
    if (line.working < this.atOnce) line.working += 1;
    else await waitIn(line, signal);
    try {
      return await work();
    } finally {
      this.endTurn(key, line);
    }
  }

  /** How many keys have work that runs or waits. */
  get size(): number {
    return this.lines.size;
  }

  private endTurn(key: string, line: Line): void {
    const [next] = line.waiting;
    if (next) {
      line.waiting.delete(next);
      next();
      return;
    }
    line.working -= 1;
    if (line.working === 0) this.lines.delete(key);
  }
}

function waitIn(line: Line, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const called = (): void => {
      signal.removeEventListener('abort', aborted);
      resolve();
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
  const turns = turnsOf.get(database) ?? new Turns(CONNECTIONS_PER_ORGANIZATION);
  turnsOf.set(database, turns);
  return turns.run(organizationId, signal, work);
}

function busyAfter(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new DatabaseBusyError()), ms).unref();
  return controller.signal;
}
