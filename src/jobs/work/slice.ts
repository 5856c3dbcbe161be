import type { QuotaCounts } from '../../domain/errors.js';
import type { Plan } from '../../domain/plan.js';
import type { Channel, Playlist, Upload, VideoFailureCode } from '../../domain/transcript.js';
import type { UploadsListPage } from '../../platform/video-platform.js';
import type { OpenReservation } from '../../quota/settlement-retries.js';
import { RETRY_DELAYS_SECONDS, uploadAgeSeconds, type FailedTry, type Retry } from '../../transcripts/finality.js';
import type { KeptText } from '../../transcripts/kept/kept-text.js';
import { type Entry, statesBlock } from '../../transcripts/delivery/transcript-events.js';
import type { ChangedJob } from '../job-row.js';
import type { JobReason } from '../job.js';

/** How long a claim outlasts the deadline of what it is for: as long as the reservation of a slice, which is made after it. */
export const CLAIM_MARGIN_SECONDS = 15;

export interface ClaimedSlice extends ChangedJob {
  claim: string;
  keyId: string;
  /** The plan of the organization; null when it was deleted. */
  plan: Plan | null;
  /** Whether the library of the organization has texts. */
  keeps: boolean;
  /** What it is about: a page of the list, or videos, when none is due. */
  kind: 'listing' | 'videos';
  /** Where the list goes on; null for its first page. */
  continuation: string | null;
  /** Consecutive slices that the platform did not serve. */
  setbacks: number;
  /** The time of the database. */
  nowMs: number;
  isSubscription: boolean;
}

export interface ListedPage extends Omit<UploadsListPage, 'pages'> {
  /** Where a list ends that states more videos than it has: its last video. Null for any other page. */
  listEnd: string | null;
  /** Whose uploads they are; null for a playlist. */
  channel: Channel | null;
  /** With the first page of one. */
  playlist: Playlist | null;
}

export interface PendingVideo {
  position: number;
  upload: Upload;
  /** How often it was tried again. */
  retries: number;
  /** Its last failure; null for none. */
  lastCode: VideoFailureCode | null;
}

/** What becomes of a pending video. The stored forms of the decided ones follow each other in the order of their positions. */
export type VideoChange = { position: number } & (
  | ({ state: 'pending'; code: string | null } & Retry)
  | ((
      | { state: 'succeeded'; cached: boolean; length: number; bytes: number; crc: number }
      | { state: 'failed'; length: number; bytes: number; crc: number }
    ) & { event?: UploadEvent })
);

/** What the event of a decided upload of a subscription says about it. */
export interface UploadEvent {
  channel: Channel | null;
  videoId: string;
  url: string;
  title: string | null;
  publishedAt: string | null;
  /** Why it has no transcript. */
  code: string | null;
}

/** What a slice of videos stores and charges. */
export interface VideoResults {
  reservation: OpenReservation | undefined;
  /** The transcripts that it fetched for the reservation. */
  fetched: number;
  videos: readonly VideoChange[];
  /** The stored forms of the decided videos. */
  entries: Buffer;
  /** Their texts, when the job keeps them. */
  kept?: KeptText[] | undefined;
}

/** The SQLSTATE of a slice whose reservation ended before it was stored. */
export const SLICE_EXPIRED = 'CT001';

export type SliceOutcome =
  | { type: 'organization_deleted' | 'plan_excludes' | 'nothing_due' }
  | { type: 'blocked' }
  | { type: 'channel_not_found' | 'playlist_not_found' }
  /** The list is read again from its first page when the platform rejects where it goes on. */
  | { type: 'stopped' | 'failed'; restartList: boolean }
  /** A list was not asked for, because the pace could not serve it in time, or every egress is refused. */
  | { type: 'busy'; retryAfterSeconds: number }
  /** Not even one video fits into the quota, or into what the key may use of it. */
  | { type: 'without_quota'; quota: Pick<QuotaCounts, 'limit' | 'used'> }
  /**
   * @param free nothing had to be fetched
   * @param durationSeconds the pace states at the start of the slice when it can serve what it holds back
   */
  | {
      type: 'read';
      videos: readonly Pick<ReadVideo, 'entry'>[];
      free: boolean;
      stopped: boolean;
      durationSeconds: number;
    };

/** What a slice makes of its job, unless the job is complete or was canceled. */
export interface SliceEnd {
  /** Null when the job goes on. */
  state: 'paused' | 'failed' | 'canceled' | null;
  reason: JobReason | null;
  /** Until the next slice; null for none. */
  delaySeconds: number | null;
  setbacks: number;
  /** Reads the list again from its first page. */
  restartList: boolean;
}

const SETBACK_DELAY_SECONDS = 30;
const SETBACK_DELAY_SECONDS_MAX = 900;

/** When a slice is tried again that the platform did not serve: the pause doubles with each consecutive setback. */
export function setbackDelaySeconds(setbacks: number): number {
  return Math.min(SETBACK_DELAY_SECONDS_MAX, SETBACK_DELAY_SECONDS * 2 ** Math.min(setbacks, 10));
}

/** When a list that ended incomplete is read again, by how often that added nothing. */
export function listRetrySeconds(setbacks: number): number {
  return RETRY_DELAYS_SECONDS[setbacks] ?? RETRY_DELAYS_SECONDS[2];
}

/** Of a video or list whose failure does not say when a retry can succeed. */
export const BUSY_SECONDS = 30;
/** Other calls hold the rest of the quota, for as long as they run. */
const RESERVED_SECONDS = 5;
/** Without quota, what costs nothing is looked for again. */
const FREE_SECONDS = 3_600;

