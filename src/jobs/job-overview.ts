import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { JobNotFoundError } from '../domain/errors.js';
import type { Page, PageRequest } from '../organizations/page.js';
import { parseCursor, toJobsPage } from './job-cursor.js';
import { JOB_ID, JOB_STATES, type Job, type JobState } from './job.js';
import { dueIn, type JobRow } from './job-queries.js';
import { toJob } from './job-rows.js';

/** A slice that was due for longer than this and is not running waits for a worker that does not come. */
export const STUCK_AFTER_SECONDS = 300;
const STUCK_JOBS_MAX = 20;

/** An archive job as the operator sees it. */
export interface OperatedJob extends Job {
  organizationId: string;
  /** The key that created the job. */
  keyId: string;
  /** How long its next slice has been due without running; null when none is due. */
  overdueSeconds: number | null;
}

/** Which jobs a list contains. */
export interface JobFilter {
  organizationId?: string | undefined;
  state?: JobState | undefined;
}

/** The work of all organizations. */
export interface JobStats {
  jobs: Record<JobState, number>;
  /** Slices that run, slices that are due and wait for a worker, and for how long the oldest of these has waited. */
  slices: { running: number; due: number; oldestDueSeconds: number };
  /** Videos of unfinished jobs that are not decided yet. */
  pendingVideos: number;
  /** Size of the stored results. */
  storedBytes: number;
  /** Jobs whose next slice is overdue by more than five minutes, the most overdue first; 20 at most. */
  stuck: OperatedJob[];
}

interface OperatedRow extends JobRow {
  overdue_seconds: number | null;
}

interface StatsRow {
  state: JobState;
  jobs: number;
  running: number;
  due: number;
  oldest_due_seconds: number;
  pending_videos: number;
  stored_bytes: number;
}

/** Reads the archive jobs of all organizations, for the operator. */
@Injectable()
export class JobOverview {
  constructor(private readonly database: DataSource) {}

  /** Lists jobs, newest first. @throws UnknownCursorError */
  async list({ organizationId, state }: JobFilter, { count, after = null }: PageRequest): Promise<Page<OperatedJob>> {
    const cursor = after === null ? undefined : parseCursor(after);
    const values = [organizationId ?? null, state ?? null, cursor?.createdAt ?? null, cursor?.id ?? null, count + 1];
    const rows = await queryWithDeadline<OperatedRow[]>(this.database, LIST, values);
    return toJobsPage(rows.map(toOperatedJob), count);
  }

  /** @throws JobNotFoundError */
  async get(id: string): Promise<OperatedJob> {
    const job = await this.find(id);
    if (!job) throw new JobNotFoundError();
    return job;
  }

  async stats(): Promise<JobStats> {
    const rows = await queryWithDeadline<StatsRow[]>(this.database, STATS, []);
    const stuck = await queryWithDeadline<OperatedRow[]>(this.database, STUCK, [STUCK_AFTER_SECONDS, STUCK_JOBS_MAX]);
    const count = (state: JobState): number => rows.find((row) => row.state === state)?.jobs ?? 0;
    const sum = (value: (row: StatsRow) => number): number => rows.reduce((total, row) => total + value(row), 0);
    return {
      jobs: Object.fromEntries(JOB_STATES.map((state) => [state, count(state)])) as Record<JobState, number>,
      slices: {
        running: sum(({ running }) => running),
        due: sum(({ due }) => due),
        oldestDueSeconds: Math.floor(Math.max(0, ...rows.map((row) => row.oldest_due_seconds))),
      },
      pendingVideos: sum((row) => row.pending_videos),
      storedBytes: sum((row) => row.stored_bytes),
      stuck: stuck.map(toOperatedJob),
    };
  }

  private async find(id: string): Promise<OperatedJob | undefined> {
    const [row] = JOB_ID.test(id) ? await queryWithDeadline<OperatedRow[]>(this.database, FIND, [id]) : [];
    return row && toOperatedJob(row);
  }
}

function toOperatedJob(row: OperatedRow): OperatedJob {
  const { organization_id: organizationId, key_id: keyId, overdue_seconds: overdue } = row;
  return { ...toJob(row), organizationId, keyId, overdueSeconds: overdue === null ? null : Math.floor(overdue) };
}

const IS_RUNNING = 'job.claimed_until > quota_now()';
const IS_DUE = `job.next_run_at <= quota_now() AND (job.claimed_until IS NULL OR NOT ${IS_RUNNING})`;
const OVERDUE_SECONDS = 'extract(epoch FROM quota_now() - job.next_run_at)::double precision';

const JOBS = `
  SELECT job.*, ${dueIn('job')}, CASE WHEN ${IS_DUE} THEN ${OVERDUE_SECONDS} END AS overdue_seconds
    FROM jobs job WHERE job.deleted_at IS NULL`;

const FIND = `${JOBS} AND job.id = $1`;

// $3 and $4: the place that the page follows; null for the first page.
const LIST = `
  ${JOBS} AND ($1::text IS NULL OR job.organization_id = $1) AND ($2::text IS NULL OR job.state = $2)
    AND ($3::timestamptz IS NULL OR (job.created_at, job.id) < ($3, $4::text))
    ORDER BY job.created_at DESC, job.id DESC LIMIT $5`;

const STUCK = `
  ${JOBS} AND ${IS_DUE} AND job.next_run_at < quota_now() - make_interval(secs => $1)
    ORDER BY job.next_run_at, job.id LIMIT $2`;

const STATS = `
  SELECT job.state, count(*)::integer AS jobs,
         count(*) FILTER (WHERE ${IS_RUNNING})::integer AS running,
         count(*) FILTER (WHERE ${IS_DUE})::integer AS due,
         coalesce(max(${OVERDUE_SECONDS}) FILTER (WHERE ${IS_DUE}), 0) AS oldest_due_seconds,
         coalesce(sum(job.total - job.succeeded - job.failed) FILTER (WHERE job.finished_at IS NULL), 0)::integer
           AS pending_videos,
         sum(job.stored_bytes)::double precision AS stored_bytes
    FROM jobs job WHERE job.deleted_at IS NULL GROUP BY job.state`;
