import type { Plan } from '../domain/plan.js';
import type { JobReason, JobState, OnQuota } from './job.js';

/** A row of `jobs` with the time until its next slice. Texts of the platform are JSON. */
export interface JobRow {
  id: string;
  organization_id: string;
  key_id: string;
  reference: string;
  languages: string[];
  video_limit: number | null;
  since: string | null;
  on_quota: OnQuota;
  state: JobState;
  reason: JobReason | null;
  channel: string | null;
  continuation: string | null;
  listed_at: Date | null;
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
  setbacks: number;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  expires_at: Date | null;
  claim: string | null;
  /** Null when the next slice has no time; 0 while a slice is running. */
  due_in_seconds: number | null;
}

/** A job after a function changed it, and its state before. */
export interface ChangedRow extends JobRow {
  old_state: JobState;
}

/** The column of `due_in_seconds`. */
const dueIn = (job: string): string => `
  CASE WHEN ${job}.claimed_until > quota_now() THEN 0 WHEN ${job}.next_run_at IS NOT NULL
       THEN greatest(0, extract(epoch FROM ${job}.next_run_at - quota_now()))::double precision END AS due_in_seconds`;

const CHANGED = `(result.job).*, ${dueIn('(result.job)')}`;

export const CREATE = `
  SELECT result.outcome, ${CHANGED} FROM job_create($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) result`;

// $1 is null for the operator, $4, who cancels the jobs of all organizations; it is recorded by the same statement.
export const CANCEL = `
  WITH result AS MATERIALIZED (
    SELECT * FROM job_cancel(coalesce($1, (SELECT organization_id FROM jobs WHERE id = $2)), $2, $3)
  ), recorded AS (
    INSERT INTO audit_entries (actor, action, organization_id, target, before, after, request_id)
      SELECT $4::text, 'job.canceled', (job).organization_id, $2, jsonb_build_object('state', old_state),
             jsonb_build_object('state', (job).state), $5::text
        FROM result WHERE outcome = 'changed' AND $4::text IS NOT NULL
  )
  SELECT result.outcome, result.old_state, ${CHANGED} FROM result`;

export const RESUME = `SELECT result.outcome, result.old_state, ${CHANGED} FROM job_resume($1, $2, $3, $4, $5) result`;

export const DELETE = 'SELECT job_delete($1, $2) AS deleted';

export interface FoundRow extends JobRow {
  expired: boolean;
  active: boolean;
}

export const FIND = `
  SELECT job.*, ${dueIn('job')}, coalesce(job.expires_at <= quota_now(), false) AS expired,
         coalesce(job.claimed_until > quota_now(), false) AS active
    FROM jobs job WHERE job.organization_id = $1 AND job.id = $2 AND job.deleted_at IS NULL`;

// $2 and $3: the place that the page follows; null for the first page.
export const LIST = `
  SELECT job.*, ${dueIn('job')} FROM jobs job
    WHERE job.organization_id = $1 AND job.deleted_at IS NULL
      AND ($2::timestamptz IS NULL OR (job.created_at, job.id) < ($2, $3::text))
    ORDER BY job.created_at DESC, job.id DESC LIMIT $4`;

export interface EntryRow {
  position: number;
  entry: Buffer;
  entry_bytes: number;
  /** A `bigint`, which the driver returns as text. */
  entry_crc: string;
  /** The number of decided entries from the first of the page on, at most one more than were requested. */
  available: number;
}

/** The only row of a job without an entry in the page. A job that does not exist, or has expired, has none. */
export type NoEntryRow = Record<keyof EntryRow, null>;

// $2: the position that the page follows. $3: whether the page ends before the first pending video. $5: the bytes of a
// page, which is exceeded by one entry at most. The lengths are known without reading the entries.
export const ENTRIES = `
  WITH decided AS (
    SELECT position, count(*) OVER ()::integer AS available,
           sum(octet_length(entry)) OVER (ORDER BY position) - octet_length(entry) AS bytes_before
      FROM (SELECT position, entry FROM job_videos
        WHERE job_id = $1 AND position > $2 AND state <> 'pending' AND (NOT $3 OR position < coalesce(
          (SELECT min(position) FROM job_videos WHERE job_id = $1 AND state = 'pending' AND position > $2), 2147483647))
        ORDER BY position LIMIT $4::integer + 1) page
  )
  SELECT video.position, video.entry, video.entry_bytes, video.entry_crc, decided.available FROM jobs job
    LEFT JOIN (decided JOIN job_videos video ON video.job_id = $1 AND video.position = decided.position)
      ON decided.bytes_before < $5
    WHERE job.id = $1 AND job.deleted_at IS NULL AND (job.expires_at IS NULL OR job.expires_at > quota_now())
    ORDER BY video.position LIMIT $4`;

/** A claimed job, with what decides whether its slice may run. */
export interface ClaimedRow extends ChangedRow {
  plan: Plan;
  organization_deleted: boolean;
  now: Date;
}

// $3: null for the jobs of all organizations.
export const CLAIM = `
  SELECT result.old_state, ${CHANGED}, organization.plan, organization.deleted_at IS NOT NULL AS organization_deleted,
         quota_now() AS now
    FROM job_claim($1, $2, $3) result JOIN organizations organization ON organization.id = (result.job).organization_id`;

export interface PendingVideoRow {
  position: number;
  video_id: string;
  /** JSON of an `Upload`. */
  upload: string;
  retries: number;
}

const PENDING = `
  SELECT position, video_id, upload, retries FROM job_videos
    WHERE job_id = $1 AND state = 'pending' AND (retry_at IS NULL OR retry_at <= quota_now())`;

export const PENDING_VIDEOS = `${PENDING} ORDER BY position LIMIT $2`;

export const PROBE_VIDEOS = `${PENDING} ORDER BY retries, position LIMIT $2`;

export const COMMIT_PAGE = `
  SELECT result.old_state, ${CHANGED} FROM job_commit_page($1, $2, $3, $4, $5, $6, $7, $8) result`;

export const COMMIT_SLICE = `
  SELECT result.old_state, result.charged, ${CHANGED}
    FROM job_commit_slice($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) result`;

/** Whether a job has listed all videos, and those that are pending are only tried again later. */
export const AWAITS_RETRIES = `
  SELECT job.state = 'running' AND job.next_run_at > quota_now() AND (job.claim IS NULL OR job.claimed_until <= quota_now()) AND NOT EXISTS (
      SELECT FROM job_videos WHERE job_id = job.id AND state = 'pending' AND (retry_at IS NULL OR retry_at <= quota_now()))
      AS waiting
    FROM jobs job WHERE job.id = $1`;

export const SWEEP = `SELECT result.old_state, ${CHANGED} FROM job_sweep($1, $2, $3, $4) result`;

export const REMOVE_BATCH = 'SELECT job_remove_batch($1) AS removed';

export interface FiguresRow {
  state: JobState;
  reason: JobReason | null;
  jobs: number;
  stored_bytes: number;
  oldest_due_seconds: number;
  /** The highest number of consecutive slices that failed. */
  setbacks_max: number;
}

export const FIGURES = `
  SELECT state, reason, count(*)::integer AS jobs, sum(stored_bytes)::double precision AS stored_bytes,
         coalesce(max(extract(epoch FROM quota_now() - next_run_at)) FILTER (
           WHERE next_run_at <= quota_now() AND (claim IS NULL OR claimed_until <= quota_now())), 0)::double precision
           AS oldest_due_seconds,
         max(setbacks) AS setbacks_max
    FROM jobs WHERE deleted_at IS NULL GROUP BY state, reason`;
