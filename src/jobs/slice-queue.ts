import { Injectable } from '@nestjs/common';

/**
 * The port to the engine that wakes the workers. The tables of the jobs are the truth: whatever the cause of a wake-up, a
 * worker asks the database for the next slice, so an engine can neither lose nor double one.
 */
export abstract class SliceQueue {
  /** Asks some worker of some process to look for due work, after `delayMs`. Never rejects: the sweep finds what was not announced. */
  abstract wake(delayMs?: number): Promise<void>;

  /** Calls `look` for each wake-up of this process, at most `concurrency` at a time, until `close`. `look` never rejects. */
  abstract work(concurrency: number, look: () => Promise<void>): Promise<void>;

  /** Ends the wake-ups. Running looks are not awaited. */
  abstract close(): Promise<void>;
}

/** A timer with a longer delay fires at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** Wakes the workers of this process only; other processes find the work by their sweep. */
@Injectable()
export class LocalSliceQueue extends SliceQueue {
  private readonly timers = new Set<NodeJS.Timeout>();
  private look: (() => Promise<void>) | undefined;
  private concurrency = 0;
  private running = 0;
  private waiting = 0;

  wake(delayMs = 0): Promise<void> {
    if (!this.look) return Promise.resolve();
    if (delayMs <= 0) {
      // A look takes the next slice of all jobs, so more looks than can run at a time find nothing more.
      this.waiting = Math.min(this.waiting + 1, this.concurrency);
      this.startLooks();
      return Promise.resolve();
    }
    const timer = setTimeout(
      () => {
        this.timers.delete(timer);
        void this.wake();
      },
      Math.min(delayMs, DELAY_MS_MAX),
    );
    this.timers.add(timer);
    return Promise.resolve();
  }

  work(concurrency: number, look: () => Promise<void>): Promise<void> {
    this.concurrency = concurrency;
    this.look = look;
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.look = undefined;
    this.waiting = 0;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    return Promise.resolve();
  }

  private startLooks(): void {
    while (this.look && this.waiting > 0 && this.running < this.concurrency) {
      this.waiting--;
      this.running++;
      void this.look().finally(() => {
        this.running--;
        this.startLooks();
      });
    }
  }
}
