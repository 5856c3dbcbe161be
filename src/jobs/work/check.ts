import type { Channel } from '../../domain/transcript.js';
import {
  endOfJob,
  setbackDelaySeconds,
  type ClaimedSlice,
  type ClaimedSubscription,
  type SliceEnd,
  type SliceOutcome,
} from './slice.js';
import type { WalkStep } from './walk.js';

/** A page of a check, and what is new on it. */
export interface CheckedPage {
  checked: WalkStep;
  channel: Channel;
  next: string | null;
}

const DAY_SECONDS = 86_400;
/** After this time a channel that cannot be read pauses its subscription. */
const UNREAD_SECONDS_MAX = 3 * DAY_SECONDS;

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
