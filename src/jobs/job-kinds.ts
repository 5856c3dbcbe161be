import { JOB_ID, JobNotFoundError } from './job.js';
import { SUBSCRIPTION_ID, SubscriptionNotFoundError } from './subscription.js';

/** Jobs that end, and subscriptions, which are jobs that do not: the form of their IDs, and the error without one. */
export const JOB_KINDS = {
  job: { idForm: JOB_ID, NotFound: JobNotFoundError },
  subscription: { idForm: SUBSCRIPTION_ID, NotFound: SubscriptionNotFoundError },
};
export type JobKind = keyof typeof JOB_KINDS;
