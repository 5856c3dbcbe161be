import type { DomainError } from '../domain/errors.js';
import type { JobDto } from './dto/job.dto.js';
import type { SubscriptionDto } from './dto/subscription.dto.js';
import { comparedJob } from './job-request.js';
import { readStoredSubscription, toJob, toSubscription, type JobRow, type SubscriptionRow } from './job-row.js';
import {
  JobNotFoundError,
  STORED_JOBS_MAX,
  TooManyJobsError,
  SubscriptionNotFoundError,
  TooManySubscriptionsError,
} from './job.js';

export type JobVariant = 'job' | 'subscription';

/** What differs between jobs that end and subscriptions, which are jobs that do not. */
export interface Variant<Dto, Row> {
  name: JobVariant;
  /** Of the IDs. */
  prefix: string;
  idForm: RegExp;
  NotFound: new () => DomainError;
  /** The variable with the most that an organization can have, of jobs the unfinished ones. */
  unfinishedMax: 'JOBS_PER_ORGANIZATION' | 'SUBSCRIPTIONS_PER_ORGANIZATION';
  TooMany: new (max: number) => DomainError;
  /** The most that are stored, finished ones included; null without a limit. */
  storedMax: number | null;
  toDto: (row: Row) => Dto;
  /** Reads what makes a request of a row another one, with the defaults of this version. */
  readRequest: (stored: string) => object;
}

const job: Variant<JobDto, JobRow> = {
  name: 'job',
  prefix: 'job',
  idForm: /^job_[0-9A-Za-z]{22}$/,
  NotFound: JobNotFoundError,
  unfinishedMax: 'JOBS_PER_ORGANIZATION',
  TooMany: TooManyJobsError,
  storedMax: STORED_JOBS_MAX,
  toDto: toJob,
  readRequest: comparedJob,
};

const subscription: Variant<SubscriptionDto, SubscriptionRow> = {
  name: 'subscription',
  prefix: 'sub',
  idForm: /^sub_[0-9A-Za-z]{22}$/,
  NotFound: SubscriptionNotFoundError,
  unfinishedMax: 'SUBSCRIPTIONS_PER_ORGANIZATION',
  TooMany: TooManySubscriptionsError,
  storedMax: null,
  toDto: toSubscription,
  readRequest: readStoredSubscription,
};

export const JOB_VARIANTS = { job, subscription };
