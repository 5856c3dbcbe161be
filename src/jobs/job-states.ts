/** `paused` goes on by itself; the last three are final, unless a canceled or failed job is resumed. */
export const JOB_STATES = ['queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** The states that follow each state. */
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
 * and `running` until the last video is decided. A subscription is created `running` and does not finish by itself.
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
  /** The caller pauses a subscription or lets it go on. */
  change: { running: ['paused'], paused: ['running'] },
} as const satisfies Record<string, Transitions>;

/** What changes the state of a job. */
export type Cause = keyof typeof TRANSITIONS;

/** Whether a job does nothing more unless it is resumed. */
export function isFinished(state: JobState): boolean {
  return !(state in TRANSITIONS.cancel);
}

/** Whether something changes a state to another one. */
export function isTransition(cause: Cause, from: JobState, to: JobState): boolean {
  const transitions: Transitions = TRANSITIONS[cause];
  return transitions[from]?.includes(to) ?? false;
}
