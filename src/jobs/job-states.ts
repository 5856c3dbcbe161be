/** `paused` goes on by itself; the last three are final, unless a canceled or failed job is resumed. */
export const JOB_STATES = ['queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** What changes the state of a job, as logs and the diagrams of docs/jobs.md name it; the database decides the new state. */
export type Cause = 'claim' | 'slice' | 'sweep' | 'resume' | 'change' | 'cancel' | 'delete';

/** Whether a job does nothing more unless it is resumed. */
export function isFinished(state: JobState): boolean {
  return state === 'completed' || state === 'canceled' || state === 'failed';
}
