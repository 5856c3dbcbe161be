import { DomainError, fixedError } from '../domain/errors.js';

export class JobNotFoundError extends fixedError(
  'job_not_found',
  'Job not found. List the jobs of your organization with GET /jobs.',
) {}

/** The state of the job does not allow the operation. */
export class JobFinishedError extends DomainError {
  constructor(operation: 'cancel' | 'resume', state: string) {
    super(
      'job_finished',
      `The job is ${state} and can no longer be ${operation === 'cancel' ? 'canceled' : 'resumed'}.`,
    );
  }
}

/** The idempotency key was used for another request. */
export class IdempotencyConflictError extends fixedError(
  'idempotency_conflict',
  'This Idempotency-Key was used with a different request. Use a new key for a new job.',
) {}

export class ResultsExpiredError extends DomainError {
  /** @param expiredAt ISO 8601 */
  constructor(expiredAt: string) {
    super('results_expired', `The results of this job expired at ${expiredAt}. Create a new job to fetch them again.`);
  }
}

/** Jobs take minutes. */
const JOBS_RETRY_AFTER_SECONDS = 60;

/** The organization has the maximum number of unfinished jobs. */
export class TooManyJobsError extends DomainError {
  constructor(jobsMax: number) {
    super(
      'too_many_jobs',
      `Your organization has reached the limit of ${jobsMax} unfinished ${jobsMax === 1 ? 'job' : 'jobs'}. ` +
        'Wait until one is finished, or cancel one.',
      { retryAfterSeconds: JOBS_RETRY_AFTER_SECONDS },
    );
  }
}

/** The organization stores as many jobs, or as many results, as it may. */
export class StoredResultsLimitError extends DomainError {
  /** @param stored what the organization stores the maximum of */
  constructor(stored: { jobs: number } | { megabytes: number }) {
    const maximum = 'jobs' in stored ? `${stored.jobs} jobs` : `${stored.megabytes} MB of job results`;
    super(
      'too_many_jobs',
      `Your organization stores ${maximum}, the maximum. ` +
        'Delete finished jobs with DELETE /jobs/{id}, or wait until they expire.',
      { retryAfterSeconds: JOBS_RETRY_AFTER_SECONDS },
    );
  }
}
