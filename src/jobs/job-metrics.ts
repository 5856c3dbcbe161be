import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { JOB_STATES } from './job-states.js';
import { PAUSE_REASONS } from './job.js';
import { SliceRepository, type JobFigures } from './slice.repository.js';
import { SUBSCRIPTION_STATES } from './subscription.js';

/** So that frequent scrapes cost little, the gauges are read again after this time. */
const FIGURES_AGE_MAX_MS = 5_000;

/** Gauges of the archive jobs of all organizations, read from the database. They keep their values while it is unavailable. */
@Injectable()
export class JobMetrics {
  private sampling: Promise<JobFigures[]> = Promise.resolve([]);
  private sampledAtMs = -Infinity;

  constructor(
    private readonly registry: Registry,
    private readonly store: SliceRepository,
  ) {
    this.gauge('ct_jobs', 'Archive jobs of all organizations.', ['state'], (gauge, rows) => {
      const jobs = rows.filter((row) => !row.is_subscription);
      for (const state of JOB_STATES) gauge.set({ state }, jobsOf(jobs.filter((row) => row.state === state)));
    });
    this.gauge('ct_subscriptions', 'Subscriptions of all organizations.', ['state'], (gauge, rows) => {
      const subscriptions = rows.filter((row) => row.is_subscription);
      const counted = { active: 'running', paused: 'paused' } as const;
      for (const state of SUBSCRIPTION_STATES)
        gauge.set({ state }, jobsOf(subscriptions.filter((row) => row.state === counted[state])));
    });
    this.gauge('ct_jobs_paused', 'Paused archive jobs of all organizations.', ['reason'], (gauge, rows) => {
      const paused = rows.filter((row) => !row.is_subscription && row.state === 'paused');
      for (const reason of PAUSE_REASONS) gauge.set({ reason }, jobsOf(paused.filter((row) => row.reason === reason)));
    });
    const dueHelp = 'How long the archive job or subscription that waits the longest for a slice has been due.';
    this.gauge('ct_job_oldest_due_seconds', dueHelp, [], (gauge, rows) =>
      gauge.set(Math.max(0, ...rows.map((row) => row.oldest_due_seconds))),
    );
    const setbacksHelp = 'Most consecutive slices that failed of an archive job that is neither finished nor paused.';
    this.gauge('ct_job_setbacks_max', setbacksHelp, [], (gauge, rows) =>
      gauge.set(Math.max(0, ...rows.map((row) => row.setbacks_max))),
    );
    this.gauge('ct_job_results_bytes', 'Stored results of archive jobs and of subscriptions.', [], (gauge, rows) =>
      gauge.set(rows.reduce((sum, row) => sum + row.stored_bytes, 0)),
    );
  }

  private gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    set: (gauge: Gauge<Label>, rows: readonly JobFigures[]) => void,
  ): void {
    const collect = async (): Promise<void> => set(gauge, await this.sample());
    const gauge: Gauge<Label> = new Gauge({ name, help, labelNames, registers: [this.registry], collect });
  }

  /** One statement for the gauges of the scrapes of some seconds. */
  private sample(): Promise<JobFigures[]> {
    if (performance.now() - this.sampledAtMs >= FIGURES_AGE_MAX_MS) {
      const last = this.sampling;
      this.sampledAtMs = performance.now();
      this.sampling = this.store.figures().catch(() => last);
    }
    return this.sampling;
  }
}

function jobsOf(rows: readonly JobFigures[]): number {
  return rows.reduce((sum, { jobs }) => sum + jobs, 0);
}
