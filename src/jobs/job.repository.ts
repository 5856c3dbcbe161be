import { createHash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Actor } from '../domain/caller.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { TranscriptText } from '../transcripts/cache/transcript-text.js';
import type { Payer } from '../quota/quota.service.js';
import { channelSchema } from '../transcripts/sources/channel-uploads.js';
import { playlistSchema } from '../transcripts/sources/playlist-source.js';
import type { JobDto } from './dto/job.dto.js';
import { requestSchema, type NewJob } from './job-request.js';
import { isTransition, type Cause, type JobState } from './job-states.js';
import { checkAgainSeconds, type JobCursor, type JobReason } from './job.js';

/** A row of `jobs` with the time until its next slice. */
export interface JobRow {
  id: string;
  organization_id: string;
  key_id: string;
  /** JSON. */
  request: string;
  state: JobState;
  reason: JobReason | null;
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
  seen_position: number | null;
  seen_at: Date | null;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  expires_at: Date | null;
  /** Null when the next slice has no time; 0 while a slice is running. */
  due_in_seconds: number | null;
}

/** A job after a function changed it, and its state before. */
export interface ChangedRow extends JobRow {
  old_state: JobState;
}

/** What is logged about a change of the state of a job or a subscription. */
export type ChangedState = Pick<ChangedRow, 'id' | 'organization_id' | 'old_state' | 'state' | 'check_seconds'> & {
  reason: string | null;
};

/** The columns of a `JobRow`, of the row that the expression names. */
export function columnsOf(job: string): string {
  return `${job}.*, CASE WHEN ${job}.claimed_until > clock_now() THEN 0 WHEN ${job}.next_run_at IS NOT NULL
    THEN greatest(0, extract(epoch FROM ${job}.next_run_at - clock_now()))::double precision END AS due_in_seconds`;
}

/** The columns of a `ChangedRow`, of the result of a function. */
export const CHANGED = `result.old_state, ${columnsOf('(result.job)')}`;

/** A job after an operation changed it. */
export interface ChangedJob {
  job: JobDto;
  organizationId: string;
}

/** The entry of a video as it is stored: its JSON, deflated to a part of a gzip member. */
export interface StoredEntry {
  /** Counts the results of the job, from 1, in the order in which they became final: a reader goes on after it. */
  sequence: number;
  /** The place of the video in the list, from 1. */
  position: number;
  text: TranscriptText;
}

/** A video that is tried again, with the code of its last failure. */
export interface AwaitedVideo {
  videoId: string;
  code: string;
}

/** Up to `count` entries after a sequence, in the order in which they became final, of about `bytesMax` bytes. */
export interface ResultsRange {
  count: number;
  after: number;
  bytesMax: number;
}

/** A job with a part of its results. */
export interface StoredResults {
  job: JobDto;
  /** Whether the results have expired. */
  expired: boolean;
  /** Whether the job can decide no more entries, unless it is resumed. The running slice of a canceled job still can. */
  isFinal: boolean;
  entries: StoredEntry[];
}

type ResultRow<Row> = Row &
  (
    | { sequence: number; position: number; entry: Buffer; entry_bytes: number; entry_crc: string }
    | { sequence: null; position: null; entry: null; entry_bytes: null; entry_crc: null }
  );

type CreateOutcome = 'created' | 'known' | 'conflict' | 'too_many' | 'too_many_stored' | 'too_much_stored';
/** Why a job cannot be resumed; null when it can. */
type ResumeOutcome = 'finished' | 'expired' | 'too_many' | 'too_much_stored' | null;

/** Finished and unfinished jobs of an organization whose results are stored; each costs time in every list. */
export const STORED_JOBS_MAX = 1_000;
export const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_MEGABYTE = 1024 * 1024;

/** The tables of the jobs, as organizations read and change them. Every change is one statement. */
@Injectable()
export class JobRepository {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /** Stored results of an organization beyond which it cannot have another unfinished job. */
  get resultsBytesMax(): number {
    return this.environment.JOB_RESULTS_MAX_MEGABYTES * BYTES_PER_MEGABYTE;
  }

  /**
   * Creates a job, or finds the one that was created with the same idempotency key.
   *
   * @throws InvalidApiKeyError when the organization was deleted
   */
  async create(
    id: string,
    { request, videoIds }: NewJob,
    { organizationId, keyId }: Payer,
    idempotencyKey: string | undefined,
  ): Promise<{ outcome: CreateOutcome; job: JobDto | undefined }> {
    const { JOB_RESULTS_TTL_HOURS, JOBS_PER_ORGANIZATION } = this.environment;
    const job = {
      ...{ id, organization_id: organizationId, key_id: keyId, idempotency_key: idempotencyKey },
      ...{ videos: videoIds, video_limit: request.limit },
      // The same key with other videos is a conflict. They are stored once, as the list of the job.
      request: JSON.stringify({ ...request, videosHash: videoIds && hashOf(videoIds) }),
      results_seconds: JOB_RESULTS_TTL_HOURS * SECONDS_PER_HOUR,
    };
    const [row] = await this.change<JobRow & { outcome: CreateOutcome }>(
      organizationId,
      `SELECT result.outcome, ${columnsOf('(result.job)')} FROM job_create($1, $2, $3, $4) result`,
      ...[JSON.stringify(job), JOBS_PER_ORGANIZATION, STORED_JOBS_MAX, this.resultsBytesMax],
    );
    if (!row) throw new InvalidApiKeyError();
    const { outcome } = row;
    return { outcome, job: outcome === 'created' || outcome === 'known' ? toJob(row) : undefined };
  }

