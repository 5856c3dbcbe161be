import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { JOB_STATES, PAUSE_REASONS, SUBSCRIPTION_STATES } from './job.js';
import { SliceRepository, type JobCounts } from './work/slice.repository.js';

/** So that frequent scrapes cost little, what waits is read again after this time. */
const WAITING_AGE_MAX_MS = 5_000;
/** The counts read the whole table. */
const COUNTS_AGE_MAX_MS = 60_000;

/** Gauges of the archive jobs of all organizations, read from the database. They keep their values while it is unavailable. */
@Injectable()
export class JobMetrics {
  constructor(
    private readonly registry: Registry,
    store: SliceRepository,
  ) {
    const counts = sampled(COUNTS_AGE_MAX_MS, () => store.counts());
    const waiting = sampled(WAITING_AGE_MAX_MS, () => store.waiting());
    this.gauge('ct_jobs', 'Archive jobs of all organizations.', ['state'], counts, (gauge, rows) => {
      const jobs = rows.filter((row) => !row.is_subscription);
      for (const state of JOB_STATES) gauge.set({ state }, sumOf(jobs.filter((row) => row.state === state)));
    });
    this.gauge('ct_subscriptions', 'Subscriptions of all organizations.', ['state'], counts, (gauge, rows) => {
      const followed = rows.filter((row) => row.is_subscription);
      const stored = { active: 'running', paused: 'paused' } as const;
      for (const state of SUBSCRIPTION_STATES)
        gauge.set({ state }, sumOf(followed.filter((row) => row.state === stored[state])));
    });
    this.gauge('ct_jobs_paused', 'Paused archive jobs of all organizations.', ['reason'], counts, (gauge, rows) => {
      const paused = rows.filter((row) => !row.is_subscription && row.state === 'paused');
      for (const reason of PAUSE_REASONS) gauge.set({ reason }, sumOf(paused.filter((row) => row.reason === reason)));
    });
    const bytesHelp = 'Stored results of archive jobs and of subscriptions.';
    this.gauge('ct_job_results_bytes', bytesHelp, [], counts, (gauge, rows) =>
      gauge.set(rows.reduce((sum, row) => sum + row.stored_bytes, 0)),
    );
    const dueHelp =
      'How long the slice of an archive job or subscription, or the check of a channel or playlist, that waits the longest has been due.';
    this.gauge('ct_job_oldest_due_seconds', dueHelp, [], waiting, (gauge, [row]) =>
      gauge.set(Math.max(0, row?.oldest_due_seconds ?? 0)),
    );
    const setbacksHelp = 'Most consecutive slices that failed of an archive job that is neither finished nor paused.';
    this.gauge('ct_job_setbacks_max', setbacksHelp, [], waiting, (gauge, [row]) => gauge.set(row?.setbacks_max ?? 0));
  }

  private gauge<Label extends string, Row>(
    name: string,
    help: string,
    labelNames: Label[],
    read: () => Promise<readonly Row[]>,
    set: (gauge: Gauge<Label>, rows: readonly Row[]) => void,
  ): void {
    const collect = async (): Promise<void> => set(gauge, await read());
    const gauge: Gauge<Label> = new Gauge({ name, help, labelNames, registers: [this.registry], collect });
  }
}

/** Reads again when the last rows are older; when that fails they stay. */
function sampled<Row>(ageMaxMs: number, read: () => Promise<Row[]>): () => Promise<Row[]> {
  let rows: Promise<Row[]> = Promise.resolve([]);
  let readAtMs = -Infinity;
  return () => {
    if (performance.now() - readAtMs < ageMaxMs) return rows;
    const last = rows;
    readAtMs = performance.now();
    return (rows = read().catch(() => last));
  };
}

function sumOf(rows: readonly JobCounts[]): number {
  return rows.reduce((sum, { jobs }) => sum + jobs, 0);
}
