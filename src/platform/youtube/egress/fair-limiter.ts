import type { ReadingContext, Requester } from '../../video-platform.js';

/** The part of the slots that background tasks can have at most, so that a call finds one free. */
const BACKGROUND_SHARE = 0.75;

/** The call that a task belongs to. `background` can change while the task waits or runs, so it is read each time. */
type TaskContext = Pick<ReadingContext, 'fairnessKey' | 'signal' | 'background' | 'onForeground'>;

/** How many tasks may run. It can change; `FairLimiter.startNext` is to be called when it grows. */
interface Capacity {
  /** How many tasks may run at a time. */
  places(): number;
  /** Milliseconds until another task may start although a place is free. */
  waitMs(background: boolean): number;
  /** Called when a task starts. */
  spend(): void;
}

/** A task that waits or runs, under the key that it came with. */
interface Task {
  readonly context: TaskContext;
  readonly fairnessKey: object;
  start: () => void;
  reject: (reason: Error) => void;
}

/**
 * Limits how many tasks run at a time. A free slot goes to the key with the fewest running tasks, equal keys alternate, and
 * the tasks of one key run in order: a call for two videos that arrives after calls for hundreds waits for one running
 * task, not for the hundreds.
 *
 * A background task gets a slot only when no other task waits, and background tasks have at most three quarters of the slots
 * (at least one). Among each other they share these in the same way.
 */
export class FairLimiter {
  private readonly capacity: Capacity;
  private runningCount = 0;
  private timer: NodeJS.Timeout | undefined;
  // In order of insertion: the first key is the next to run, and moves to the end afterwards.
  private readonly waitingByKey = new Map<object, Task[]>();
  private readonly runningByKey = new Map<object, Set<Task>>();

  /** @param capacity a fixed number of slots, or what decides about them */
  constructor(capacity: number | Capacity) {
    this.capacity =
      typeof capacity === 'number' ? { places: () => capacity, waitMs: () => 0, spend: () => undefined } : capacity;
  }

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

  /** The waiting tasks that start before a further one of a requester. Background tasks delay no call. */
  queuedBefore(requester: Requester): number {
    const background = requester.background === true;
    const own = countOf(this.waitingByKey.get(requester.fairnessKey) ?? [], background);
    let before = own;
    for (const [key, waiting] of this.waitingByKey) {
      if (key !== requester.fairnessKey) before += Math.min(countOf(waiting, background), own + 1);
      if (background) before += countOf(waiting, false);
    }
    return before;
  }

  /**
   * Runs a task when a slot is free, and releases the slot however the task ends. Rejects with the signal's reason when it
   * is aborted while waiting; a running task must observe the signal itself.
   */
  async run<T>(context: TaskContext, task: () => Promise<T>): Promise<T> {
    const running: Task = {
      context,
      fairnessKey: context.fairnessKey,
      start: () => undefined,
      reject: () => undefined,
    };
    // A waiting task that is of a call now may start at once. A running one leaves its place to another background task.
    const stopListening = context.onForeground?.(() => this.startNext());
    try {
      await this.acquire(running);
      try {
        return await task();
      } finally {
        this.release(running);
        this.startNext();
      }
    } finally {
      stopListening?.();
    }
  }

  /** Starts the waiting tasks that may run now. */
  startNext(): void {
    for (let next = this.next(); next !== undefined; next = this.next()) {
      const waiting = this.waitingByKey.get(next.fairnessKey);
      this.remove(next);
      if (waiting && waiting.length > 0) {
        this.waitingByKey.delete(next.fairnessKey);
        this.waitingByKey.set(next.fairnessKey, waiting);
      }
      this.take(next);
      next.start();
    }
    this.schedule();
  }

  /** Ends the waiting of all tasks. */
  rejectWaiting(reason: Error): void {
    for (const task of [...this.waitingByKey.values()].flat()) task.reject(reason);
  }

  private acquire(task: Task): Promise<void> {
    const { signal } = task.context;
    signal.throwIfAborted();
    // Taken synchronously, so that no two tasks take the same slot.
    if (this.waitingByKey.size === 0 && this.mayStart(isBackground(task))) {
      this.take(task);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const abort = () => task.reject(signal.reason as Error);
      task.start = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      task.reject = (reason) => {
        signal.removeEventListener('abort', abort);
        this.remove(task);
        reject(reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      const others = this.waitingByKey.get(task.fairnessKey);
      if (others) others.push(task);
      else this.waitingByKey.set(task.fairnessKey, [task]);
      // Slots are free while background tasks wait for one of theirs.
      this.startNext();
    });
  }

  private take(task: Task): void {
    this.runningCount += 1;
    const running = this.runningByKey.get(task.fairnessKey);
    if (running) running.add(task);
    else this.runningByKey.set(task.fairnessKey, new Set([task]));
    this.capacity.spend();
  }

  private release(task: Task): void {
    this.runningCount -= 1;
    const running = this.runningByKey.get(task.fairnessKey);
    running?.delete(task);
    if (running?.size === 0) this.runningByKey.delete(task.fairnessKey);
  }

  /** Wakes up when the capacity lets the next task start, if that depends on time only. */
  private schedule(): void {
    clearTimeout(this.timer);
    const waiting = this.firstOf(false) ?? this.firstOf(true);
    if (!waiting || !this.hasPlace(isBackground(waiting))) return;
    this.timer = setTimeout(() => this.startNext(), Math.ceil(this.capacity.waitMs(isBackground(waiting))));
  }

  /** The waiting task that starts now. */
  private next(): Task | undefined {
    for (const background of [false, true]) {
      const next = this.mayStart(background) ? this.firstOf(background) : undefined;
      if (next) return next;
    }
    return undefined;
  }

  private mayStart(background: boolean): boolean {
    return this.hasPlace(background) && this.capacity.waitMs(background) <= 0;
  }

  private hasPlace(background: boolean): boolean {
    const places = this.capacity.places();
    if (this.runningCount >= places) return false;
    if (!background) return true;
    let running = 0;
    for (const tasks of this.runningByKey.values()) running += countOf(tasks, true);
    return running < Math.max(1, Math.floor(places * BACKGROUND_SHARE));
  }

  /** Of the keys with waiting tasks of a kind, that with the fewest running ones of the kind. */
  private firstOf(background: boolean): Task | undefined {
    let next: Task | undefined;
    let fewest = Infinity;
    for (const [fairnessKey, waiting] of this.waitingByKey) {
      const first = waiting.find((task) => isBackground(task) === background);
      if (!first) continue;
      const running = countOf(this.runningByKey.get(fairnessKey) ?? [], background);
      if (running === 0) return first;
      if (running < fewest) [next, fewest] = [first, running];
    }
    return next;
  }

  private remove(task: Task): void {
    const waiting = this.waitingByKey.get(task.fairnessKey);
    const position = waiting?.indexOf(task) ?? -1;
    if (!waiting || position < 0) return;
    waiting.splice(position, 1);
    if (waiting.length === 0) this.waitingByKey.delete(task.fairnessKey);
    if (this.waitingByKey.size === 0) clearTimeout(this.timer);
  }
}

function isBackground({ context }: Task): boolean {
  return context.background === true;
}

function countOf(tasks: Iterable<Task>, background: boolean): number {
  let count = 0;
  for (const task of tasks) if (isBackground(task) === background) count += 1;
  return count;
}
