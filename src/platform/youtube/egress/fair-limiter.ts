interface Waiting {
  start: () => void;
}

/**
 * Limits how many tasks run at a time. A free slot goes to the key with the fewest running tasks, equal keys alternate, and
 * the tasks of one key run in order: a call for two videos that arrives after calls for hundreds waits for one running
 * task, not for the hundreds.
 */
export class FairLimiter {
  private runningCount = 0;
  // In order of insertion: the first key is the next to run, and moves to the end afterwards.
  private readonly waitingByKey = new Map<object, Waiting[]>();
  private readonly runningByKey = new Map<object, number>();

  constructor(private readonly concurrencyMax: number) {}

  /** The number of running tasks. */
  get running(): number {
    return this.runningCount;
  }

  /** The number of waiting tasks. */
  get queued(): number {
    let queued = 0;
    for (const waiting of this.waitingByKey.values()) queued += waiting.length;
    return queued;
  }

  /**
   * Runs a task when a slot is free, and releases the slot however the task ends. Rejects with the signal's reason when it
   * is aborted while waiting; a running task must observe the signal itself.
   */
  async run<T>(fairnessKey: object, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    await this.acquire(fairnessKey, signal);
    try {
      return await task();
    } finally {
      this.count(fairnessKey, -1);
      this.startNext();
    }
  }

  private acquire(fairnessKey: object, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // Taken synchronously, so that no two tasks take the same slot.
    if (this.runningCount < this.concurrencyMax) {
      this.count(fairnessKey, 1);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.remove(fairnessKey, waiting);
        reject(signal.reason as Error);
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener('abort', abort);
          resolve();
        },
      };
      signal.addEventListener('abort', abort, { once: true });
      const others = this.waitingByKey.get(fairnessKey);
      if (others) others.push(waiting);
      else this.waitingByKey.set(fairnessKey, [waiting]);
    });
  }

  private count(fairnessKey: object, change: 1 | -1): void {
    this.runningCount += change;
    const running = (this.runningByKey.get(fairnessKey) ?? 0) + change;
    if (running === 0) this.runningByKey.delete(fairnessKey);
    else this.runningByKey.set(fairnessKey, running);
  }

  private startNext(): void {
    const fairnessKey = this.nextKey();
    const waiting = fairnessKey && this.waitingByKey.get(fairnessKey);
    const first = waiting?.shift();
    if (!fairnessKey || !waiting || !first) return;
    this.waitingByKey.delete(fairnessKey);
    if (waiting.length > 0) this.waitingByKey.set(fairnessKey, waiting);
    this.count(fairnessKey, 1);
    first.start();
  }

  private nextKey(): object | undefined {
    let next: object | undefined;
    let fewest = Infinity;
    for (const fairnessKey of this.waitingByKey.keys()) {
      const running = this.runningByKey.get(fairnessKey) ?? 0;
      if (running === 0) return fairnessKey;
      if (running < fewest) [next, fewest] = [fairnessKey, running];
    }
    return next;
  }

  private remove(fairnessKey: object, aborted: Waiting): void {
    const waiting = this.waitingByKey.get(fairnessKey);
    const position = waiting?.indexOf(aborted) ?? -1;
    if (!waiting || position < 0) return;
    waiting.splice(position, 1);
    if (waiting.length === 0) this.waitingByKey.delete(fairnessKey);
  }
}
