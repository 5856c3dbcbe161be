import { Logger } from '@nestjs/common';
import { Channel, Playlist } from '../domain/transcript.js';
import { fromStored } from '../http/routes/validation.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { JobDto } from './dto/job.dto.js';
import type { SubscriptionDto, SubscriptionRequestDto } from './dto/subscription.dto.js';
import { CreateSubscriptionDto } from './dto/subscriptions-request.dto.js';
import type { KeepState } from './dto/jobs-request.dto.js';
import type { Labels } from './dto/labels.js';
import { readStoredJob } from './job-request.js';
import {
  type Cause,
  type JobState,
  checkAgainSeconds,
  type JobReason,
  SECONDS_PER_MINUTE,
  type SubscriptionReason,
} from './job.js';

/** A row of `jobs`, an archive job or a subscription, with the time until its next slice. */
export interface JobRow<Reason = JobReason> {
  id: string;
  organization_id: string;
  key_id: string;
  /** JSON. */
  request: string;
  /** Of a subscription that was changed: the one that created it. */
  created_request: string | null;
  labels: Labels;
  /** Whether the library of the organization has no room. */
  library_full: boolean;
  state: JobState;
  reason: Reason | null;
  /** JSON. */
  channel: string | null;
  /** JSON. */
  playlist: string | null;
  continuation: string | null;
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
  setbacks: number;
  /** Null for an archive job. */
  check_seconds: number | null;
  /** Results of a subscription up to this one were removed. */
  expired_sequence: number;
  expired_mark: string | null;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  expires_at: Date | null;
  hidden: number;
  /** Null when the next slice has no time; 0 while a slice is running. */
  due_in_seconds: number | null;
}

export interface SubscriptionRow extends JobRow<SubscriptionReason> {
  check_seconds: number;
  /** Up to which upload of its source it has taken them; -1 before its start. */
  place: number;
  /** Null when its source was removed meanwhile, with it. */
  source: { checked_at: string | null; next_check_at: string | null; reason: SubscriptionReason | null } | null;
  start_found: boolean | null;
}

/** The columns of a `JobRow`, of the row that the expression names. */
export function columnsOf(job: string): string {
  return `${job}.*, CASE WHEN ${job}.claimed_until > clock_now() THEN 0 WHEN ${job}.next_run_at IS NOT NULL
    THEN greatest(0, extract(epoch FROM ${job}.next_run_at - clock_now()))::double precision END AS due_in_seconds,
    CASE WHEN ${job}.source_id IS NOT NULL THEN source_facts(${job}.source_id) END AS source,
    EXISTS (SELECT FROM libraries WHERE organization_id = ${job}.organization_id AND full_at IS NOT NULL) AS library_full`;
}

/** A job or a subscription after a function changed it, and its state before. */
export type Changed<Row = JobRow> = Row & { old_state: JobState };

/** The columns of a `Changed` row, of the result of a function. */
export const CHANGED = `result.old_state, ${columnsOf('(result.job)')}`;

export interface ChangedJob {
  job: JobDto;
  organizationId: string;
}

const logger = new Logger('Jobs');

/** Logs the change of a job's state. @returns the changed job */
export function logChange(by: Cause, row: Changed): ChangedJob {
  logStateChange(by, row);
  return { job: toJob(row), organizationId: row.organization_id };
}

export function logStateChange(by: Cause, row: Changed<JobRow<string>>): void {
  const { id, organization_id: organizationId, old_state: from, state: to, reason } = row;
  const facts =
    row.check_seconds === null
      ? { event: 'job_state_changed', jobId: id }
      : { event: 'subscription_state_changed', subscriptionId: id };
  if (from !== to) logger.log({ ...facts, organizationId, by, from, to, reason });
}

/** The archive job of a row. @throws Error when its request cannot be read */
export function toJob(row: JobRow): JobDto {
  const { id, state, reason } = row;
  const request = readStoredJob(row.request);
  const { channel, playlist, summary, createdAt } = commonFields(row);
  return {
    id,
    state,
    reason,
    channel,
    playlist,
    request,
    labels: row.labels,
    keep: keepStateOf(request.keep, row),
    summary,
    hidden: row.hidden,
    createdAt,
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
    expiresAt: row.expires_at?.toISOString() ?? null,
    checkAgainSeconds: checkAgainSeconds(state, row.due_in_seconds),
  };
}

/** Reads the request of a row. @throws Error */
export function readStoredSubscription(row: string): SubscriptionRequestDto {
  return fromStored(CreateSubscriptionDto, JSON.parse(row) as object);
}

/** The subscription of a row. @throws Error when its request cannot be read */
export function toSubscription(row: SubscriptionRow): SubscriptionDto {
  const { id, source } = row;
  const request = readStoredSubscription(row.request);
  const { channel, playlist, summary, createdAt } = commonFields(row);
  const isChecked = row.reason !== 'paused_by_caller' && row.reason !== 'plan_changed';
  const time = (at: string | null | undefined): string | null => (at ? new Date(at).toISOString() : null);
  return {
    id,
    state: row.state === 'running' ? 'active' : 'paused',
    reason: row.reason ?? source?.reason ?? null,
    channel,
    playlist,
    request: { ...request, checkMinutes: row.check_seconds / SECONDS_PER_MINUTE },
    labels: row.labels,
    keep: keepStateOf(request.keep, row),
    startFound: row.start_found,
    summary,
    createdAt,
    // Its source can have been read for others before.
    checkedAt: row.place < 0 ? null : time(source?.checked_at),
    nextCheckAt: isChecked ? time(source?.next_check_at) : null,
  };
}

function keepStateOf(keep: boolean | null, { library_full }: JobRow<string>): KeepState {
  if (keep !== true) return 'off';
  return library_full ? 'full' : 'on';
}

function commonFields({ channel, playlist, total, succeeded, failed, cached, fetched, created_at }: JobRow<string>) {
  return {
    channel: (channel !== null && fromJson(Buffer.from(channel), Channel)) || null,
    playlist: (playlist !== null && fromJson(Buffer.from(playlist), Playlist)) || null,
    summary: { total, succeeded, failed, cached, fetched, pending: total - succeeded - failed },
    createdAt: created_at.toISOString(),
  };
}
