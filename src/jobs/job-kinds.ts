import { JOB_ID, JobNotFoundError } from './job.js';
import { SUBSCRIPTION_ID, SubscriptionNotFoundError } from './subscription.js';

/** Jobs that end, and subscriptions, which are jobs that do not: their IDs, and the error for an unknown one. */
export const JOB_KINDS = {
  job: { prefix: 'job', idForm: JOB_ID, NotFound: JobNotFoundError },
  subscription: { prefix: 'sub', idForm: SUBSCRIPTION_ID, NotFound: SubscriptionNotFoundError },
};
export type JobKind = keyof typeof JOB_KINDS;
