interface Waiting {
  start: () => void;
}

/**
 * Lets at most so many tasks run at a time. A place that becomes free goes to the lane that has the fewest running, those
 * with as few by turns, and a lane's own tasks keep their order: a call for two videos that comes after calls for
 * hundreds waits for one of the tasks that run, not for the hundreds and not for a turn of each.
 */
export class FairLimiter {
  private runningCount = 0;
  // A Map keeps its order of insertion, so the first lane is the one whose turn it is; after it, it goes to the end.
  private readonly lanes = new Map<object, Waiting[]>();
  private readonly runningByLane = new Map<object, number>();

  constructor(private readonly concurrencyMax: number) {}

  /** How many tasks run at the moment. */
  get running(): number {
    return this.runningCount;
  }

  /** How many tasks wait at the moment. */
  get queued(): number {
    let queued = 0;
    for (const waiting of this.lanes.values()) queued += waiting.length;
    return queued;
  }

  /**
   * Runs a task when its turn comes, and gives its place to the next one whatever becomes of it. Rejects with the
   * signal's reason when it is aborted while waiting; a task that has begun has to watch the signal itself.
   */
  async run<T>(lane: object, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    await this.turn(lane, signal);
    try {
      return await task();
    } finally {
      this.count(lane, -1);
      this.startNext();
    }
  }

  private turn(lane: object, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // The place is taken here and not after a promise has settled, or two tasks could take the same one.
    if (this.runningCount < this.concurrencyMax) {
      this.count(lane, 1);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.remove(lane, waiting);
        reject(signal.reason as Error);
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      const others = this.lanes.get(lane);
      if (others) others.push(waiting);
      else this.lanes.set(lane, [waiting]);
    });
  }

  private count(lane: object, change: 1 | -1): void {
    this.runningCount += change;
    const running = (this.runningByLane.get(lane) ?? 0) + change;
    if (running === 0) this.runningByLane.delete(lane);
    else this.runningByLane.set(lane, running);
  }

  private startNext(): void {
    const lane = this.nextLane();
    const waiting = lane && this.lanes.get(lane);
    const first = waiting?.shift();
    if (!lane || !waiting || !first) return;
    this.lanes.delete(lane);
    if (waiting.length > 0) this.lanes.set(lane, waiting);
    this.count(lane, 1);
    first.start();
  }

  private nextLane(): object | undefined {
    let next: object | undefined;
    let fewest = Infinity;
    for (const lane of this.lanes.keys()) {
      const running = this.runningByLane.get(lane) ?? 0;
      if (running === 0) return lane;
      if (running < fewest) [next, fewest] = [lane, running];
    }
    return next;
  }

  private remove(lane: object, leaving: Waiting): void {
    const waiting = this.lanes.get(lane);
    const position = waiting?.indexOf(leaving) ?? -1;
    if (!waiting || position < 0) return;
    waiting.splice(position, 1);
    if (waiting.length === 0) this.lanes.delete(lane);
  }
}
