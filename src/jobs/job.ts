import type { Logger } from '@nestjs/common';
import type { Channel } from '../domain/transcript.js';
import { UnknownCursorError } from '../organizations/organization-errors.js';
import type { TranscriptText } from '../transcripts/cache/transcript-text.js';

/** The form of the ID of a job. */
export const JOB_ID = /^job_[0-9A-Za-z]{22}$/;

/** `paused` goes on by itself; the last three are final until the job is resumed. */
export const JOB_STATES = ['queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** Why a job is paused or has failed. */
export const JOB_REASONS = ['plan_limit_exceeded', 'upstream_blocked', 'plan_changed', 'channel_not_found'] as const;
export type JobReason = (typeof JOB_REASONS)[number];

/** The reasons of paused jobs. */
export const PAUSE_REASONS = ['plan_limit_exceeded', 'upstream_blocked', 'plan_changed'] as const satisfies JobReason[];

/** What a job does when the monthly quota of its organization is used up. */
export const ON_QUOTA = ['pause', 'fail'] as const;
export type OnQuota = (typeof ON_QUOTA)[number];

export interface JobRequest {
  /** The channel as the caller names it. */
  channel: string;
  /** Languages in order of preference; the video's original language when there are none. */
  languages: readonly string[];
  /** The number of uploads at most, the newest ones; null for all. */
  limit: number | null;
  /** The ID of a video: only the uploads that are newer; null for all. */
  since: string | null;
  onQuota: OnQuota;
}

/**
 * Counts of a job's videos. `total = succeeded + failed + pending` and `succeeded = cached + fetched` hold at any moment,
 * and the organization is charged `fetched`.
 */
export interface JobSummary {
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
  pending: number;
}

/** An archive job. Times are ISO 8601 in UTC. */
export interface Job {
  id: string;
  state: JobState;
  reason: JobReason | null;
  /** Null until the channel was read. */
  channel: Channel | null;
  request: JobRequest;
  summary: JobSummary;
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  /** When the results are removed; null until the job is finished. */
  expiresAt: string | null;
  /** When the state is worth reading again; null when the job is finished and no slice of it is running. */
  checkAgainSeconds: number | null;
}

/** A part of the list of jobs, newest first. */
export interface JobsPage {
  data: Job[];
  /** The `after` of the next page; null on the last page. */
  next: string | null;
}

/** The entry of a video as it is stored: its JSON, deflated to a part of a gzip member. */
export interface StoredEntry {
  /** The place of the video in the list of the channel, from 1. */
  position: number;
  text: TranscriptText;
}

/** A part of the results, in the channel's order. */
export interface JobResultsPage {
  job: Job;
  entries: StoredEntry[];
  /** The `after` of the next page; null when the job is finished and this page reaches its end. */
  next: number | null;
  /** Whether the job could decide no more entries when this part was read, unless it is resumed. */
  isFinal: boolean;
}

const FINISHED: readonly JobState[] = ['completed', 'canceled', 'failed'];

/** Whether a job does nothing more unless it is resumed. */
export function isFinished(state: JobState): boolean {
  return FINISHED.includes(state);
}

const CHECK_AGAIN_SECONDS_MIN = 2;
const CHECK_AGAIN_SECONDS_MAX = 3_600;

/**
 * When the state of a job is worth reading again; null when it is finished and no slice of it is running.
 *
 * @param dueInSeconds until its next slice, 0 while one is running; null when it waits for something without a time, e.g. for
 * quota
 */
export function checkAgainSeconds(state: JobState, dueInSeconds: number | null): number | null {
  if (isFinished(state) && dueInSeconds === null) return null;
  if (dueInSeconds === null) return CHECK_AGAIN_SECONDS_MAX;
  return Math.min(CHECK_AGAIN_SECONDS_MAX, Math.max(CHECK_AGAIN_SECONDS_MIN, Math.ceil(dueInSeconds)));
}

/** A job, and its state before the operation that returned it. */
export interface ChangedJob {
  job: Job;
  organizationId: string;
  oldState: JobState;
  /** Until its next slice; null when it has none. */
  dueInSeconds: number | null;
}

/** Logs the change of a job's state; nothing when it is the same as before. */
export function logStateChange(logger: Logger, { job, organizationId, oldState }: ChangedJob): void {
  const { id: jobId, state, reason } = job;
  if (state !== oldState)
    logger.log({ event: 'job_state_changed', jobId, organizationId, from: oldState, to: state, reason });
}

/**
 * The place of a job in a list: its creation in milliseconds, which is as exact as it is stored, and its ID. The place stays
 * when the job is deleted.
 */
export interface JobCursor {
  createdAt: Date;
  id: string;
}

const CURSOR = /^([0-9]{1,13})\.(job_[0-9A-Za-z]{22})$/;

export function toCursor({ createdAt, id }: Pick<Job, 'createdAt' | 'id'>): string {
  return `${Date.parse(createdAt)}.${id}`;
}

/** @throws UnknownCursorError */
export function parseCursor(text: string): JobCursor {
  const [, createdAtMs, id] = CURSOR.exec(text) ?? [];
  if (createdAtMs === undefined || id === undefined) throw new UnknownCursorError(text);
  return { createdAt: new Date(Number(createdAtMs)), id };
}

/** The part of a list of jobs, newest first, that has up to `count` of the rows, and the cursor of the next part. */
export function toJobsPage<T extends Job>(rows: readonly T[], count: number): { items: T[]; next: string | null } {
  const items = rows.slice(0, count);
  const last = items.at(-1);
  return { items, next: last && rows.length > count ? toCursor(last) : null };
}
