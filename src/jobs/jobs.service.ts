import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Actor } from '../domain/caller.js';
import type { PageRequest } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { JobDto, JobsPageDto } from './dto/job.dto.js';
import { newJob, storedJob, type WantedJob } from './job-request.js';
import { CHANGED, logChange, toJob, type Changed, type ChangedJob, type JobRow } from './job-row.js';
import { JobStore, type Idempotency, type OwnedResults, type Refusal } from './job-store.js';
import type { ListFilter } from './list-filter.js';
import type { ResultsRequest } from './results/results-part.js';
import { JOB_VARIANTS } from './job-variants.js';
import { JobWorker } from './work/job-worker.js';
import { JobFinishedError, ResultsExpiredError, SECONDS_PER_HOUR } from './job.js';

/** A video that is tried again, with the code of its last failure; null when it was not tried yet. */
export interface AwaitedVideo {
  videoId: string;
  code: string | null;
  /** Whether that can be done now. */
  due: boolean;
}

/** A job with why it cannot be resumed; null when it can. */
type ResumedRow = Changed & {
  outcome: 'finished' | 'expired' | Extract<Refusal, 'too_many' | 'too_much_stored'> | null;
};

/** Records the change of a job in the audit trail. @param actor the parameter with who makes it */
const recorded = (action: string, actor: string): string => `
  audit_record(${actor}, '${action}', (result.job).organization_id, $2, jsonb_build_object('state', result.old_state),
               jsonb_build_object('state', (result.job).state))`;

/** $1 null for a job of any organization. */
const CANCEL = `SELECT ${CHANGED}, ${recorded('job.canceled', '$3')} FROM job_cancel($1, $2) result`;

/** $5 who resumes it: a key pays for what is fetched from then on. */
const RESUME = `
  SELECT result.outcome, ${CHANGED}, ${recorded('job.resumed', '$5')}
    FROM job_resume($1, $2, $3, $4, $5::json ->> 'keyId') result`;

/** $3 who changes it, $4 the fields of the request that are set. */
const CHANGE = `
  SELECT ${CHANGED}, audit_record($3, 'job.changed', $1, $2, jsonb_build_object('keep', coalesce((result.old_job).request::jsonb -> 'keep', 'false')),
                                  jsonb_build_object('keep', (result.job).request::jsonb -> 'keep'))
    FROM job_change($1, $2, $4) result`;

const AWAITED_VIDEOS = `
  SELECT video_id AS "videoId", error_code AS code, coalesce(retry_at <= clock_now(), true) AS due FROM job_videos
    WHERE job_id = $1 AND state = 'pending' ORDER BY position`;

/** Creates archive jobs and reads, cancels, resumes and deletes them. */
@Injectable()
export class JobsService {
  private readonly store: JobStore<JobDto, JobRow>;

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly worker: JobWorker,
  ) {
    this.store = new JobStore(JOB_VARIANTS.job, database, environment);
  }

  /**
   * Creates a job. The same idempotency key with the same request gives the same job again.
   *
   * @param payer the key that creates the job, and the organization that is charged
   * @throws TooManyJobsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the organization
   * was deleted, and what `newJob` throws
   */
  async create(wanted: WantedJob, payer: Payer, idempotency?: Idempotency, actor?: Actor): Promise<JobDto> {
    const { request, videoIds } = newJob(wanted);
    const columns = {
      // The same key with other videos is a conflict. They are stored once, as the list of the job.
      request: JSON.stringify({ ...storedJob(request), videosHash: videoIds && hashOf(videoIds) }),
      videos: videoIds,
      labels: request.labels,
      video_limit: request.limit,
      results_seconds: this.environment.JOB_RESULTS_TTL_HOURS * SECONDS_PER_HOUR,
    };
    const job = await this.store.create(columns, payer, idempotency, actor, { onQuota: request.onQuota });
    this.worker.wake();
    return job;
  }

  /** Lists the jobs of an organization, newest first. @throws UnknownCursorError */
  async list(organizationId: string, page: PageRequest & ListFilter): Promise<JobsPageDto> {
    const { items: jobs, next } = await this.store.list(organizationId, page);
    return { jobs, next };
  }

  /** @throws JobNotFoundError */
  get(organizationId: string, id: string): Promise<JobDto> {
    return this.store.get(organizationId, id);
  }

  /**
   * Cancels a job; one that is canceled stays so. What its running slice has fetched is charged and stored.
   *
   * @param organizationId null for a job of any organization
   * @throws JobNotFoundError | JobFinishedError
   */
  async cancel(organizationId: string | null, id: string, actor?: Actor): Promise<ChangedJob> {
    const row = await this.store.change<Changed>(CANCEL, [organizationId, id, actor ?? null]);
    const canceled = logChange('cancel', row);
    const { state } = canceled.job;
    if (state !== 'canceled') throw new JobFinishedError('cancel', state);
    return canceled;
  }

  /**
   * Lets a paused, canceled or failed job go on where it ended; an unfinished one does not change. The key of the actor pays for
   * what is fetched from then on.
   *
   * @throws JobNotFoundError | JobFinishedError when it is completed | ResultsExpiredError | TooManyJobsError |
   * StoredResultsLimitError
   */
  async resume(organizationId: string, id: string, actor?: Actor): Promise<JobDto> {
    const values = [this.environment.JOBS_PER_ORGANIZATION, this.store.resultsBytesMax, actor ?? null];
    const row = await this.store.change<ResumedRow>(RESUME, [organizationId, id, ...values]);
    const { job } = logChange('resume', row);
    if (row.outcome === 'finished') throw new JobFinishedError('resume', job.state);
    if (row.outcome === 'expired') throw new ResultsExpiredError(job.expiresAt ?? '');
    if (row.outcome) throw this.store.refused(row.outcome);
    this.worker.wake();
    return job;
  }

  /** Changes whether the texts of a job are kept: also those that are stored, and none that comes later. @throws JobNotFoundError */
  async change(organizationId: string, id: string, keep: boolean, actor?: Actor): Promise<JobDto> {
    const values = [actor ?? null, JSON.stringify({ keep })];
    return toJob(await this.store.change<JobRow>(CHANGE, [organizationId, id, ...values]));
  }

  /** Deletes a job with its results, without an event. What its running slice fetches is charged. @throws JobNotFoundError */
  delete(organizationId: string, id: string, actor?: Actor): Promise<void> {
    return this.store.delete(organizationId, id, actor);
  }

  /** The entries of a job in the order in which they became final. @throws JobNotFoundError | ResultsExpiredError | CursorUnknownError */
  results(organizationId: string, id: string, page: ResultsRequest): Promise<OwnedResults<JobDto>> {
    return this.store.results(organizationId, id, page);
  }

  /** The pending videos of a job or a subscription, in the order of the list. */
  awaitedVideos(id: string): Promise<AwaitedVideo[]> {
    return queryWithDeadline(this.database, AWAITED_VIDEOS, [id]);
  }
}

function hashOf(videoIds: readonly string[]): string {
  return createHash('sha256').update(videoIds.join()).digest('base64url');
}
