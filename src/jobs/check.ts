import type { Channel } from '../domain/transcript.js';
import { ageSecondsMin } from '../transcripts/cache/lifetimes.js';
import type { FailedEntry } from '../transcripts/transcript-events.js';
import { RETRY_DELAYS_SECONDS, setbackDelaySeconds } from './retry-delays.js';
import { endOfJob, type ClaimedSlice, type ClaimedSubscription, type SliceEnd, type SliceOutcome } from './slice.js';
import type { WalkStep } from './walk.js';

/** A page of a check, and what is new on it. */
export interface CheckedPage {
  checked: WalkStep;
  channel: Channel;
  next: string | null;
}

const DAY_SECONDS = 86_400;
/** For so long what may get a text soon is tried again, after the retries of a job once a day. */
const AWAITED_SECONDS = 3 * DAY_SECONDS;
const AWAITED_RETRIES = RETRY_DELAYS_SECONDS.length + 3;
/** For so many days what is live is tried again, and what is announced, which can be far ahead. */
const STREAM_DAYS = { video_live: 30, video_not_live_yet: 400 };
/** After this time a channel that cannot be read pauses its subscription. */
const UNREAD_SECONDS_MAX = 3 * DAY_SECONDS;

/** When a subscription tries a video again that has failed; undefined when its failure is final. */
export function followedRetrySeconds({ error, metadata }: FailedEntry, retries: number): number | undefined {
  const delaySeconds = RETRY_DELAYS_SECONDS[retries] ?? DAY_SECONDS;
  if (error.code === 'video_live' || error.code === 'video_not_live_yet')
    return retries < RETRY_DELAYS_SECONDS.length + STREAM_DAYS[error.code] ? delaySeconds : undefined;
  if (retries >= AWAITED_RETRIES) return undefined;
  if (error.retryable) return delaySeconds;
  const awaitsCaptions =
    error.code === 'transcript_unavailable' && ageSecondsMin(metadata, Date.now()) < AWAITED_SECONDS;
  return awaitsCaptions ? delaySeconds : undefined;
}

/** Decides what a slice of videos makes of its subscription, by what it would make of a job: a block does not pause it. */
function endOfFollowed({ job }: Pick<ClaimedSlice, 'job'>, end: SliceEnd): SliceEnd {
  if (end.reason === 'upstream_blocked') return { ...end, state: null };
  const ofChecks = job.reason === 'list_incomplete' || job.reason === 'channel_not_found' ? job.reason : null;
  return { ...end, reason: end.reason ?? ofChecks };
}

/**
 * Decides what a check that has read nothing makes of its subscription; the delay is that of the next check. It does not end a
 * pause, and pauses only when the channel does not exist, or was not read for three days.
 *
 * @param end what a slice of a job makes of it
 */
export function endOfCheck(
  { job, setbacks }: Pick<ClaimedSlice, 'job' | 'setbacks'>,
  { unreadSeconds }: Pick<ClaimedSubscription, 'unreadSeconds'>,
  outcome: SliceOutcome,
  end: SliceEnd,
): SliceEnd {
  const stays = { ...end, state: job.state === 'paused' ? ('paused' as const) : null, reason: job.reason };
  if (outcome.type === 'stopped' || outcome.type === 'busy') return stays;
  const isFailure = outcome.type === 'channel_not_found' || outcome.type === 'blocked' || outcome.type === 'failed';
  if (!isFailure) return end;
  const setback = { ...stays, delaySeconds: setbackDelaySeconds(setbacks), setbacks: setbacks + 1 };
  if (job.reason === 'plan_limit_exceeded') return setback;
  const reason = outcome.type === 'channel_not_found' ? outcome.type : 'upstream_blocked';
  const wasNeverFound = outcome.type === 'channel_not_found' && job.channel === null;
  if (wasNeverFound || unreadSeconds >= UNREAD_SECONDS_MAX)
    return { ...setback, state: 'paused', reason, delaySeconds: DAY_SECONDS };
  if (outcome.type === 'failed') return setback;
  return { ...setback, state: null, reason };
}

/** Decides what a slice makes of its job or subscription. */
export function endOf(
  slice: Pick<ClaimedSlice, 'job' | 'kind' | 'setbacks' | 'subscription'>,
  outcome: SliceOutcome,
): SliceEnd {
  const end = endOfJob(slice, outcome);
  if (!slice.subscription) return end;
  return slice.kind === 'check' ? endOfCheck(slice, slice.subscription, outcome, end) : endOfFollowed(slice, end);
}
