import { JobNotFoundError } from './job.js';
import { SubscriptionNotFoundError } from './subscription.js';

/** Jobs that end, and subscriptions, which are jobs that do not: their IDs, the error for an unknown one, and their names in the log. */
export const JOB_VARIANTS = {
  job: {
    prefix: 'job',
    idForm: /^job_[0-9A-Za-z]{22}$/,
    NotFound: JobNotFoundError,
    log: { id: 'jobId', created: 'job_created', deleted: 'job_deleted' },
  },
  subscription: {
    prefix: 'sub',
    idForm: /^sub_[0-9A-Za-z]{22}$/,
    NotFound: SubscriptionNotFoundError,
    log: { id: 'subscriptionId', created: 'subscription_created', deleted: 'subscription_deleted' },
  },
};
export type JobVariant = keyof typeof JOB_VARIANTS;
