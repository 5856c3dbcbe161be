import type { ReadingContext } from '../platform/video-platform.js';

interface SingleFlightResult<T> {
  value: T;
  /** True for one waiter, which pays for the work: the oldest that was still waiting when it succeeded. */
  owner: boolean;
}

interface Waiter<T> {
  context: ReadingContext;
  disconnect: () => void;
  resolve: (result: SingleFlightResult<T>) => void;
  reject: (reason: unknown) => void;
}

/** Work in progress and its waiters, the oldest first. */
class Flight<T> implements ReadingContext {
  readonly waiters = new Set<Waiter<T>>();
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  succeeded = false;
  requested = false;

  constructor(readonly fairnessKey: object) {}

  /** The latest deadline of all waiters. */
  get deadlineAtMs(): number {
    return Math.max(...[...this.waiters].map((waiter) => waiter.context.deadlineAtMs));
  }

  readonly onRequest = (): void => {
    this.requested = true;
    for (const { context } of this.waiters) context.onRequest?.();
  };

  /** While no call waits, only jobs. */
  get background(): boolean {
    for (const { context } of this.waiters) if (context.background !== true) return false;
    return this.waiters.size > 0;
  }
}

/**
 * Shares work among concurrent calls that need the same result. The oldest waiting call owns the result; when it
 * disconnects, ownership passes to the next. Work without a waiting call is aborted. Each call keeps its own deadline.
 */
export class SingleFlight<T> {
  private readonly flights = new Map<string, Flight<T>>();

  /**
   * Waits for the work identified by `key`, and starts it unless it is running.
   *
   * @param start does the work, in the context of all waiters
   * @param store stores the result; runs once, after the owner is decided, so that a disconnect during it changes nothing
   * @throws the reason of `context.signal` when that is aborted first, or what `start` threw
   */
  join(
    key: string,
    context: ReadingContext,
    start: (context: ReadingContext) => Promise<T>,
    store: (value: T) => Promise<void>,
  ): Promise<SingleFlightResult<T>> {
    if (context.signal.aborted) return Promise.reject(asError(context.signal.reason));
    const known = this.flights.get(key);
    const flight = known ?? new Flight<T>(context.fairnessKey);
    const result = this.wait(key, flight, context);
    if (!known) {
      this.flights.set(key, flight);
      void this.run(key, flight, start, store);
    }
    return result;
  }

  private wait(key: string, flight: Flight<T>, context: ReadingContext): Promise<SingleFlightResult<T>> {
    return new Promise((resolve, reject) => {
      const disconnect = (): void => {
        // The owner is decided once the work has succeeded: a disconnect must not make a paid result free.
        if (flight.succeeded) return;
        flight.waiters.delete(waiter);
        reject(asError(context.signal.reason));
        if (flight.waiters.size > 0) return;
        if (this.flights.get(key) === flight) this.flights.delete(key);
        flight.controller.abort(context.signal.reason);
      };
      const waiter: Waiter<T> = { context, disconnect, resolve, reject };
      flight.waiters.add(waiter);
      if (flight.requested) context.onRequest?.();
      context.signal.addEventListener('abort', disconnect, { once: true });
    });
  }

  private async run(
    key: string,
    flight: Flight<T>,
    start: (context: ReadingContext) => Promise<T>,
    store: (value: T) => Promise<void>,
  ): Promise<void> {
    let finish: (waiter: Waiter<T>, owner: boolean) => void;
    try {
      const value = await start(flight);
      finish = (waiter, owner) => waiter.resolve({ value, owner });
      if (flight.waiters.size > 0) {
        flight.succeeded = true;
        await store(value);
      }
    } catch (error) {
      finish = (waiter) => waiter.reject(error);
    }
    if (this.flights.get(key) === flight) this.flights.delete(key);
    let owner = true;
    for (const waiter of flight.waiters) {
      waiter.context.signal.removeEventListener('abort', waiter.disconnect);
      finish(waiter, owner);
      owner = false;
    }
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
