import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type BackgroundLoop, BackgroundLoops } from '../../background/background-loops.js';
import { Environment } from '../../config/environment.js';
import { VideoPlatform } from '../../platform/video-platform.js';
import { SourceRepository } from '../sources/source.repository.js';
import { SourceRunner } from '../sources/source-runner.js';
import { SliceRunner } from './slice-runner.js';
import { SliceRepository } from './slice.repository.js';

/**
 * Runs the archive jobs and subscriptions in this process: claims in turn the source and the slice that are next over all
 * organizations, runs them, and looks for the next; when none is due it waits some seconds, or for a new job of this process. Slices are aborted when the process stops:
 * what they have fetched is stored; other processes fetch the rest.
 */
@Injectable()
export class JobWorker implements OnApplicationBootstrap {
  private readonly slices: BackgroundLoop;
  private readonly others: readonly BackgroundLoop[];
  /** Whose jobs are run; null for those of all organizations. */
  private organizationId: string | null = null;

  constructor(
    private readonly store: SliceRepository,
    private readonly runner: SliceRunner,
    private readonly sources: SourceRepository,
    private readonly sourceRunner: SourceRunner,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
    loops: BackgroundLoops,
  ) {
    const pauseMs = environment.JOB_SWEEP_SECONDS * 1000;
    this.slices = loops.create('job_slices', pauseMs, (stop) => this.runNext(stop));
    this.others = [
      loops.create('job_sweep', pauseMs, () => this.store.sweep()),
      loops.create('job_removal', pauseMs, () => this.remove()),
    ];
  }

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
    this.organizationId = organizationId;
    this.slices.start(concurrency);
    for (const loop of this.others) loop.start();
  }

  /** Looks for a slice at once; other processes look by themselves. */
  wake(): void {
    this.slices.wake();
  }

  private async runNext(stop: AbortSignal): Promise<'again' | undefined> {
    const source = await this.sources.claim(this.organizationId, this.platform.servesLists);
    if (source) await this.sourceRunner.run(source, stop);
    const slice = await this.store.claim(this.organizationId, this.platform.servesLists);
    if (slice) await this.runner.run(slice, stop);
    return source || slice ? 'again' : undefined;
  }

  /** Without a pause while there is anything to remove. */
  private async remove(): Promise<'again' | undefined> {
    return (await this.store.removeBatch()) > 0 ? 'again' : undefined;
  }
}
