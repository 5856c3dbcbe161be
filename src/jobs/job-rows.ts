import type { Logger } from '@nestjs/common';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import { channelSchema } from '../transcripts/sources/channel-uploads.js';
import { checkAgainSeconds, type Job, type JobState } from './job.js';
import type { ChangedRow, JobRow } from './job-queries.js';

/** A job, and its state before the operation that returned it. */
export interface ChangedJob {
  job: Job;
  organizationId: string;
  oldState: JobState;
  /** Until its next slice; null when it has none. */
  dueInSeconds: number | null;
}

export function toChangedJob(row: ChangedRow): ChangedJob {
  const { organization_id: organizationId, old_state: oldState, due_in_seconds: dueInSeconds } = row;
  return { job: toJob(row), organizationId, oldState, dueInSeconds };
}

/** Logs the change of a job's state; nothing when it is the same as before. */
export function logStateChange(logger: Logger, { job, organizationId, oldState }: ChangedJob): void {
  const { id: jobId, state, reason } = job;
  if (state !== oldState)
    logger.log({ event: 'job_state_changed', jobId, organizationId, from: oldState, to: state, reason });
}

export function toJob(row: JobRow): Job {
  const { total, succeeded, failed, cached, fetched } = row;
  return {
    id: row.id,
    state: row.state,
    reason: row.reason,
    channel: (row.channel !== null && fromJson(Buffer.from(row.channel), channelSchema)) || null,
    request: {
      channel: row.reference,
      languages: row.languages,
      limit: row.video_limit,
      since: row.since,
      onQuota: row.on_quota,
    },
    summary: { total, succeeded, failed, cached, fetched, pending: total - succeeded - failed },
    createdAt: row.created_at.toISOString(),
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
    expiresAt: row.expires_at?.toISOString() ?? null,
    checkAgainSeconds: checkAgainSeconds(row.state, row.due_in_seconds),
  };
}
