import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { ClosingServer } from '../http/shutdown-state.js';
import { logStateChange } from './job-rows.js';
import { SliceQueue } from './slice-queue.js';
import { SliceRunner } from './slice-runner.js';
import { SliceStore, type ClaimedSlice } from './slice-store.js';

/** Statements that remove results, of one sweep. */
const REMOVALS_PER_SWEEP = 20;

/**
 * Runs the archive jobs in this process: claims the slice that is next over all organizations, runs it, and looks for the
 * next. A sweep finds what nobody announced, e.g. the slices of a process that was killed.
 */
@Injectable()
export class JobWorker implements OnApplicationBootstrap, BeforeApplicationShutdown, ClosingServer {
  private readonly logger = new Logger(JobWorker.name);
  private readonly looks = new Set<Promise<void>>();
  private readonly slices = new Set<AbortController>();
  private sweeping = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private stopping = false;

  constructor(
    private readonly store: SliceStore,
    private readonly runner: SliceRunner,
    private readonly queue: SliceQueue,
    private readonly environment: Environment,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { JOB_CONCURRENCY } = this.environment;
    if (JOB_CONCURRENCY === 0) return;
    await this.queue.work(JOB_CONCURRENCY, () => this.look());
    // Jobs go on at once after a restart.
    this.sweepAfter(0);
  }

  /** Aborts the running slices: what they have fetched is stored; other processes fetch the rest. */
  async close(): Promise<void> {
    this.stopping = true;
    clearTimeout(this.timer);
    await this.queue.close();
    for (const slice of this.slices) slice.abort();
    await Promise.all([...this.looks, this.sweeping]);
  }

  /** For an application that is closed without `shutDown`. */
  beforeApplicationShutdown(): Promise<void> {
    return this.close();
  }

  private async look(): Promise<void> {
    if (this.stopping) return;
    const looking = this.runNext();
    this.looks.add(looking);
    await looking.finally(() => this.looks.delete(looking));
  }

  /** Claims and runs one slice. Never rejects. */
  private async runNext(): Promise<void> {
    const slice = await this.attempt('job_claim_failed', () => this.store.claim());
    if (!slice) return;
    logStateChange(this.logger, slice);
    // Another slice may be due, and another worker idle.
    void this.queue.wake();
    const dueInSeconds = await this.run(slice);
    if (dueInSeconds !== null && dueInSeconds < this.environment.JOB_SWEEP_SECONDS)
      void this.queue.wake(Math.ceil(dueInSeconds * 1000));
  }

  private async run(slice: ClaimedSlice): Promise<number | null> {
    const controller = new AbortController();
    if (this.stopping) controller.abort();
    this.slices.add(controller);
    try {
      return await this.runner.run(slice, controller.signal);
    } finally {
      this.slices.delete(controller);
    }
  }

  private sweepAfter(ms: number): void {
    this.timer = setTimeout(() => {
      this.sweeping = this.sweep().finally(() => {
        if (!this.stopping) this.sweepAfter(this.environment.JOB_SWEEP_SECONDS * 1000);
      });
    }, ms);
  }

  private async sweep(): Promise<void> {
    const changed = await this.attempt('job_sweep_failed', () => this.store.sweep());
    for (const job of changed ?? []) logStateChange(this.logger, job);
    // One more than is due finds nothing: each slice that is found wakes the next look.
    await this.queue.wake();
    await this.attempt('job_removal_failed', async () => {
      for (let batch = 1; batch <= REMOVALS_PER_SWEEP && !this.stopping; batch++)
        if ((await this.store.removeBatch()) === 0) return;
    });
  }

  /** Runs a statement that the next sweep repeats. Resolves to undefined when it failed. */
  private async attempt<T>(event: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!this.stopping) this.logger.warn({ event, cause: String(error) });
      return undefined;
    }
  }
}