  async find(organizationId: string, id: string): Promise<JobDto | undefined> {
    const row = await this.findRow<JobRow>(organizationId, id);
    return row && toJob(row);
  }

  /** The row of a job or a subscription. */
  async findRow<Row>(organizationId: string, id: string): Promise<Row | undefined> {
    const [row] = await this.query<Row>(
      `SELECT ${columnsOf('job')} FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`,
      ...[organizationId, id],
    );
    return row;
  }

  /** Up to `count` jobs, newest first, after a place in the list. */
  async list(organizationId: string, count: number, after: JobCursor | undefined): Promise<JobDto[]> {
    const rows = await this.listRows<JobRow>(organizationId, count, after, { subscriptions: false });
    return rows.map(toJob);
  }

  /** The rows of jobs, or those of subscriptions. */
  listRows<Row>(
    organizationId: string,
    count: number,
    after: JobCursor | undefined,
    { subscriptions }: { subscriptions: boolean },
  ): Promise<Row[]> {
    return this.query<Row>(
      `SELECT ${columnsOf('job')} FROM jobs job
         WHERE organization_id = $1 AND deleted_at IS NULL AND (check_seconds IS NOT NULL) = $5
           AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3::text))
         ORDER BY created_at DESC, id DESC LIMIT $4`,
      ...[organizationId, after?.createdAt ?? null, after?.id ?? null, count, subscriptions],
    );
  }

  /**
   * Cancels an unfinished job. Resolves to undefined for an unknown one.
   *
   * @param by the organization that the job belongs to, or the operator, who cancels a job of any organization; that is
   * recorded in the audit trail by the same statement
   */
  async cancel(by: string | Actor, id: string): Promise<ChangedJob | undefined> {
    const [organizationId, operator] = typeof by === 'string' ? [by, undefined] : [null, by];
    const [row] = await this.change<ChangedRow>(
      organizationId,
      `WITH result AS MATERIALIZED (SELECT * FROM job_cancel($1, $2)), recorded AS (
         INSERT INTO audit_entries (actor, action, organization_id, target, before, after, request_id, call_id, address, person)
           SELECT $3::text, 'job.canceled', (job).organization_id, $2, jsonb_build_object('state', old_state),
                  jsonb_build_object('state', (job).state), $4::text, $5::text, $6::text, $7::jsonb
             FROM result WHERE (job).state <> old_state AND $3::text IS NOT NULL
       )
       SELECT ${CHANGED} FROM result`,
      ...[organizationId, id, operator?.kind ?? null, operator?.requestId ?? null],
      ...[operator?.callId ?? null, operator?.address ?? null, operator?.person ?? null],
    );
    return row && logChange('cancel', row);
  }

  /** Resolves to undefined for an unknown job. */
  async resume(organizationId: string, id: string): Promise<(ChangedJob & { outcome: ResumeOutcome }) | undefined> {
    const [row] = await this.change<ChangedRow & { outcome: ResumeOutcome }>(
      organizationId,
      `SELECT result.outcome, ${CHANGED} FROM job_resume($1, $2, $3, $4) result`,
      ...[organizationId, id, this.environment.JOBS_PER_ORGANIZATION, this.resultsBytesMax],
    );
    return row && { outcome: row.outcome, ...logChange('resume', row) };
  }

  /**
   * Deletes a job; its rows are removed later, in batches. An unfinished one ends without an event. Its running slice keeps
   * its claim, so that what it fetches is charged.
   *
   * @returns false for an unknown job
   */
  async delete(organizationId: string, id: string): Promise<boolean> {
    const deleted = await this.change(
      organizationId,
      `WITH deleted AS (
         UPDATE jobs SET deleted_at = clock_now(), idempotency_key = NULL,
             state = CASE WHEN finished_at IS NULL THEN 'canceled' ELSE state END
           WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING id
       ) SELECT id FROM deleted`,
      ...[organizationId, id],
    );
    return deleted.length > 0;
  }

  /** @returns undefined for an unknown job */
  async results(organizationId: string, id: string, range: ResultsRange): Promise<StoredResults | undefined> {
    const read = await this.readResults<JobRow & { expired: boolean; is_final: boolean }>(organizationId, id, range);
    if (!read) return undefined;
    const { row, entries } = read;
    return { job: toJob(row), expired: row.expired, isFinal: row.is_final, entries };
  }

