import type { QuotaState } from '../domain/errors.js';
import { mayGetCaptions, type Upload } from '../domain/transcript.js';
import { type Entry, statesBlock } from '../transcripts/transcript-events.js';
import type { ChangedJob, JobReason, OnQuota } from './job.js';

/** A slice that this process runs. */
export interface ClaimedSlice extends ChangedJob {
  claim: string;
  /** The key that created the job. */
  keyId: string;
  /** False when the plan of the organization does not include jobs any more. */
  planIncludesJobs: boolean;
  organizationDeleted: boolean;
  /** Whether the list of the uploads is complete. */
  listed: boolean;
  /** Where the list goes on; undefined for its first page. */
  continuation: string | undefined;
  /** Consecutive slices that the platform did not serve. */
  setbacks: number;
  /** The time of the database. */
  now: Date;
}

export interface PendingVideo {
  position: number;
  upload: Upload;
  /** How often it was tried again. */
  retries: number;
}

/** What becomes of a pending video. */
export type VideoChange = { position: number } & (
  | { state: 'pending'; retryAfterSeconds: number }
  | { state: 'succeeded'; cached: boolean; length: number; bytes: number; crc: number }
  | { state: 'failed'; length: number; bytes: number; crc: number }
);

/** The SQLSTATE of a slice whose reservation ended before it was stored. */
export const SLICE_EXPIRED = 'CT001';

/** How a slice ends. */
export interface SliceEnd {
  /** The state of the job, unless it is complete or was canceled; by default it goes on. */
  change?: { state: 'paused' | 'failed' | 'canceled'; reason: JobReason | null };
  /** Until the next slice; undefined for at once, or for none while the job is paused. */
  delaySeconds?: number;
  setbacks?: number;
  /** Reads the list again from its first page. */
  restartList?: boolean;
}

/** Transcripts that a slice fetched for a reservation. */
interface Settlement {
  id: string;
  fetched: number;
}

export interface SliceResults {
  settlements: readonly Settlement[];
  videos: readonly VideoChange[];
  /** The stored forms of the decided videos, joined in the order of their positions. */
  entries: Buffer;
}

export const NO_RESULTS: SliceResults = { settlements: [], videos: [], entries: Buffer.alloc(0) };

/** Few enough for a slice to end within the deadline of a call, and for organizations to take turns often. */
const SLICE_VIDEOS = 25;
/** After so many setbacks one video may be the cause: the next slice reads one only. */
const ISOLATED_AFTER = 3;

/** When a video is tried again, in seconds after each failure. */
export const RETRY_DELAYS_SECONDS = [600, 3_600, 21_600] as const;

const SETBACK_DELAY_SECONDS = 30;
const SETBACK_DELAY_SECONDS_MAX = 900;
/** One refused video is no block of the service. */
const REFUSED_VIDEOS_OF_BLOCK = 2;
/** Of a video whose failure does not say when a retry can succeed. */
const BUSY_SECONDS = 30;
/** Other calls hold the rest of the quota, for as long as they run. */
const RESERVED_SECONDS = 5;

/** A video of a slice as it was read. */
export interface SliceVideo {
  entry: Entry;
  /** How often it was tried again. */
  retries: number;
  /** Whether the platform was asked: not for what the list or the cache states, and not when the service gave it up itself. */
  source: 'platform' | 'known' | 'none';
}

/** What becomes of a video after a slice. All but a decided one stay pending. */
export type Disposition =
  | { kind: 'decided' }
  /** Tried again later; the number of these is limited. */
  | { kind: 'retry'; afterSeconds: number }
  | { kind: 'blocked' }
  | { kind: 'busy'; afterSeconds: number }
  /** The platform had no part in its failure, or the slice was ended before it was read. */
  | { kind: 'unread' };

/** What the end of a slice says about all of its videos. */
export interface SliceConditions {
  /** The time of the database. */
  now: Date;
  /** Whether the platform refused all that it was asked for, see `refusesAll`. */
  allRefused: boolean;
  /** Whether the slice was ended early. */
  stopped: boolean;
}

