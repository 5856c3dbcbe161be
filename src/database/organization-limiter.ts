import type { DataSource } from 'typeorm';
import { DatabaseBusyError } from './database-errors.js';

/** How many tasks of one key may run at a time. */
export interface KeyedLimits {
  readonly concurrencyMax: number;
  /** Applies while the tasks of the key are slow, which means that they wait for a lock. */
  readonly concurrencyMaxWhenSlow: number;
  /** A task that takes longer than this is slow. */
  readonly slowMs: number;
}

/**
 * How many of the pool's ten connections one organization may use. The organization's lock is normally held for about a
 * millisecond, so a burst benefits from many connections; while another process holds the lock, further connections would
 * only wait for it, and other organizations need them.
 */
const ORGANIZATION_LIMITS: KeyedLimits = { concurrencyMax: 6, concurrencyMaxWhenSlow: 2, slowMs: 500 };

interface RunningTask {
  readonly startedAtMs: number;
}

interface Queue {
  /** The oldest first. */
  readonly running: Set<RunningTask>;
  /** Starts the waiting tasks, in order of arrival. */
  readonly waiting: Set<() => void>;
  lastWasSlow: boolean;
}

/** Limits how many tasks of one key run at a time; the others wait in order of arrival. */
export class KeyedLimiter {
  private readonly queues = new Map<string, Queue>();

  constructor(private readonly limits: KeyedLimits) {}

  /**
   * Runs a task as soon as the limit allows.
   *
   * @param signal ends the wait with its reason; a running task is not interrupted
   */
  async run<T>(key: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const queue = this.queues.get(key) ?? {
      running: new Set<RunningTask>(),
      waiting: new Set<() => void>(),
      lastWasSlow: false,
    };
    this.queues.set(key, queue);
    const running = queue.waiting.size === 0 && this.hasRoom(queue) ? start(queue) : await waitIn(queue, signal);
    try {
      return await task();
    } finally {
      queue.running.delete(running);
      queue.lastWasSlow = this.isSlow(running);
      for (const startNext of queue.waiting) {
        if (!this.hasRoom(queue)) break;
        queue.waiting.delete(startNext);
        startNext();
      }
      if (queue.running.size === 0 && queue.waiting.size === 0) this.queues.delete(key);
    }
  }

  /** The number of keys with running or waiting tasks. */
  get size(): number {
    return this.queues.size;
  }

  private hasRoom({ running, lastWasSlow }: Queue): boolean {
    const [oldest] = running;
    const slow = lastWasSlow || (oldest !== undefined && this.isSlow(oldest));
    return running.size < (slow ? this.limits.concurrencyMaxWhenSlow : this.limits.concurrencyMax);
  }

  private isSlow({ startedAtMs }: RunningTask): boolean {
    return performance.now() - startedAtMs > this.limits.slowMs;
  }
}

function start({ running }: Queue): RunningTask {
  const task = { startedAtMs: performance.now() };
  running.add(task);
  return task;
}

function waitIn(queue: Queue, signal: AbortSignal): Promise<RunningTask> {
  return new Promise((resolve, reject) => {
    const proceed = (): void => {
      signal.removeEventListener('abort', abort);
      // Started synchronously, so that no other task takes the same slot.
      resolve(start(queue));
    };
    const abort = (): void => {
      queue.waiting.delete(proceed);
      reject(signal.reason as Error);
    };
    queue.waiting.add(proceed);
    signal.addEventListener('abort', abort, { once: true });
  });
}

const limiters = new WeakMap<object, KeyedLimiter>();

/** The same as the timeout for acquiring a connection. */
const WAIT_MAX_MS = 2_000;

/**
 * Runs a task that takes an organization's lock. A task over the organization's limit waits without using a connection.
 *
 * @param signal ends the wait with its reason
 * @throws what the task throws, and DatabaseBusyError when the wait takes too long
 */
export function withOrganizationSlot<T>(
  database: Pick<DataSource, 'query'>,
  organizationId: string,
  task: () => Promise<T>,
  signal = busyAfter(WAIT_MAX_MS),
): Promise<T> {
  const limiter = limiters.get(database) ?? new KeyedLimiter(ORGANIZATION_LIMITS);
  limiters.set(database, limiter);
  return limiter.run(organizationId, signal, task);
}

function busyAfter(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new DatabaseBusyError()), ms).unref();
  return controller.signal;
}
