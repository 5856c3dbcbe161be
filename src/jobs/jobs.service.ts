import { randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { Actor } from '../domain/caller.js';
import { bytesToBase62 } from '../domain/base62.js';
import { toPage } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { JobDto, JobsPageDto } from './dto/job.dto.js';
import {
  IdempotencyConflictError,
  JOB_ID,
  JobFinishedError,
  JobNotFoundError,
  parseCursor,
  ResultsExpiredError,
  StoredResultsLimitError,
  TooManyJobsError,
  toCursor,
} from './job.js';
import { newJob, type WantedJob } from './job-request.js';
import { JobWorker } from './job-worker.js';
import {
  JobRepository,
  STORED_JOBS_MAX,
  type AwaitedVideo,
  type ChangedJob,
  type StoredResults,
} from './job.repository.js';

/** A part of the results, in the order in which they became final. */
export interface JobResultsPage extends Omit<StoredResults, 'expired' | 'isFinal'> {
  /** The `after` of the next page; null at the end of a finished job. */
  next: number | null;
}

/** Bounds the memory of one read of results, which ends after the entry that exceeds it. */
export const READ_BYTES_MAX = 8 * 1024 * 1024;

/** Creates archive jobs and reads, cancels, resumes and deletes them. */
@Injectable()
export class JobsService {
  private readonly logger = new Logger(JobsService.name);

  constructor(
    private readonly store: JobRepository,
    private readonly worker: JobWorker,
    private readonly environment: Environment,
  ) {}

  /**
   * Creates a job. The same idempotency key with the same request gives the same job again.
   *
   * @param payer the key that creates the job, and the organization that is charged
   * @throws TooManyJobsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the organization
   * was deleted, and what `newJob` throws
   */
  async create(wanted: WantedJob, payer: Payer, idempotencyKey?: string): Promise<JobDto> {
    const created = newJob(wanted);
    const id = `job_${bytesToBase62(randomBytes(16))}`;
    const { outcome, job } = await this.store.create(id, created, payer, idempotencyKey);
    if (outcome === 'conflict') throw new IdempotencyConflictError();
    if (outcome === 'too_many_stored') throw new StoredResultsLimitError({ jobs: STORED_JOBS_MAX });
    if (outcome === 'too_much_stored') throw this.tooMuchStored();
    if (!job) throw new TooManyJobsError(this.environment.JOBS_PER_ORGANIZATION);
    if (outcome === 'created') {
      this.logger.log({ event: 'job_created', jobId: id, ...payer, onQuota: created.request.onQuota });
      this.worker.wake();
    }
    return job;
  }

  /** Lists the jobs of an organization, newest first. @throws UnknownCursorError */
  async list(organizationId: string, page: { limit: number; after?: string | undefined }): Promise<JobsPageDto> {
    const { limit, after } = page;
    const rows = await this.store.list(
      organizationId,
      limit + 1,
      after === undefined ? undefined : parseCursor(after, JOB_ID),
    );
    const { items: jobs, next } = toPage(rows, limit, toCursor);
    return { jobs, next };
  }

  /** @throws JobNotFoundError */
  async get(organizationId: string, id: string): Promise<JobDto> {
    return found(id, (known) => this.store.find(organizationId, known));
  }

  /**
   * Cancels a job; one that is canceled stays so. What its running slice has fetched is charged and stored.
   *
   * @param by the organization that the job belongs to, or the operator, for a job of any organization
   * @throws JobNotFoundError | JobFinishedError
   */
  async cancel(by: string | Actor, id: string): Promise<ChangedJob> {
    const canceled = await found(id, (known) => this.store.cancel(by, known));
    const { state } = canceled.job;
    if (state !== 'canceled') throw new JobFinishedError('cancel', state);
    return canceled;
  }

  /**
   * Lets a paused, canceled or failed job go on where it ended; an unfinished one does not change.
   *
   * @throws JobNotFoundError | JobFinishedError when it is completed | ResultsExpiredError | TooManyJobsError |
   * StoredResultsLimitError
   */
  async resume(organizationId: string, id: string): Promise<JobDto> {
    const { outcome, job } = await found(id, (known) => this.store.resume(organizationId, known));
    if (outcome === 'finished') throw new JobFinishedError('resume', job.state);
    if (outcome === 'expired') throw new ResultsExpiredError(job.expiresAt ?? '');
    if (outcome === 'too_many') throw new TooManyJobsError(this.environment.JOBS_PER_ORGANIZATION);
    if (outcome === 'too_much_stored') throw this.tooMuchStored();
    this.worker.wake();
    return job;
  }

  /** Deletes a job and its results. What its running slice fetches is charged, as after a cancel. @throws JobNotFoundError */
  async delete(organizationId: string, id: string): Promise<void> {
    await found(id, async (known) => (await this.store.delete(organizationId, known)) || undefined);
    this.logger.log({ event: 'job_deleted', jobId: id, organizationId });
  }

  /**
   * The entries in the order in which they became final.
   *
   * @param page.after the `next` of the previous page
   * @throws JobNotFoundError | ResultsExpiredError
   */
  async results(
    organizationId: string,
    id: string,
    page: { limit: number; after?: number | undefined },
  ): Promise<JobResultsPage> {
    const { limit: count, after = 0 } = page;
    const options = { count, after, bytesMax: READ_BYTES_MAX };
    const { job, expired, isFinal, entries } = await found(id, (known) =>
      this.store.results(organizationId, known, options),
    );
    if (expired) throw new ResultsExpiredError(job.expiresAt ?? '');
    const next = entries.at(-1)?.sequence ?? after;
    const { succeeded, failed } = job.summary;
    return { job, entries, next: isFinal && next >= succeeded + failed ? null : next };
  }

  /** Up to `count` videos of a job that have failed and are tried again, in the order of the list. */
  awaitedVideos(id: string, count: number): Promise<AwaitedVideo[]> {
    return this.store.awaitedVideos(id, count);
  }

  private tooMuchStored(): StoredResultsLimitError {
    return new StoredResultsLimitError({ megabytes: this.environment.JOB_RESULTS_MAX_MEGABYTES });
  }
}

/** What a statement returns for a job; only the form of an ID is looked up. @throws JobNotFoundError */
function found<T>(id: string, lookUp: (id: string) => Promise<T | undefined>): Promise<T> {
  return foundById(JOB_ID.test(id), JobNotFoundError, () => lookUp(id));
}

/** What a statement returns for what has an ID. @throws the error when there is nothing, or the text is no such ID */
export async function foundById<T>(
  isId: boolean,
  NotFound: new () => Error,
  lookUp: () => Promise<T | undefined>,
): Promise<T> {
  const result = isId ? await lookUp() : undefined;
  if (result === undefined) throw new NotFound();
  return result;
}
