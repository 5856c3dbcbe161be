import type { ReadingContext } from '../platform/video-platform.js';

export interface SingleFlightResult<T> {
  value: T;
  /** True for the one waiter that the work counts for: the first that was still there when it succeeded. */
  owner: boolean;
}

interface Waiter<T> {
  context: ReadingContext;
  disconnect: () => void;
  resolve: (result: SingleFlightResult<T>) => void;
  reject: (reason: unknown) => void;
}

/** A piece of work in progress and those who wait for it, the oldest first. */
class Flight<T> implements ReadingContext {
  readonly waiters = new Set<Waiter<T>>();
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  landed = false;

  constructor(readonly fairnessKey: object) {}

  /** The latest deadline of those who wait: the work goes on for the most patient of them. */
  get deadlineAtMs(): number {
    return Math.max(...[...this.waiters].map((waiter) => waiter.context.deadlineAtMs));
  }
}

/**
 * Lets calls that need the same thing at the same time share the work for it. The oldest call that still waits owns the
 * result; a call that leaves hands over to the next; what nobody waits for is aborted. Each call keeps its own deadline.
 */
export class SingleFlight<T> {
  private readonly flights = new Map<string, Flight<T>>();

  /**
   * Waits for the work named `key`, starting it when nobody has.
   *
   * @param start does the work on behalf of all who wait
   * @param store stores what was made; runs once, after the owner is settled, so that leaving during it changes nothing
   * @throws the reason of `context.signal` when the call leaves, or what `start` threw
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
      void this.fly(key, flight, start, store);
    }
    return result;
  }

  private wait(key: string, flight: Flight<T>, context: ReadingContext): Promise<SingleFlightResult<T>> {
    return new Promise((resolve, reject) => {
      const disconnect = (): void => {
        // Once it has landed the owner is settled: leaving now must not make a paid result free.
        if (flight.landed) return;
        flight.waiters.delete(waiter);
        reject(asError(context.signal.reason));
        if (flight.waiters.size > 0) return;
        if (this.flights.get(key) === flight) this.flights.delete(key);
        flight.controller.abort(context.signal.reason);
      };
      const waiter: Waiter<T> = { context, disconnect, resolve, reject };
      flight.waiters.add(waiter);
      context.signal.addEventListener('abort', disconnect, { once: true });
    });
  }

  private async fly(
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
        flight.landed = true;
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
