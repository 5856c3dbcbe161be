import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { firstValueFrom, merge, timer } from 'rxjs';
import { Environment } from '../config/environment.js';
import type { ClosingServer } from '../http/shutdown-state.js';
import { JobsService } from './jobs.service.js';
import { SliceRunner } from './slice-runner.js';
import { SliceRepository } from './slice.repository.js';
import type { ClaimedSlice } from './slice.js';

/** Statements that remove results, of one sweep. */
const REMOVALS_PER_SWEEP = 20;

/**
 * Runs the archive jobs in this process: claims the slice that is next over all organizations, runs it, and looks for the
 * next; when none is due it waits some seconds, or for a new job of this process.
 */
@Injectable()
export class JobWorker implements OnApplicationBootstrap, BeforeApplicationShutdown, ClosingServer {
  private readonly logger = new Logger(JobWorker.name);
  private readonly stopping = new AbortController();
  private readonly running = new Set<AbortController>();
  private readonly loops: Promise<void>[] = [];

  constructor(
    private readonly jobs: JobsService,
    private readonly store: SliceRepository,
    private readonly runner: SliceRunner,
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
    for (const slice of this.running) slice.abort();
    this.jobs.due.next();
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
      const slice = await this.attempt('job_claim_failed', () => this.store.claim(organizationId));
      if (slice) await this.run(slice);
      else if (!signal.aborted)
        await firstValueFrom(merge(this.jobs.due, timer(this.environment.JOB_SWEEP_SECONDS * 1000)));
    }
  }

  /** With a signal of its own, so that the listeners of ended slices do not stay on that of the process. */
  private async run(slice: ClaimedSlice): Promise<void> {
    const stop = new AbortController();
    this.running.add(stop);
    if (this.stopping.signal.aborted) stop.abort();
    return this.runner.run(slice, stop.signal).finally(() => this.running.delete(stop));
  }

  /** Does what no slice does, at once after a restart and then every few seconds. */
  private async sweepRegularly(): Promise<void> {
    const { signal } = this.stopping;
    do {
      await this.attempt('job_sweep_failed', () => this.store.sweep());
      await this.attempt('job_removal_failed', async () => {
        for (let batch = 1; batch <= REMOVALS_PER_SWEEP && !signal.aborted; batch++)
          if ((await this.store.removeBatch()) === 0) return;
      });
    } while (await sleep(this.environment.JOB_SWEEP_SECONDS * 1000, true, { signal }).catch(() => false));
  }

  /** Runs a statement that is repeated anyway. Resolves to undefined when it failed. */
  private async attempt<T>(event: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!this.stopping.signal.aborted) this.logger.warn({ event, cause: String(error) });
      return undefined;
    }
  }
}