/** How many videos the next slice reads. */
export function videosOfSlice(setbacks: number): number {
  return setbacks >= ISOLATED_AFTER ? 1 : SLICE_VIDEOS;
}

/**
 * Whether the platform refused several videos and answered for none: it blocks the service, though the service does not
 * know it yet. A single video can be refused for good, e.g. without a PO token for its captions.
 */
export function refusesAll(videos: readonly SliceVideo[]): boolean {
  const refused = videos.filter(({ entry }) => !entry.ok && entry.error.code === 'upstream_blocked');
  return refused.length >= REFUSED_VIDEOS_OF_BLOCK && !videos.some(isAnswered);
}

/** Whether the platform served or judged a video, which it does not while it blocks the service. */
export function isAnswered({ entry, source }: SliceVideo): boolean {
  if (entry.ok) return source === 'platform' || !entry.cached;
  return source === 'platform' && !entry.error.code.startsWith('upstream_');
}

/**
 * A block of the whole service is no reason for a video to fail. A video that is refused otherwise is tried again as after
 * any other failure, so that its job ends.
 */
export function dispositionOf(
  { entry, retries, source }: SliceVideo,
  { now, allRefused, stopped }: SliceConditions,
): Disposition {
  if (entry.ok) return { kind: 'decided' };
  const { code, retryable, retryAfterSeconds } = entry.error;
  if (statesBlock(entry.error) || (code === 'upstream_blocked' && allRefused)) return { kind: 'blocked' };
  if (code === 'upstream_busy') return { kind: 'busy', afterSeconds: retryAfterSeconds ?? BUSY_SECONDS };
  if (source === 'none' || (stopped && code === 'upstream_timeout')) return { kind: 'unread' };
  const afterSeconds = RETRY_DELAYS_SECONDS[retries];
  if (afterSeconds === undefined) return { kind: 'decided' };
  const awaitsCaptions = code === 'transcript_unavailable' && mayGetCaptions(entry.metadata.publishedAt, now.getTime());
  return retryable || awaitsCaptions ? { kind: 'retry', afterSeconds } : { kind: 'decided' };
}

/** A slice whose videos are read. */
interface SliceReadings {
  videos: readonly (SliceVideo & { disposition: Disposition })[];
  /** Consecutive slices before that the platform did not serve. */
  setbacks: number;
  /** Whether the job is paused because the platform blocks the service. */
  paused: boolean;
  stopped: boolean;
  /** The pace states at the start of the slice when it can serve what it holds back. */
  durationSeconds: number;
}

/** How a slice of videos ends. */
export function endOfSlice({ videos, setbacks, paused, stopped, durationSeconds }: SliceReadings): SliceEnd {
  const is = (kind: Disposition['kind']): boolean => videos.some(({ disposition }) => disposition.kind === kind);
  const fetched = videos.some(({ entry }) => entry.ok && !entry.cached);
  if (is('blocked') && !fetched) return blocked(setbacks);
  const answered = videos.some(isAnswered);
  const end = (): SliceEnd => {
    const waits = videos.flatMap(({ disposition }) => (disposition.kind === 'busy' ? [disposition.afterSeconds] : []));
    if (waits.length > 0) {
      // A video that was not read leaves open whether it is the cause of the setbacks.
      return { delaySeconds: Math.max(1, Math.min(...waits) - durationSeconds), setbacks };
    }
    if (stopped && !answered) return { setbacks };
    const asked = videos.some(({ source }) => source === 'platform');
    return !answered && (is('unread') || (paused && asked)) ? setback(setbacks) : {};
  };
  return paused && !answered ? stayPaused(end(), setbacks) : end();
}

const PAUSE = { state: 'paused', reason: 'upstream_blocked' } as const;

/** The platform blocks the service: the job pauses, and its next slice finds out whether it still does. */
export function blocked(setbacks: number): SliceEnd {
  return { ...setback(setbacks), change: PAUSE };
}

/** The end of a slice that did not show whether the block has ended: the pause goes on. */
export function stayPaused(end: SliceEnd, setbacks: number): SliceEnd {
  return end.change ? end : { delaySeconds: 0, setbacks, ...end, change: PAUSE };
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
