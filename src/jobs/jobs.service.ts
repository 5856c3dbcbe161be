import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { Actor } from '../domain/caller.js';
import type { PageRequest } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { JobDto, JobsPageDto } from './dto/job.dto.js';
import { JobFinishedError, ResultsExpiredError, TooManyJobsError } from './job.js';
import { JobOperations } from './job-operations.js';
import { newJob, type WantedJob } from './job-request.js';
import type { StoredResults } from './job-table.js';
import { JobWorker } from './job-worker.js';
import { JobRepository, type AwaitedVideo, type ChangedJob } from './job.repository.js';

/** A part of the results, in the order in which they became final. */
export interface JobResultsPage extends Pick<StoredResults<JobDto>, 'job' | 'entries'> {
  /** The `after` of the next page; null at the end of a finished job. */
  next: number | null;
}

/** Creates archive jobs and reads, cancels, resumes and deletes them. */
@Injectable()
export class JobsService extends JobOperations<JobDto> {
  protected override readonly variant = 'job';

  constructor(
    protected override readonly store: JobRepository,
    worker: JobWorker,
    environment: Environment,
  ) {
    super(store, worker, environment);
  }

  /**
   * Creates a job. The same idempotency key with the same request gives the same job again.
   *
   * @param payer the key that creates the job, and the organization that is charged
   * @throws TooManyJobsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the organization
   * was deleted, and what `newJob` throws
   */
  async create(wanted: WantedJob, payer: Payer, idempotencyKey?: string): Promise<JobDto> {
    const created = newJob(wanted);
    const { onQuota } = created.request;
    return this.add(payer, (id) => this.store.create(id, created, payer, idempotencyKey), { onQuota });
  }

  /** Lists the jobs of an organization, newest first. @throws UnknownCursorError */
  async list(organizationId: string, page: PageRequest): Promise<JobsPageDto> {
    const { items: jobs, next } = await this.page(organizationId, page);
    return { jobs, next };
  }

  /**
   * Cancels a job; one that is canceled stays so. What its running slice has fetched is charged and stored.
   *
   * @param by the organization that the job belongs to, or the operator, for a job of any organization
   * @throws JobNotFoundError | JobFinishedError
   */
  async cancel(by: string | Actor, id: string): Promise<ChangedJob> {
    const canceled = await this.found(id, () => this.store.cancel(by, id));
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
    const { outcome, job } = await this.found(id, () => this.store.resume(organizationId, id));
    if (outcome === 'finished') throw new JobFinishedError('resume', job.state);
    if (outcome === 'expired') throw new ResultsExpiredError(job.expiresAt ?? '');
    if (outcome) throw this.refused(outcome);
    this.worker.wake();
    return job;
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
    { limit, after = 0 }: { limit: number; after?: number | undefined },
  ): Promise<JobResultsPage> {
    const results = await this.found(id, () => this.store.results(organizationId, id, limit, after));
    const { job, expired, isFinal, entries } = results;
    if (expired) throw new ResultsExpiredError(job.expiresAt ?? '');
    const last = job.summary.succeeded + job.summary.failed;
    // An `after` beyond the last entry would pass later ones.
    const next = entries.at(-1)?.sequence ?? Math.min(after, last);
    return { job, entries, next: isFinal && next >= last ? null : next };
  }

  /** Up to `count` videos of a job that have failed and are tried again, in the order of the list. */
  awaitedVideos(id: string, count: number): Promise<AwaitedVideo[]> {
    return this.store.awaitedVideos(id, count);
  }

  protected override tooMany(): Error {
    return new TooManyJobsError(this.environment.JOBS_PER_ORGANIZATION);
  }
}
