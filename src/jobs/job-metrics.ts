import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { isFinished, JOB_STATES, PAUSE_REASONS, type JobState } from './job.js';
import type { FiguresRow } from './job-statements.js';
import { JobRepository } from './job.repository.js';

/**
 * `committed` slices are stored. One that `lost` its claim, or that `expired` with its reservation, is not stored and not
 * charged; neither is one that ended with an `error`.
 */
const SLICE_RESULTS = ['committed', 'lost', 'expired', 'error'] as const;
export type SliceResult = (typeof SLICE_RESULTS)[number];

/** The gauges read every job. So that frequent scrapes cost little, they are read again after this time. */
const FIGURES_AGE_MAX_MS = 5_000;

/** Metrics of archive jobs. The gauges are of all processes and are read from the database. */
@Injectable()
export class JobMetrics {
  readonly slices: Counter<'result'>;
  private sampling: Promise<FiguresRow[] | undefined> | undefined;
  private sampledAtMs = 0;

  constructor(
    registry: Registry,
    private readonly store: JobRepository,
  ) {
    const registers = [registry];
    this.slices = new Counter({
      name: 'ct_job_slices_total',
      help: 'Slices of archive jobs that this process ran.',
      labelNames: ['result'],
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const result of SLICE_RESULTS) this.slices.inc({ result }, 0);
    const sample = (): Promise<FiguresRow[] | undefined> => this.sample();
    new Gauge({
      name: 'ct_jobs',
      help: 'Archive jobs of all organizations.',
      labelNames: ['state'],
      registers,
      async collect() {
        const rows = await sample();
        this.reset();
        if (rows)
          for (const state of JOB_STATES) this.set({ state }, countOf(rows.filter((row) => row.state === state)));
      },
    });
    new Gauge({
      name: 'ct_jobs_paused',
      help: 'Paused archive jobs of all organizations.',
      labelNames: ['reason'],
      registers,
      async collect() {
        const rows = await sample();
        this.reset();
        const paused = rows?.filter(({ state }) => state === 'paused');
        if (paused)
          for (const reason of PAUSE_REASONS)
            this.set({ reason }, countOf(paused.filter((row) => row.reason === reason)));
      },
    });
    const total = (name: string, help: string, read: (rows: FiguresRow[]) => number): void => {
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const rows = await sample();
          // No value is better than the last one while the database is unavailable.
          this.set(rows ? read(rows) : Number.NaN);
        },
      });
    };
    total(
      'ct_job_oldest_due_seconds',
      'How long the archive job that waits the longest for a slice has been due.',
      (rows) => Math.max(0, ...rows.map((row) => row.oldest_due_seconds)),
    );
    total(
      'ct_job_setbacks_max',
      'Most consecutive slices that failed of an archive job that is neither finished nor paused.',
      (rows) => Math.max(0, ...rows.filter(({ state }) => isMoving(state)).map((row) => row.setbacks_max)),
    );
    total('ct_job_results_bytes', 'Stored results of archive jobs.', (rows) =>
      rows.reduce((sum, row) => sum + row.stored_bytes, 0),
    );
  }

  /** One statement for the gauges of the scrapes of some seconds; undefined when the database is unavailable. */
  private sample(): Promise<FiguresRow[] | undefined> {
    const nowMs = performance.now();
    if (!this.sampling || nowMs - this.sampledAtMs >= FIGURES_AGE_MAX_MS) {
      this.sampledAtMs = nowMs;
      this.sampling = this.store.figures().catch(() => (this.sampling = undefined));
    }
    return this.sampling;
  }
}

/** Whether slices of a job are due, now or later. Those of a paused one only find out whether its pause has ended. */
function isMoving(state: JobState): boolean {
  return !isFinished(state) && state !== 'paused';
}

function countOf(rows: readonly FiguresRow[]): number {
  return rows.reduce((sum, { jobs }) => sum + jobs, 0);
}
