import type { QuotaState } from '../domain/errors.js';
import type { Entry } from '../transcripts/transcript-events.js';
import type { OnQuota } from './job.js';
import type { SliceEnd } from './slice-store.js';

/** When a video is tried again, in seconds after each failure. Captions often follow hours after the upload. */
export const RETRY_DELAYS_SECONDS = [600, 3_600, 21_600] as const;
/** A video without captions is tried again while it is younger than this. */
const YOUNG_MS = 24 * 3_600_000;

const SETBACK_DELAY_SECONDS = 30;
const SETBACK_DELAY_SECONDS_MAX = 900;
/** Of a video whose failure does not say when a retry can succeed. */
const BUSY_SECONDS = 30;
/** Other calls hold the rest of the quota, for as long as they run. */
const RESERVED_SECONDS = 5;

/** What becomes of a video after a slice. All but a decided one stay pending. */
export type Disposition =
  | { kind: 'decided' }
  /** Tried again later; the number of these is limited. */
  | { kind: 'retry'; afterSeconds: number }
  | { kind: 'blocked' }
  | { kind: 'busy'; afterSeconds: number }
  /** The slice was ended before the video was read. */
  | { kind: 'unread' };

/** What the end of a slice says about all of its videos. */
export interface SliceConditions {
  /** The time of the database. */
  now: Date;
  /** Whether the platform blocks the service as a whole, see `blocksService`. */
  serviceBlocked: boolean;
  /** Whether the slice was ended early. */
  stopped: boolean;
}

/**
 * Whether the platform blocks the service as a whole: it refused videos and served none. Videos that failed before do not
 * show it, because they can be refused for good, e.g. without a PO token for their captions.
 *
 * @param fetched the transcripts that the slice fetched
 * @param videos those of the slice, and how often each was tried again
 */
export function blocksService(fetched: number, videos: readonly { entry: Entry; retries: number }[]): boolean {
  return (
    fetched === 0 &&
    videos.some(({ entry, retries }) => !entry.ok && entry.error.code === 'upstream_blocked' && retries === 0)
  );
}

/**
 * A block of the whole service is no reason for a video to fail. One that is refused while others are served is tried again
 * as after any other failure, so that its job ends.
 *
 * @param retries how often the video was tried again
 */
export function dispositionOf(
  entry: Entry,
  retries: number,
  { now, serviceBlocked, stopped }: SliceConditions,
): Disposition {
  if (entry.ok) return { kind: 'decided' };
  const { code, retryable, retryAfterSeconds } = entry.error;
  if (code === 'upstream_blocked' && serviceBlocked) return { kind: 'blocked' };
  if (code === 'upstream_busy') return { kind: 'busy', afterSeconds: retryAfterSeconds ?? BUSY_SECONDS };
  if (stopped && code === 'upstream_timeout') return { kind: 'unread' };
  const afterSeconds = RETRY_DELAYS_SECONDS[retries];
  if (afterSeconds === undefined) return { kind: 'decided' };
  const mayGetCaptions = code === 'transcript_unavailable' && isYoung(entry.metadata.publishedAt, now);
  return retryable || mayGetCaptions ? { kind: 'retry', afterSeconds } : { kind: 'decided' };
}

function isYoung(publishedAt: string | null, now: Date): boolean {
  return publishedAt !== null && now.getTime() - Date.parse(publishedAt) < YOUNG_MS;
}

/**
 * How a slice of videos ends.
 *
 * @param setbacks consecutive slices before that the platform did not serve
 */
export function endOfSlice(dispositions: readonly Disposition[], setbacks: number): SliceEnd {
  if (dispositions.some(({ kind }) => kind === 'blocked')) return blocked(setbacks);
  const waits = dispositions.flatMap((disposition) => (disposition.kind === 'busy' ? [disposition.afterSeconds] : []));
  return waits.length > 0 ? { delaySeconds: Math.max(1, Math.min(...waits)) } : {};
}

/** The platform blocks the service: the job pauses, and its next slice finds out whether it still does. */
export function blocked(setbacks: number): SliceEnd {
  return { change: { state: 'paused', reason: 'upstream_blocked' }, ...setback(setbacks) };
}

/** The next slice runs after a pause that doubles with each consecutive setback. */
export function setback(setbacks: number): SliceEnd {
  const delaySeconds = Math.min(SETBACK_DELAY_SECONDS_MAX, SETBACK_DELAY_SECONDS * 2 ** Math.min(setbacks, 10));
  return { delaySeconds, setbacks: setbacks + 1 };
}

/** Not even one video fits into the quota. */
export function withoutQuota({ limit, used }: Pick<QuotaState, 'limit' | 'used'>, onQuota: OnQuota): SliceEnd {
  if (used < limit) return { delaySeconds: RESERVED_SECONDS };
  return { change: { state: onQuota === 'fail' ? 'failed' : 'paused', reason: 'plan_limit_exceeded' } };
}
