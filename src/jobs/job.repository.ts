import { createHash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { Actor } from '../domain/caller.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { Payer } from '../quota/quota.service.js';
import { playlistSchema } from '../transcripts/sources/playlist-source.js';
import type { JobDto } from './dto/job.dto.js';
import { requestSchema, type NewJob } from './job-request.js';
import { isTransition, type Cause, type JobState } from './job-states.js';
import {
  columnsOf,
  commonFields,
  JobTable,
  SECONDS_PER_HOUR,
  type Created,
  type JobRow,
  type Refusal,
} from './job-table.js';
import { checkAgainSeconds, STORED_JOBS_MAX, type JobReason } from './job.js';

/** A job or a subscription after a function changed it, and its state before. */
export interface ChangedRow<Reason = JobReason> extends JobRow<Reason> {
  old_state: JobState;
}

/** The columns of a `ChangedRow`, of the result of a function. */
export const CHANGED = `result.old_state, ${columnsOf('(result.job)')}`;

/** A job after an operation changed it. */
export interface ChangedJob {
  job: JobDto;
  organizationId: string;
}

/** A video that is tried again, with the code of its last failure. */
export interface AwaitedVideo {
  videoId: string;
  code: string;
}

/** Why a job cannot be resumed; null when it can. */
type ResumeOutcome = 'finished' | 'expired' | Extract<Refusal, 'too_many' | 'too_much_stored'> | null;

/** The archive jobs of organizations. */
@Injectable()
export class JobRepository extends JobTable<JobDto, JobRow> {
  protected override readonly variant = 'job';

  /** @throws InvalidApiKeyError when the organization was deleted */
  create(
    id: string,
    { request, videoIds }: NewJob,
    payer: Payer,
    idempotencyKey: string | undefined,
  ): Promise<Created<JobDto>> {
    const { JOB_RESULTS_TTL_HOURS, JOBS_PER_ORGANIZATION } = this.environment;
    const job = {
      ...{ id, idempotency_key: idempotencyKey, results_seconds: JOB_RESULTS_TTL_HOURS * SECONDS_PER_HOUR },
      ...{ videos: videoIds, video_limit: request.limit },
      // The same key with other videos is a conflict. They are stored once, as the list of the job.
      request: JSON.stringify({ ...request, videosHash: videoIds && hashOf(videoIds) }),
    };
    return this.insert(job, payer, JOBS_PER_ORGANIZATION, STORED_JOBS_MAX);
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
         INSERT INTO audit_entries
           (at, actor, action, organization_id, target, before, after, request_id, call_id, address, person)
           SELECT clock_now(), $3::text, 'job.canceled', (job).organization_id, $2, jsonb_build_object('state', old_state),
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

  /** Up to `count` videos of a job that have failed and are tried again, in the order of the list. */
  awaitedVideos(id: string, count: number): Promise<AwaitedVideo[]> {
    return this.query<AwaitedVideo>(
      `SELECT video_id AS "videoId", error_code AS code FROM job_videos
         WHERE job_id = $1 AND state = 'pending' AND error_code IS NOT NULL ORDER BY position LIMIT $2`,
      ...[id, count],
    );
  }

  protected override toDto(row: JobRow): JobDto {
    return toJob(row);
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
export function logStateChange(by: Cause, row: ChangedRow<string>): void {
  const { id, organization_id: organizationId, old_state: from, state: to, reason } = row;
  const isSubscription = row.check_seconds !== null;
  const level = isTransition(by, from, to, isSubscription) ? 'log' : 'error';
  const facts = isSubscription
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
