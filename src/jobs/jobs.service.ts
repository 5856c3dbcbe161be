import { randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { Actor } from '../domain/caller.js';
import { parseChannelReference } from '../domain/channel-reference.js';
import {
  ChannelNotFoundError,
  IdempotencyConflictError,
  JobFinishedError,
  JobNotFoundError,
  ResultsExpiredError,
  StoredResultsLimitError,
  TooManyJobsError,
} from '../domain/errors.js';
import { base62 } from '../organizations/api-key.js';
import type { Payer } from '../transcripts/quota-reservations.js';
import { JobRepository, STORED_JOBS_MAX, type FoundJob } from './job.repository.js';
import {
  isFinished,
  JOB_ID,
  logStateChange,
  parseCursor,
  toJobsPage,
  type ChangedJob,
  type Job,
  type JobRequest,
  type JobResultsPage,
  type JobsPage,
} from './job.js';
import { WakeUps } from './wake-ups.js';

/** Bounds the memory of one read of results, which ends after the entry that exceeds it. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** Creates archive jobs and reads, cancels, resumes and deletes them. */
@Injectable()
export class JobsService {
  private readonly logger = new Logger(JobsService.name);

  constructor(
    private readonly store: JobRepository,
    private readonly wakeUps: WakeUps,
    private readonly environment: Environment,
  ) {}

  /**
   * Creates a job. The same idempotency key with the same request gives the same job again.
   *
   * @param payer the key that creates the job, and the organization that is charged
   * @throws TooManyJobsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the organization
   * was deleted | ChannelNotFoundError when the text is no reference to a channel
   */
  async create(request: JobRequest, payer: Payer, idempotencyKey?: string): Promise<Job> {
    if (!parseChannelReference(request.channel)) throw new ChannelNotFoundError();
    const id = `job_${base62(BigInt(`0x${randomBytes(16).toString('hex')}`), 22)}`;
    const { outcome, job } = await this.store.create(id, request, payer, idempotencyKey);
    if (outcome === 'conflict') throw new IdempotencyConflictError();
    if (outcome === 'too_many_stored') throw new StoredResultsLimitError({ jobs: STORED_JOBS_MAX });
    if (outcome === 'too_much_stored') throw this.tooMuchStored();
    if (!job) throw new TooManyJobsError(this.environment.JOBS_PER_ORGANIZATION);
    if (outcome === 'created') {
      this.logger.log({ event: 'job_created', jobId: id, ...payer, onQuota: request.onQuota });
      this.wakeUps.wake();
    }
    return job;
  }

  /** Lists the jobs of an organization, newest first. @throws UnknownCursorError */
  async list(organizationId: string, page: { limit: number; after?: string | undefined }): Promise<JobsPage> {
    const { limit, after } = page;
    const cursor = after === undefined ? undefined : parseCursor(after);
    const { items, next } = toJobsPage(await this.store.list(organizationId, limit + 1, cursor), limit);
    return { data: items, next };
  }

  /** @throws JobNotFoundError */
  async get(organizationId: string, id: string): Promise<Job> {
    return (await this.find(organizationId, id)).job;
  }

  /**
   * Cancels a job; one that is canceled stays so. What its running slice has fetched is charged and stored.
   *
   * @throws JobNotFoundError | JobFinishedError
   */
  async cancel(organizationId: string, id: string): Promise<Job> {
    return (await this.cancelOf(organizationId, id)).job;
  }

  /**
   * Cancels a job of any organization, for the operator; recorded in the audit trail.
   *
   * @throws JobNotFoundError | JobFinishedError
   */
  cancelAny(id: string, actor: Actor): Promise<ChangedJob> {
    return this.cancelOf(actor, id);
  }

  /**
   * Lets a paused, canceled or failed job go on where it ended; an unfinished one does not change.
   *
   * @throws JobNotFoundError | JobFinishedError when it is completed | ResultsExpiredError | TooManyJobsError |
   * StoredResultsLimitError
   */
  async resume(organizationId: string, id: string): Promise<Job> {
    const resumed = JOB_ID.test(id) ? await this.store.resume(organizationId, id) : undefined;
    if (!resumed) throw new JobNotFoundError();
    const { outcome, job } = resumed;
    if (outcome === 'finished') throw new JobFinishedError('resume', job.state);
    if (outcome === 'expired') throw new ResultsExpiredError(job.expiresAt ?? '');
    if (outcome === 'too_many') throw new TooManyJobsError(this.environment.JOBS_PER_ORGANIZATION);
    if (outcome === 'too_much_stored') throw this.tooMuchStored();
    logStateChange(this.logger, resumed);
    if (outcome === 'changed') this.wakeUps.wake();
    return job;
  }

  /** Deletes a job and its results. What its running slice fetches is charged, as after a cancel. @throws JobNotFoundError */
  async delete(organizationId: string, id: string): Promise<void> {
    if (!JOB_ID.test(id) || !(await this.store.delete(organizationId, id))) throw new JobNotFoundError();
    this.logger.log({ event: 'job_deleted', jobId: id, organizationId });
  }

  /**
   * The entries that are decided, in the channel's order. While the job can still decide others, a page ends before the
   * first video that is pending, so that a reader who goes on from `next` misses none.
   *
   * @param page.after the `next` of the previous page
   * @param page.pastPending whether the entries after a pending video are included
   * @throws JobNotFoundError | ResultsExpiredError
   */
  async results(
    organizationId: string,
    id: string,
    page: { limit: number; after?: number | undefined; pastPending?: boolean },
  ): Promise<JobResultsPage> {
    const { limit, after = 0, pastPending = false } = page;
    const { job, expired, active } = await this.find(organizationId, id);
    if (expired) throw new ResultsExpiredError(job.expiresAt ?? '');
    const isFinal = !active && isFinished(job.state);
    const options = { after, pastPending: pastPending || isFinal, bytesMax: READ_BYTES_MAX };
    const stored = await this.store.entries(id, limit, options);
    // The job was deleted or has expired meanwhile.
    if (!stored) return this.results(organizationId, id, page);
    const { entries, more } = stored;
    const ended = !more && isFinal;
    return { job, entries, next: ended ? null : (entries.at(-1)?.position ?? after), isFinal };
  }

  /** Whether a job has listed all videos, and those that are pending are only tried again later. */
  awaitsRetries(id: string): Promise<boolean> {
    return this.store.awaitsRetries(id);
  }

  private async cancelOf(by: string | Actor, id: string): Promise<ChangedJob> {
    const canceled = JOB_ID.test(id) ? await this.store.cancel(by, id) : undefined;
    if (!canceled) throw new JobNotFoundError();
    if (canceled.outcome === 'finished') throw new JobFinishedError('cancel', canceled.job.state);
    logStateChange(this.logger, canceled);
    return canceled;
  }

  private tooMuchStored(): StoredResultsLimitError {
    return new StoredResultsLimitError({ megabytes: this.environment.JOB_RESULTS_MAX_MEGABYTES });
  }

  /** @throws JobNotFoundError */
  private async find(organizationId: string, id: string): Promise<FoundJob> {
    const found = JOB_ID.test(id) ? await this.store.find(organizationId, id) : undefined;
    if (!found) throw new JobNotFoundError();
    return found;
  }
}
