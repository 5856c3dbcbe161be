import type { ReadingContext } from '../../platform/video-platform.js';

interface SingleFlightResult<T> {
  value: T;
  /** True for one waiter, which pays for the work: the oldest that was still waiting when it succeeded. */
  owner: boolean;
}

/** Work in progress, in the context of all that wait for it. */
class Flight<T> implements ReadingContext {
  /** The oldest first. */
  readonly waiters = new Set<{ context: ReadingContext }>();
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  result: Promise<T> | undefined;
  succeeded = false;
  requested = false;

  constructor(
    readonly organizationId: string,
    readonly fairnessKey: object,
  ) {}

  get deadlineAtMs(): number {
    return Math.max(...[...this.waiters].map(({ context }) => context.deadlineAtMs));
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

  /** While nobody waits for the list alone. */
  get forVideos(): boolean {
    for (const { context } of this.waiters) if (context.forVideos !== true) return false;
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
  async join(
    key: string,
    context: ReadingContext,
    start: (context: ReadingContext) => Promise<T>,
    store: (value: T) => Promise<void>,
  ): Promise<SingleFlightResult<T>> {
    const { signal } = context;
    signal.throwIfAborted();
    const flight = this.flights.get(key) ?? new Flight<T>(context.organizationId, context.fairnessKey);
    const waiter = { context };
    flight.waiters.add(waiter);
    if (flight.requested) context.onRequest?.();
    let disconnect = (): void => undefined;
    const disconnected = new Promise<never>((_resolve, reject) => {
      disconnect = () => {
        // The owner is decided once the work has succeeded: a disconnect must not make a paid result free.
        if (flight.succeeded) return;
        flight.waiters.delete(waiter);
        reject(signal.reason as Error);
        if (flight.waiters.size > 0) return;
        this.end(key, flight);
        flight.controller.abort(signal.reason);
      };
    });
    signal.addEventListener('abort', disconnect, { once: true });
    this.flights.set(key, flight);
    flight.result ??= this.run(flight, start, store).finally(() => this.end(key, flight));
    try {
      const value = await Promise.race([flight.result, disconnected]);
      const [oldest] = flight.waiters;
      return { value, owner: oldest === waiter };
    } finally {
      signal.removeEventListener('abort', disconnect);
    }
  }

  private async run(
    flight: Flight<T>,
    start: (context: ReadingContext) => Promise<T>,
    store: (value: T) => Promise<void>,
  ): Promise<T> {
    const value = await start(flight);
    if (flight.waiters.size > 0) {
      flight.succeeded = true;
      await store(value);
    }
    return value;
  }

  private end(key: string, flight: Flight<T>): void {
    if (this.flights.get(key) === flight) this.flights.delete(key);
  }
}