  /** The row of a job or a subscription with a part of its entries, whose lengths are known without reading them. */
  async readResults<Row>(
    organizationId: string,
    id: string,
    { count, after, bytesMax }: ResultsRange,
  ): Promise<{ row: Row; entries: StoredEntry[] } | undefined> {
    const rows = await this.query<ResultRow<Row>>(
      `WITH found AS MATERIALIZED (
         SELECT ${columnsOf('job')}, coalesce(expires_at <= clock_now(), false) AS expired,
                finished_at IS NOT NULL AND coalesce(claimed_until <= clock_now(), true) AS is_final
           FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
       ), decided AS (
         SELECT position, sum(octet_length(entry)) OVER (ORDER BY sequence) - octet_length(entry) AS bytes_before
           FROM (SELECT sequence, position, entry FROM job_videos WHERE job_id = $2
                   AND sequence > greatest($3, (SELECT expired_sequence FROM found))
                   ORDER BY sequence LIMIT $4) page
       )
       SELECT found.*, video.sequence, video.position, video.entry, video.entry_bytes, video.entry_crc
         FROM found LEFT JOIN (decided JOIN job_videos video ON video.job_id = $2 AND video.position = decided.position)
           ON decided.bytes_before < $5
         ORDER BY video.sequence`,
      ...[organizationId, id, after, count, bytesMax],
    );
    const [first] = rows;
    if (!first) return undefined;
    const entries = rows.flatMap((row) => {
      if (row.sequence === null) return [];
      const { sequence, position, entry: deflated, entry_bytes: jsonBytes, entry_crc } = row;
      return [{ sequence, position, text: { deflated, jsonBytes, crc32: Number(entry_crc) } }];
    });
    return { row: first, entries };
  }

  /** Up to `count` videos of a job that have failed and are tried again, in the order of the list. */
  awaitedVideos(id: string, count: number): Promise<AwaitedVideo[]> {
    return this.query<AwaitedVideo>(
      `SELECT video_id AS "videoId", error_code AS code FROM job_videos
         WHERE job_id = $1 AND state = 'pending' AND error_code IS NOT NULL ORDER BY position LIMIT $2`,
      ...[id, count],
    );
  }

  private query<Row>(statement: string, ...values: unknown[]): Promise<Row[]> {
    return queryWithDeadline<Row[]>(this.database, statement, values);
  }

  /** Runs a statement that locks the organization or one of its jobs. @param organizationId null for an operator */
  change<Row>(organizationId: string | null, statement: string, ...values: unknown[]): Promise<Row[]> {
    return queryWithDeadline<Row[]>(this.database, statement, values, organizationId ?? undefined);
  }
}

function hashOf(videoIds: readonly string[]): string {
  return createHash('sha256').update(videoIds.join()).digest('base64url');
}

const logger = new Logger('Jobs');

/** Logs the change of a job's state. @returns the changed job */
export function logChange(by: Cause, row: ChangedRow): ChangedJob {
  logStateChange(by, row);
  return { job: toJob(row), organizationId: row.organization_id };
}

/** Logs the change of the state of a job or a subscription, as an error when it should not happen. */
export function logStateChange(by: Cause, row: ChangedState): void {
  const { id, organization_id: organizationId, old_state: from, state: to, reason } = row;
  const level = isTransition(by, from, to) ? 'log' : 'error';
  const facts =
    row.check_seconds !== null
      ? { event: 'subscription_state_changed', subscriptionId: id }
      : { event: 'job_state_changed', jobId: id };
  if (from !== to) logger[level]({ ...facts, organizationId, by, from, to, reason });
}

function toJob(row: JobRow): JobDto {
  const { id, state, reason } = row;
  const request = fromJson(Buffer.from(row.request), requestSchema);
  if (!request) throw new Error(`The request of the job ${id} cannot be read.`);
  const { channel, summary, createdAt } = commonFields(row);
  return {
    id,
    state,
    reason,
    channel,
    playlist: (row.playlist !== null && fromJson(Buffer.from(row.playlist), playlistSchema)) || null,
    request,
    summary,
    createdAt,
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
    expiresAt: row.expires_at?.toISOString() ?? null,
    checkAgainSeconds: checkAgainSeconds(state, row.due_in_seconds),
  };
}

/** The fields that jobs and subscriptions have. */
export function commonFields({
  channel,
  total,
  succeeded,
  failed,
  cached,
  fetched,
  created_at,
}: Omit<JobRow, 'state' | 'reason'>) {
  return {
    channel: (channel !== null && fromJson(Buffer.from(channel), channelSchema)) || null,
    summary: { total, succeeded, failed, cached, fetched, pending: total - succeeded - failed },
    createdAt: created_at.toISOString(),
  };
}
