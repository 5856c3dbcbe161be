import { Registry } from 'prom-client';
import type { ChangedJob } from '../../src/jobs/job-row.js';
import { SliceReader } from '../../src/jobs/work/slice-reader.js';
import { SliceRunner } from '../../src/jobs/work/slice-runner.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import type { ClaimedSlice } from '../../src/jobs/work/slice.js';
import type { ClaimedSource } from '../../src/jobs/sources/check.js';
import { SourceRepository } from '../../src/jobs/sources/source.repository.js';
import { SourceRunner } from '../../src/jobs/sources/source-runner.js';
import { DatabaseClock } from '../database/database-clock.js';
import { JobRun } from './job-run.js';
import { startService, type TestService, type TestServiceOptions } from '../harness/service.js';

/** Longer than the claim and the reservation of a slice live. */
export const LEASES_SECONDS = 120;

/** A service that runs no slices by itself: the test runs one after another, and sets the clock of the database. */
export class SliceSteps {
  private readonly clock: DatabaseClock;

  private constructor(readonly service: TestService) {
    this.clock = new DatabaseClock((statement) => service.query(statement));
  }

  static async start(options: TestServiceOptions = {}): Promise<SliceSteps> {
    const service = await startService({ ...options, environment: { JOB_CONCURRENCY: 0, ...options.environment } });
    return new SliceSteps(service);
  }

  /** A job of an organization of its own. */
  async job(
    source: Parameters<typeof JobRun.create>[2],
    request: Parameters<typeof JobRun.create>[3] = {},
  ): Promise<JobRun> {
    return JobRun.create(this.service, await this.service.organization(), source, request);
  }

  /** A job whose list is read, so that its next slice is one of videos. */
  async listed(channel: string): Promise<JobRun> {
    const run = await this.job(channel);
    await this.steps(1);
    return run;
  }

  /** Runs the next slice until its requests for captions wait. */
  async heldSlice(): Promise<{ running: Promise<void>; release: () => void }> {
    const hold = this.service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = this.run(await this.claimed());
    await hold.arrived;
    return { running, release: () => hold.release() };
  }

  /** Moves the clock of the database. */
  async pass(seconds: number): Promise<void> {
    await this.clock.move(seconds);
  }

  async claim(): Promise<ClaimedSlice | undefined> {
    return this.service.app.get(SliceRepository).claim(null);
  }

  /** Claims a slice that is due. */
  async claimed(): Promise<ClaimedSlice> {
    const slice = await this.claim();
    if (!slice) throw new Error('No slice is due.');
    return slice;
  }

  /** Claims a source that is due. */
  async claimedSource(): Promise<ClaimedSource> {
    const source = await this.service.app.get(SourceRepository).claim(null);
    if (!source) throw new Error('No source is due.');
    return source;
  }

  runSource(source: ClaimedSource, stop = new AbortController().signal): Promise<void> {
    return this.service.app.get(SourceRunner).run(source, stop);
  }

  run(slice: ClaimedSlice, stop = new AbortController().signal): Promise<void> {
    return this.service.app.get(SliceRunner).run(slice, stop);
  }

  /** Lets the subscriptions of a source take their turn, when one is due. */
  async turn(): Promise<void> {
    const source = await this.service.app.get(SourceRepository).claim(null, false);
    if (source) await this.runSource(source);
  }

  /** Runs the source that is next, with the turn that follows its check, or else the slice. @returns false when none is due */
  async step(): Promise<boolean> {
    const source = await this.service.app.get(SourceRepository).claim(null);
    if (source) {
      await this.runSource(source);
      await this.turn();
      return true;
    }
    const slice = await this.claim();
    if (slice) await this.run(slice);
    return slice !== undefined;
  }

  async steps(count: number): Promise<void> {
    for (let step = 0; step < count; step++) if (!(await this.step())) throw new Error('Nothing is due.');
  }

  /** Runs slices until none is due. */
  async finish(): Promise<void> {
    while (await this.step());
  }

  /** Runs a slice up to the moment before it is stored, as a process does that is killed then. */
  async read(slice: ClaimedSlice): Promise<void> {
    await this.service.app.get(SliceReader).videos(slice, new AbortController().signal);
  }

  /** Removes the jobs of other tests and sets the clock to the current time. */
  async reset(): Promise<void> {
    await this.service.query('DELETE FROM jobs; DELETE FROM sources');
    await this.clock.reset();
    this.service.fakeYoutube.reset();
  }

  sweep(): Promise<ChangedJob[]> {
    return this.service.app.get(SliceRepository).sweep();
  }

  /** Removes everything that has expired or was deleted. */
  async remove(): Promise<void> {
    while ((await this.service.app.get(SliceRepository).removeBatch()) > 0);
  }

  /** The number of slices of this process with a result. */
  async slices(result: string): Promise<number> {
    const metric = await this.service.app.get(Registry).getSingleMetric('ct_job_slices_total')?.get();
    return metric?.values.find(({ labels }) => labels['result'] === result)?.value ?? 0;
  }
}
