import { Injectable } from '@nestjs/common';
import type { Payer } from '../transcripts/quota-reservations.js';
import type { Job, JobRequest, JobResultsPage, JobsPage } from './job.js';

/** Creates archive jobs and reads, cancels, resumes and deletes them. */
@Injectable()
export class JobsService {
  /**
   * Creates a job. The same idempotency key with the same request gives the same job again.
   *
   * @param payer the key that creates the job, and the organization that is charged
   * @throws TooManyJobsError | IdempotencyConflictError | ChannelNotFoundError when the text is no reference to a channel
   */
  create(_request: JobRequest, _payer: Payer, _idempotencyKey?: string): Promise<Job> {
    throw new Error('Not implemented.');
  }

  /** Lists the jobs of an organization, newest first. @throws UnknownCursorError */
  list(_organizationId: string, _page: { limit: number; after?: string | undefined }): Promise<JobsPage> {
    throw new Error('Not implemented.');
  }

  /** @throws JobNotFoundError */
  get(_organizationId: string, _id: string): Promise<Job> {
    throw new Error('Not implemented.');
  }

  /** Cancels a job; one that is canceled stays so. What its running slice fetches is charged and stored. @throws JobNotFoundError | JobFinishedError */
  cancel(_organizationId: string, _id: string): Promise<Job> {
    throw new Error('Not implemented.');
  }

  /**
   * Lets a paused, canceled or failed job go on where it ended; an unfinished one does not change.
   *
   * @throws JobNotFoundError | JobFinishedError when it is completed | ResultsExpiredError | TooManyJobsError
   */
  resume(_organizationId: string, _id: string): Promise<Job> {
    throw new Error('Not implemented.');
  }

  /** Deletes a job and its results. What its running slice fetches is neither charged nor stored. @throws JobNotFoundError */
  delete(_organizationId: string, _id: string): Promise<void> {
    throw new Error('Not implemented.');
  }

  /**
   * The entries that are decided, in the channel's order. While the job is unfinished, a page ends before the first video
   * that is pending, so that a reader who goes on from `next` misses none.
   *
   * @param page.after the `next` of the previous page
   * @throws JobNotFoundError | ResultsExpiredError
   */
  results(
    _organizationId: string,
    _id: string,
    _page: { limit: number; after?: number | undefined },
  ): Promise<JobResultsPage> {
    throw new Error('Not implemented.');
  }
}
