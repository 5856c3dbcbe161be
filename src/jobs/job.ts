import { counted, DomainError, fixedError } from '../domain/errors.js';
import { UnknownCursorError } from '../domain/page.js';

/** `paused` goes on by itself; the last three are final, unless a canceled or failed job is resumed. */
export const JOB_STATES = ['queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** What changes the state of a job, as logs and the diagrams of docs/jobs.md name it; the database decides the new state. */
export type Cause = 'claim' | 'slice' | 'source' | 'sweep' | 'resume' | 'change' | 'cancel' | 'delete';

/** Whether a job does nothing more unless it is resumed. */
export function isFinished(state: JobState): boolean {
  return state === 'completed' || state === 'canceled' || state === 'failed';
}

export const PAUSE_REASONS = ['plan_limit_exceeded', 'upstream_blocked', 'plan_changed', 'list_incomplete'] as const;

export const JOB_REASONS = [...PAUSE_REASONS, 'channel_not_found', 'playlist_not_found'] as const;
export type JobReason = (typeof JOB_REASONS)[number];

/** What a job does when the monthly quota of its organization is used up. */
export const ON_QUOTA = ['pause', 'fail'] as const;
export type OnQuota = (typeof ON_QUOTA)[number];

export const SECONDS_PER_HOUR = 3_600;

const CHECK_AGAIN_SECONDS_MIN = 2;
export const CHECK_AGAIN_SECONDS_MAX = 3_600;

/**
 * When the state of a job is worth reading again; null when it is finished and no slice of it is running.
 *
 * @param dueInSeconds until its next slice, 0 while one is running; null when it waits for something without a time, e.g. for
 * quota
 */
export function checkAgainSeconds(state: JobState, dueInSeconds: number | null): number | null {
  if (isFinished(state) && dueInSeconds === null) return null;
  if (dueInSeconds === null) return CHECK_AGAIN_SECONDS_MAX;
  return Math.min(CHECK_AGAIN_SECONDS_MAX, Math.max(CHECK_AGAIN_SECONDS_MIN, Math.ceil(dueInSeconds)));
}

/** The place of a job in a list. It stays when the job is deleted. */
export interface JobCursor {
  createdAt: Date;
  id: string;
}

const CURSOR = /^([0-9]{1,13})\.(.+)$/;

/** The cursor of the page that follows a job: its creation in milliseconds, which is as exact as it is stored, and its ID. */
export function toCursor({ createdAt, id }: { createdAt: string; id: string }): string {
  return `${Date.parse(createdAt)}.${id}`;
}

/** @param idForm the form of the IDs of the list. @throws UnknownCursorError */
export function parseCursor(text: string, idForm: RegExp): JobCursor {
  const [, createdAtMs, id] = CURSOR.exec(text) ?? [];
  if (createdAtMs === undefined || id === undefined || !idForm.test(id)) throw new UnknownCursorError(text);
  return { createdAt: new Date(Number(createdAtMs)), id };
}

export class JobNotFoundError extends fixedError(
  'job_not_found',
  'Job not found. No job has this ID, or it was deleted.',
) {}

export class JobFinishedError extends DomainError {
  constructor(operation: 'cancel' | 'resume', state: string) {
    super(
      'job_finished',
      `The job is ${state} and can no longer be ${operation === 'cancel' ? 'canceled' : 'resumed'}.`,
    );
  }
}

export class ResultsExpiredError extends DomainError {
  /** @param expiredAt ISO 8601 */
  constructor(expiredAt: string) {
    super('results_expired', `The results of this job expired at ${expiredAt}. Create a new job to fetch them again.`);
  }
}

/** Jobs take minutes. */
const JOBS_RETRY_AFTER_SECONDS = 60;

export class TooManyJobsError extends DomainError {
  constructor(jobsMax: number) {
    super(
      'too_many_jobs',
      `Your organization has reached the limit of ${counted(jobsMax, 'unfinished job')}. ` +
        'Wait until one is finished, or cancel one.',
      { retryAfterSeconds: JOBS_RETRY_AFTER_SECONDS },
    );
  }
}

/** Finished and unfinished jobs of an organization whose results are stored; each costs time in every list. */
export const STORED_JOBS_MAX = 1_000;

/** The organization stores as many jobs, results or videos of jobs as it may. */
export class StoredResultsLimitError extends DomainError {
  /** @param stored what the organization stores the maximum of */
  constructor(stored: { jobs: number } | { megabytes: number } | { videos: number }) {
    const [maximum, remedy] =
      'jobs' in stored
        ? [`${stored.jobs} jobs`, 'Delete finished jobs, or wait until they expire.']
        : 'videos' in stored
          ? [`${stored.videos} videos of jobs`, 'Delete finished jobs, and wait until what was deleted is removed.']
          : [
              `${stored.megabytes} MB of results`,
              'Delete finished jobs or subscriptions, or wait until results expire.',
            ];
    super('too_many_jobs', `Your organization stores ${maximum}, the maximum. ${remedy}`, {
      retryAfterSeconds: JOBS_RETRY_AFTER_SECONDS,
    });
  }
}

export const SUBSCRIPTION_STATES = ['active', 'paused'] as const;
export type SubscriptionState = (typeof SUBSCRIPTION_STATES)[number];

/** Why a subscription is paused, or what an active one waits for. */
export const SUBSCRIPTION_REASONS = [
  'plan_limit_exceeded',
  'upstream_blocked',
  'plan_changed',
  'list_incomplete',
  'channel_not_found',
  'playlist_not_found',
  'paused_by_caller',
] as const;
export type SubscriptionReason = (typeof SUBSCRIPTION_REASONS)[number];

export const SECONDS_PER_MINUTE = 60;

/** The time between two checks that a caller asks for. */
export const CHECK_REQUEST_SECONDS = 10;

/** What is delivered first: `now` for what is uploaded from now on, a number of the newest uploads, or those above a video. */
export type Start = number | string;

export class SubscriptionNotFoundError extends fixedError(
  'subscription_not_found',
  'Subscription not found. Your organization has no subscription with this ID, or it was deleted.',
) {}

/** The caller has paused the subscription, so that it is not checked. */
export class SubscriptionPausedError extends fixedError(
  'conflict',
  'You have paused this subscription. Set its state to "active" with PATCH /subscriptions/{id}, which checks at once.',
) {}

/** A slot becomes free only when a subscription is deleted. */
const SUBSCRIPTIONS_RETRY_AFTER_SECONDS = 60;

export class TooManySubscriptionsError extends DomainError {
  constructor(subscriptionsMax: number) {
    super(
      'too_many_subscriptions',
      `Your organization has reached the limit of ${counted(subscriptionsMax, 'subscription')}, paused ones included. ` +
        'Delete one first.',
      { retryAfterSeconds: SUBSCRIPTIONS_RETRY_AFTER_SECONDS },
    );
  }
}

/** The caller has asked for a check a moment ago. */
export class CheckRequestedError extends DomainError {
  constructor(retryAfterSeconds: number) {
    super(
      'rate_limited',
      `A check of this subscription can be requested every ${CHECK_REQUEST_SECONDS} seconds. ` +
        `Retry after ${counted(retryAfterSeconds, 'second')}.`,
      { retryAfterSeconds },
    );
  }
}
