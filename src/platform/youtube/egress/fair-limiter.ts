import type { ReadingContext } from '../../video-platform.js';

/** The part of the slots that background tasks can have at most, so that a call finds one free. */
const BACKGROUND_SHARE = 0.75;

/** The call that a task belongs to. `background` can change while the task waits or runs, so it is read each time. */
type TaskContext = Pick<ReadingContext, 'fairnessKey' | 'signal' | 'background'>;

/** A task that waits or runs, under the key that it came with. */
interface Task {
  readonly context: TaskContext;
  readonly fairnessKey: object;
  readonly waitMs: () => number;
  readonly start: () => void;
}

/**
 * Limits how many tasks run at a time. A free slot goes to the key with the fewest running tasks, equal keys alternate, and
 * the tasks of one key run in order: a call for two videos that arrives after calls for hundreds waits for one running
 * task, not for the hundreds. A task that may not start yet lets the others go first.
 *
 * A background task gets a slot only when no other task can start, and background tasks have at most three quarters of the
 * slots (at least one). Among each other they share these in the same way.
 */
export class FairLimiter {
  private readonly runningTasks = new Set<Task>();
  /** The waiting tasks by key. The first key is the next to run, and moves to the end afterwards. */
  private readonly waiting = new Map<object, Task[]>();
  private timer: NodeJS.Timeout | undefined;

  /** @param slots how many tasks run at a time */
  constructor(readonly slots: number) {}

  /** The number of running tasks. */
  get running(): number {
    return this.runningTasks.size;
  }

  /** The number of waiting tasks. */
  get queued(): number {
    let queued = 0;
    for (const tasks of this.waiting.values()) queued += tasks.length;
    return queued;
  }

  /**
   * Runs a task when a slot is free, and releases the slot however the task ends. Rejects with the signal's reason when it
   * is aborted while waiting; a running task must observe the signal itself.
   *
   * @param task called at once when it is the task's turn
   * @param waitMs milliseconds until the task may start although a slot is free; Infinity until `startNext` is called
   */
  async run<T>(context: TaskContext, task: () => Promise<T>, waitMs: () => number = () => 0): Promise<T> {
    const { signal, fairnessKey } = context;
    signal.throwIfAborted();
    let abort = (): void => undefined;
    const done = new Promise<T>((resolve, reject) => {
      const entry: Task = { context, fairnessKey, waitMs, start: () => resolve(this.runNow(entry, task)) };
      // Without effect once the task runs.
      abort = () => {
        this.remove(entry);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort, { once: true });
      const others = this.waiting.get(fairnessKey);
      if (others) others.push(entry);
      else this.waiting.set(fairnessKey, [entry]);
    });
    this.startNext();
    try {
      return await done;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Starts the waiting tasks that may run now. */
  startNext(): void {
    for (let next = this.next(); next; next = this.next()) {
      const others = this.remove(next);
      // The key moves to the end.
      if (this.waiting.delete(next.fairnessKey)) this.waiting.set(next.fairnessKey, others);
      next.start();
    }
    clearTimeout(this.timer);
    if (this.running === this.slots) return;
    // Those that could start wait for one of the slots of background tasks.
    const waitsMs = [...this.waiting.values()].flat().map(({ waitMs }) => waitMs());
    const firstMs = waitsMs.reduce((first, ms) => (ms > 0 ? Math.min(first, ms) : first), Infinity);
    if (firstMs < Infinity) this.timer = setTimeout(() => this.startNext(), Math.ceil(firstMs));
  }

  private async runNow<T>(entry: Task, task: () => Promise<T>): Promise<T> {
    this.runningTasks.add(entry);
    try {
      return await task();
    } finally {
      this.runningTasks.delete(entry);
      this.startNext();
    }
  }

  private next(): Task | undefined {
    return this.nextOf(false) ?? this.nextOf(true);
  }

  /** Of the keys with a task of a kind that may start now, the first task of the one with the fewest running ones of the kind. */
  private nextOf(background: boolean): Task | undefined {
    if (this.running >= this.slots) return undefined;
    const running = [...this.runningTasks].filter((task) => isBackground(task) === background);
    if (background && running.length >= Math.max(1, Math.floor(this.slots * BACKGROUND_SHARE))) return undefined;
    let next: Task | undefined;
    let fewest = Infinity;
    for (const [fairnessKey, waiting] of this.waiting) {
      const first = waiting.find((task) => isBackground(task) === background && task.waitMs() <= 0);
      if (!first) continue;
      const count = running.filter((task) => task.fairnessKey === fairnessKey).length;
      if (count < fewest) [next, fewest] = [first, count];
      if (count === 0) break;
    }
    return next;
  }

  /** Takes a task from the queue. @returns the other waiting tasks of its key */
  private remove(task: Task): Task[] {
    const others = (this.waiting.get(task.fairnessKey) ?? []).filter((other) => other !== task);
    if (others.length > 0) this.waiting.set(task.fairnessKey, others);
    else this.waiting.delete(task.fairnessKey);
    if (this.waiting.size === 0) clearTimeout(this.timer);
    return others;
  }
}

function isBackground({ context }: Task): boolean {
  return context.background === true;
}