export interface ReadVideo extends PendingVideo {
  entry: Entry;
  /** Whether the service gave it up itself, before the platform was asked. */
  givenUp: boolean;
}

/** What becomes of a video: it is decided, tried again later, or stays pending without a try: the number of tries is limited. */
export type Disposition = 'decided' | 'untried' | Retry;

/** Whether the platform served or judged a video, which it does not while it blocks the service. */
function isServed({ entry }: Pick<ReadVideo, 'entry'>): boolean {
  return entry.ok ? !entry.cached : !entry.error.code.startsWith('upstream_');
}

/**
 * Whether the platform blocks the service: it served no video, and the service found out that it is refused. Any number of
 * videos can be refused by themselves, e.g. without a PO token for their captions.
 */
export function isBlocked(videos: readonly Pick<ReadVideo, 'entry'>[]): boolean {
  return !videos.some(isServed) && videos.some(({ entry }) => !entry.ok && statesBlock(entry.error));
}

/**
 * A block of the whole service is no reason for a video to fail. A video that is refused otherwise is tried again as after
 * any other failure, so that its job ends.
 *
 * @param conditions.retry the rules of a job or of a subscription
 */
export function dispositionOf(
  { entry, upload, retries, lastCode, givenUp }: ReadVideo,
  conditions: { blocked: boolean; stopped: boolean; nowMs: number; retry: (tried: FailedTry) => Retry | undefined },
): Disposition {
  if (entry.ok) return 'decided';
  const { code } = entry.error;
  const { blocked, stopped, nowMs, retry } = conditions;
  if (statesBlock(entry.error) || (blocked && code === 'upstream_blocked') || code === 'upstream_busy')
    return 'untried';
  if (givenUp || (stopped && code === 'upstream_timeout')) return 'untried';
  const ageSeconds = uploadAgeSeconds({ ...entry.metadata, kind: upload.kind }, nowMs);
  return retry({ code, retries, lastCode, ageSeconds }) ?? 'decided';
}

/** Whether the quota is used up, not only reserved by other calls. */
export function isUsedUp(outcome: SliceOutcome): boolean {
  return outcome.type === 'without_quota' && outcome.quota.used >= outcome.quota.limit;
}

const GOES_ON: SliceEnd = { state: null, reason: null, delaySeconds: 0, setbacks: 0, restartList: false };
/** Until something outside of the job changes. */
const STOPS: SliceEnd = { ...GOES_ON, delaySeconds: null };
const BLOCKED = { state: 'paused', reason: 'upstream_blocked' } as const;
const WITHOUT_QUOTA = { state: 'paused', reason: 'plan_limit_exceeded', delaySeconds: FREE_SECONDS } as const;

/** Decides what a slice makes of its job; a block does not pause a subscription. */
export function endOf(
  slice: Pick<ClaimedSlice, 'job' | 'setbacks' | 'isSubscription'>,
  outcome: SliceOutcome,
): SliceEnd {
  const end = endOfJob(slice, outcome);
  return slice.isSubscription && end.reason === 'upstream_blocked' ? { ...end, state: null } : end;
}

export function endOfJob({ job, setbacks }: Pick<ClaimedSlice, 'job' | 'setbacks'>, outcome: SliceOutcome): SliceEnd {
  // A pause for a block goes on until the platform has served a slice, and one for the quota until something was reserved.
  const { reason } = job;
  const unserved: SliceEnd =
    reason === 'upstream_blocked' || reason === 'plan_limit_exceeded'
      ? { ...GOES_ON, state: 'paused', reason, setbacks }
      : GOES_ON;
  const setback = { ...unserved, delaySeconds: setbackDelaySeconds(setbacks), setbacks: setbacks + 1 };
  switch (outcome.type) {
    case 'organization_deleted':
      return { ...STOPS, state: 'canceled' };
    case 'plan_excludes':
      return { ...STOPS, state: 'paused', reason: 'plan_changed' };
    case 'channel_not_found':
    case 'playlist_not_found':
      return { ...STOPS, state: 'failed', reason: outcome.type };
    case 'without_quota':
      if (!isUsedUp(outcome)) return { ...unserved, delaySeconds: RESERVED_SECONDS };
      return { ...GOES_ON, ...WITHOUT_QUOTA, ...(job.request.onQuota === 'fail' && { state: 'failed' }) };
    case 'blocked':
      return { ...setback, ...BLOCKED };
    case 'nothing_due':
      return unserved;
    case 'stopped':
      return { ...unserved, setbacks, restartList: outcome.restartList };
    case 'busy':
      return { ...unserved, setbacks, delaySeconds: outcome.retryAfterSeconds };
    case 'failed':
      return { ...setback, restartList: outcome.restartList };
    case 'read': {
      const { videos, free, stopped, durationSeconds } = outcome;
      if (free) return unserved;
      if (isBlocked(videos)) return { ...setback, ...BLOCKED };
      const served = videos.some(isServed);
      const goesOn = served ? GOES_ON : unserved;
      const failures = videos.flatMap(({ entry }) => (entry.ok ? [] : [entry.error]));
      const busy = failures.filter(({ code }) => code === 'upstream_busy');
      if (busy.length > 0) {
        const waitSeconds = Math.min(...busy.map(({ retryAfterSeconds = BUSY_SECONDS }) => retryAfterSeconds));
        return { ...goesOn, delaySeconds: Math.max(1, waitSeconds - durationSeconds) };
      }
      // One in which something failed and the platform served nothing is a setback.
      if (served || failures.length === 0) return goesOn;
      return stopped ? { ...unserved, setbacks } : setback;
    }
  }
}
