/** `paused` goes on by itself; the last three are final, unless a canceled or failed job is resumed. */
export const JOB_STATES = ['queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed'] as const;
export type JobState = (typeof JOB_STATES)[number];

export type Transitions = Partial<Record<JobState, readonly JobState[]>>;

const CANCELED = {
  queued: ['canceled'],
  listing: ['canceled'],
  running: ['canceled'],
  paused: ['canceled'],
} satisfies Transitions;

/**
 * Every change of a job's state, by what causes it; a job is created `queued`. The database decides between the states of a
 * job that goes on: it is `queued` until its first slice, `listing` until its list is complete, which a list of videos is at once,
 * and `running` until the last video is decided.
 */
export const TRANSITIONS = {
  /** A worker begins a slice. */
  claim: { queued: ['listing', 'running'] },
  /** A slice ends, as `endOf` decides. */
  slice: {
    listing: ['running', 'paused', 'completed', 'canceled', 'failed'],
    running: ['paused', 'completed', 'canceled', 'failed'],
    paused: ['listing', 'running', 'completed', 'canceled', 'failed'],
  },
  /** The plan or the quota has room again, or the organization was deleted. */
  sweep: { paused: ['listing', 'running', 'canceled'] },
  resume: {
    paused: ['listing', 'running'],
    canceled: ['queued', 'listing', 'running', 'completed'],
    failed: ['listing', 'running'],
  },
  cancel: CANCELED,
  delete: CANCELED,
} as const satisfies Record<string, Transitions>;

/**
 * The same of a subscription, which is created `running` and does not finish by itself; `cancel` does not concern it. Its
 * `claim` and most of its slices change nothing.
 */
export const SUBSCRIPTION_TRANSITIONS = {
  slice: { running: ['paused', 'canceled'], paused: ['running', 'canceled'] },
  /** The plan or the quota has room again, or the organization was deleted. */
  sweep: { paused: ['running', 'canceled'] },
  /** The caller pauses it or lets it go on. */
  change: { running: ['paused'], paused: ['running'] },
  delete: { running: ['canceled'], paused: ['canceled'] },
} as const satisfies Record<string, Transitions>;

/** What changes the state of a job. */
export type Cause = keyof typeof TRANSITIONS | keyof typeof SUBSCRIPTION_TRANSITIONS;

/** Whether a job does nothing more unless it is resumed. */
export function isFinished(state: JobState): boolean {
  return !(state in TRANSITIONS.cancel);
}

/** Whether something changes a state to another one. */
export function isTransition(cause: Cause, from: JobState, to: JobState, ofSubscription: boolean): boolean {
  const table: Partial<Record<Cause, Transitions>> = ofSubscription ? SUBSCRIPTION_TRANSITIONS : TRANSITIONS;
  return table[cause]?.[from]?.includes(to) ?? false;
}
