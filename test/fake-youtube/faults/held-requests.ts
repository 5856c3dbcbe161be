import type { Incoming } from '../incoming-request.js';
import { matches, type RequestMatch } from './fault-registry.js';

/** Requests held in flight, so that a test can observe that moment without sleeping. */
export interface Hold {
  /** Resolves when `count` requests (by default one) have arrived and wait. */
  arrived: Promise<void>;
  /** Continues the waiting requests and stops holding later ones. */
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

  /** Holds every matching request until `release` is called. */
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

  /** Waits until all matching holds are released or the connection is closed. */
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
