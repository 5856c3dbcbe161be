/**
 * Waits for work for a limited time; the work itself continues.
 *
 * @returns the result of the work, undefined when the time is over
 */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, timeoutMs));
  });
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
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

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Waits for a turn of the event loop of its own. Work of milliseconds that is ready together, such as texts that arrived at the
 * same time, is done one after another, and other requests are served in between.
 */
export function nextTurn(): Promise<unknown> {
  return (lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve))));
}

/** Runs the work of each organization with at most so much of it at a time, in the order in which it came. */
export class OrganizationTurns {
  /** Of the organizations whose work runs. */
  private readonly turns = new Map<string, { free: number; waiting: (() => void)[] }>();

  constructor(private readonly atOnceMax: number) {}

  /** @returns what the work returns, when it has had its turn */
  async run<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    const turn = this.turns.get(organizationId) ?? { free: this.atOnceMax, waiting: [] };
    this.turns.set(organizationId, turn);
    if (turn.free > 0) turn.free--;
    else await new Promise<void>((resolve) => turn.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = turn.waiting.shift();
      if (next) next();
      else if (++turn.free === this.atOnceMax) this.turns.delete(organizationId);
    }
  }
}
