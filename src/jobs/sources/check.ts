import type { Channel, Playlist } from '../../domain/transcript.js';
import type { SubscriptionReason } from '../job.js';
import type { NoList } from '../work/list-reading.js';
import type { Walk, WalkStep } from './walk.js';

/** A followed channel or playlist, of which a page is read, or what was found is taken by a turn of its subscriptions. */
export interface ClaimedSource {
  /** The ID of the channel or playlist; of a channel that was not found yet, as a subscription named it. */
  id: string;
  kind: 'channel' | 'playlist';
  claim: string;
  isCheck: boolean;
  /** Null until it was looked up. */
  header: Channel | Playlist | null;
  /** Where the list goes on; null for its first page. */
  continuation: string | null;
  /** What the first page was when the list was last read; null when it has to be read anew. */
  fingerprint: string | null;
  walk: Walk;
  /** Consecutive checks that failed, how long, and why. */
  setbacks: number;
  unreadSeconds: number;
  reason: SubscriptionReason | null;
  /** The time of the database. */
  nowMs: number;
}

/** A page of a list, and what is new on it. */
export interface CheckedPage {
  checked: WalkStep;
  header: Channel | Playlist | null;
  next: string | null;
  /** Of the first page. */
  fingerprint: string | null;
  /** Of an incomplete end: how many videos the list states beyond those that it has. */
  hidden: number | null;
}

/** What a check that has read nothing makes of its source. */
export interface CheckFailure {
  /** Why the list cannot be read. */
  reason: SubscriptionReason | null;
  /** Until it is tried again. */
  delaySeconds: number;
  setbacks: number;
  /** Reads the list again from its first page. */
  restarts: boolean;
  /** Pauses the subscriptions for the reason. */
  pauses: boolean;
}

const DAY_SECONDS = 86_400;
/** After this time a list that cannot be read pauses its subscriptions. */
const UNREAD_SECONDS_MAX = 3 * DAY_SECONDS;

/** When a list is read again that could not be read: the pause doubles with each consecutive setback. */
function setbackDelaySeconds(setbacks: number): number {
  return Math.min(900, 30 * 2 ** Math.min(setbacks, 10));
}

/** Decides what a check that has read nothing makes of its source. What was not asked for is no setback. */
export function failureOf(
  { reason, setbacks, unreadSeconds, header }: Pick<ClaimedSource, 'reason' | 'setbacks' | 'unreadSeconds' | 'header'>,
  outcome: NoList | { type: 'stopped' | 'failed'; restartList: boolean },
): CheckFailure {
  const stays = { reason, delaySeconds: 0, setbacks, restarts: false, pauses: false };
  switch (outcome.type) {
    case 'channel_not_found':
    case 'playlist_not_found':
    case 'blocked':
    case 'failed': {
      const restarts = outcome.type === 'failed' && outcome.restartList;
      const isMissing = outcome.type === 'channel_not_found' || outcome.type === 'playlist_not_found';
      const failure = { ...stays, restarts, delaySeconds: setbackDelaySeconds(setbacks), setbacks: setbacks + 1 };
      const named = isMissing ? outcome.type : 'upstream_blocked';
      if ((isMissing && header === null) || unreadSeconds >= UNREAD_SECONDS_MAX)
        return { ...failure, reason: named, delaySeconds: DAY_SECONDS, pauses: true };
      return outcome.type === 'failed' ? failure : { ...failure, reason: named };
    }
    case 'busy':
      return { ...stays, delaySeconds: outcome.seconds };
    case 'stopped':
      return { ...stays, restarts: outcome.restartList };
  }
}
