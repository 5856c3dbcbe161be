import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { isFinished, JOB_STATES, PAUSE_REASONS } from './job.js';
import { SliceRepository, type JobFigures } from './slice.repository.js';

/** The gauges read every job. So that frequent scrapes cost little, they are read again after this time. */
const FIGURES_AGE_MAX_MS = 5_000;

type Labels = Readonly<Record<string, string>>;

/** The states of jobs whose slices are due, now or later. Those of a paused one only find out whether its pause has ended. */
const MOVING = JOB_STATES.filter((state) => !isFinished(state) && state !== 'paused');

/** Gauges of the archive jobs of all organizations, read from the database. */
@Injectable()
export class JobMetrics {
  private sampling: Promise<JobFigures[] | undefined> | undefined;
  private sampledAtMs = 0;

  constructor(
    private readonly registry: Registry,
    private readonly store: SliceRepository,
  ) {
    this.gauge('ct_jobs', 'Archive jobs of all organizations.', ['state'], (rows) =>
      JOB_STATES.map((state) => [{ state }, jobsOf(rows.filter((row) => row.state === state))]),
    );
    this.gauge('ct_jobs_paused', 'Paused archive jobs of all organizations.', ['reason'], (rows) =>
      PAUSE_REASONS.map((reason) => [
        { reason },
        jobsOf(rows.filter((row) => row.state === 'paused' && row.reason === reason)),
      ]),
    );
    this.gauge(
      'ct_job_oldest_due_seconds',
      'How long the archive job that waits the longest for a slice has been due.',
      [],
      (rows) => [[{}, Math.max(0, ...rows.map((row) => row.oldest_due_seconds))]],
    );
    this.gauge(
      'ct_job_setbacks_max',
      'Most consecutive slices that failed of an archive job that is neither finished nor paused.',
      [],
      (rows) => {
        const moving = rows.filter(({ state }) => MOVING.includes(state));
        return [[{}, Math.max(0, ...moving.map((row) => row.setbacks_max))]];
      },
    );
    this.gauge('ct_job_results_bytes', 'Stored results of archive jobs.', [], (rows) => [
      [{}, rows.reduce((sum, row) => sum + row.stored_bytes, 0)],
    ]);
  }

  private gauge(
    name: string,
    help: string,
    labelNames: string[],
    read: (rows: JobFigures[]) => [labels: Labels, value: number][],
  ): void {
    const gauge = new Gauge({
      ...{ name, help, labelNames, registers: [this.registry] },
      collect: async (): Promise<void> => {
        const rows = await this.sample();
        gauge.reset();
        // No value is better than the last one while the database is unavailable.
        if (rows) for (const [labels, value] of read(rows)) gauge.set(labels, value);
        else if (labelNames.length === 0) gauge.set(Number.NaN);
      },
    });
  }

  /** One statement for the gauges of the scrapes of some seconds; undefined when the database is unavailable. */
  private sample(): Promise<JobFigures[] | undefined> {
    const nowMs = performance.now();
    if (!this.sampling || nowMs - this.sampledAtMs >= FIGURES_AGE_MAX_MS) {
      this.sampledAtMs = nowMs;
      this.sampling = this.store.figures().catch(() => (this.sampling = undefined));
    }
    return this.sampling;
  }
}

function jobsOf(rows: readonly JobFigures[]): number {
  return rows.reduce((sum, { jobs }) => sum + jobs, 0);
}
