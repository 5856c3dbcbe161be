import type { Incoming } from '../incoming-request.js';
import { matches, type RequestMatch } from './match.js';

/** Requests stopped in flight, so that a test can look at that moment without sleeping. */
export interface Hold {
  /** Resolves when the first request, or as many as were asked for, has arrived and waits. */
  arrived: Promise<void>;
  /** Lets those that wait, and all later ones, go on. */
  release(): void;
}

interface OpenHold {
  match: RequestMatch;
  arrivals: number;
  onArrival: (arrivals: number) => void;
  released: Promise<void>;
  release: () => void;
}

export class Holds {
  private readonly open = new Set<OpenHold>();

  /** Stops every request that matches until the hold is released. */
  hold(match: RequestMatch, count = 1): Hold {
    const arrived = signal();
    const released = signal();
    const hold: OpenHold = {
      match,
      arrivals: 0,
      onArrival: (arrivals) => arrivals >= count && arrived.fire(),
      released: released.promise,
      release: () => {
        this.open.delete(hold);
        released.fire();
      },
    };
    this.open.add(hold);
    return { arrived: arrived.promise, release: hold.release };
  }

  /** Waits for the holds that match to be released, or for the connection to be gone. */
  async pass(incoming: Incoming, closed: AbortSignal): Promise<void> {
    const deleted = new Promise<void>((resolve) => closed.addEventListener('abort', () => resolve(), { once: true }));
    for (const hold of [...this.open]) {
      if (!matches(hold.match, incoming)) continue;
      hold.arrivals += 1;
      hold.onArrival(hold.arrivals);
      await Promise.race([hold.released, deleted]);
    }
  }

  releaseAll(): void {
    for (const hold of [...this.open]) hold.release();
  }
}

function signal(): { promise: Promise<void>; fire: () => void } {
  let fire = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    fire = () => resolve();
  });
  return { promise, fire };
}
