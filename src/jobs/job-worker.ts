import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { ClosingServer } from '../http/shutdown-state.js';
import { JobRepository } from './job.repository.js';
import { logStateChange } from './job.js';
import { SliceRunner } from './slice-runner.js';
import type { ClaimedSlice } from './slice.js';
import { WakeUps } from './wake-ups.js';

/** Statements that remove results, of one sweep. */
const REMOVALS_PER_SWEEP = 20;

/**
 * Runs the archive jobs in this process: claims the slice that is next over all organizations, runs it, and looks for the
 * next. A sweep finds what nobody announced, e.g. the slices of a process that was killed.
 */
@Injectable()
export class JobWorker implements OnApplicationBootstrap, BeforeApplicationShutdown, ClosingServer {
  private readonly logger = new Logger(JobWorker.name);
  private readonly stopping = new AbortController();
  private readonly loops: Promise<void>[] = [];

  constructor(
    private readonly jobs: JobRepository,
    private readonly runner: SliceRunner,
    private readonly wakeUps: WakeUps,
    private readonly environment: Environment,
  ) {}

  onApplicationBootstrap(): void {
    this.start(this.environment.JOB_CONCURRENCY, null);
  }

  /**
   * Starts to run slices until the process stops.
   *
   * @param concurrency the number of slices at a time; 0 starts nothing
   * @param organizationId whose jobs are run; null for those of all organizations
   */
  start(concurrency: number, organizationId: string | null): void {
    if (concurrency === 0) return;
    for (let index = 0; index < concurrency; index++) this.loops.push(this.work(organizationId));
    this.loops.push(this.sweepRegularly());
  }

  /** Aborts the running slices: what they have fetched is stored; other processes fetch the rest. */
  async close(): Promise<void> {
    this.stopping.abort();
    this.wakeUps.wakeAll();
    await Promise.all(this.loops);
  }

  /** For an application that is closed without `shutDown`. */
  beforeApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Runs one slice after the other until the process stops. Never rejects. */
  private async work(organizationId: string | null): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const slice = await this.attempt('job_claim_failed', () => this.jobs.claim(organizationId));
      if (!slice) {
        if (!signal.aborted) await this.wakeUps.wait();
        continue;
      }
      logStateChange(this.logger, slice);
      // Another slice may be due, and another worker idle.
      this.wakeUps.wake();
      const dueInSeconds = await this.run(slice);
      if (dueInSeconds !== null && dueInSeconds < this.environment.JOB_SWEEP_SECONDS) void this.wakeAfter(dueInSeconds);
    }
  }

  /** With a signal of its own, so that the listeners of ended slices do not stay on that of the process. */
  private async run(slice: ClaimedSlice): Promise<number | null> {
    const { signal } = this.stopping;
    const end = new AbortController();
    const abort = (): void => end.abort();
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    return this.runner.run(slice, end.signal).finally(() => signal.removeEventListener('abort', abort));
  }

  private async wakeAfter(seconds: number): Promise<void> {
    if (await this.paused(seconds)) this.wakeUps.wake();
  }

  private async sweepRegularly(): Promise<void> {
    // At once after a restart.
    do await this.sweep();
    while (await this.paused(this.environment.JOB_SWEEP_SECONDS));
  }

  private async sweep(): Promise<void> {
    const changed = await this.attempt('job_sweep_failed', () => this.jobs.sweep());
    for (const job of changed ?? []) logStateChange(this.logger, job);
    // One wakes the next when it finds a slice.
    this.wakeUps.wake();
    await this.attempt('job_removal_failed', async () => {
      for (let batch = 1; batch <= REMOVALS_PER_SWEEP && !this.stopping.signal.aborted; batch++)
        if ((await this.jobs.removeBatch()) === 0) return;
    });
  }

  /** @returns false when the process stops before the end of the pause */
  private paused(seconds: number): Promise<boolean> {
    return sleep(Math.ceil(seconds * 1000), true, { signal: this.stopping.signal }).catch(() => false);
  }

  /** Runs a statement that the next sweep repeats. Resolves to undefined when it failed. */
  private async attempt<T>(event: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!this.stopping.signal.aborted) this.logger.warn({ event, cause: String(error) });
      return undefined;
    }
  }
}
