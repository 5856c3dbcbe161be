import type { Plan } from '../../domain/plan.js';
import type { Channel, Playlist, Upload, VideoFailureCode } from '../../domain/transcript.js';
import type { UploadsListPage } from '../../platform/video-platform.js';
import type { OpenReservation } from '../../quota/settlement-retries.js';
import { RETRY_DELAYS_SECONDS, uploadAgeSeconds, type FailedTry, type Retry } from '../../transcripts/finality.js';
import type { KeptText } from '../../transcripts/kept/kept-text.js';
import { type Entry, statesBlock } from '../../transcripts/delivery/transcript-events.js';
import type { ChangedJob } from '../job-row.js';

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

export interface VideoResults {
  reservation: OpenReservation | undefined;
  /** The transcripts that it fetched for the reservation. */
  fetched: number;
  videos: readonly VideoChange[];
  /** The stored forms of the decided videos. */
  entries: Buffer;
  kept?: KeptText[] | undefined;
}

/** The SQLSTATE of a slice whose reservation ended before it was stored. */
export const SLICE_EXPIRED = 'CT001';

/** What a slice found out. The database decides what that makes of its job: `job_transition`. */
export type SliceOutcome =
  | { type: 'organization_deleted' | 'plan_excludes' }
  | { type: 'blocked' }
  | { type: 'channel_not_found' | 'playlist_not_found' }
  /** Nothing was due, or everything was read without the platform. */
  | { type: 'unserved' }
  /** The list is read again from its first page when the platform rejects where it goes on. */
  | { type: 'stopped' | 'failed'; restartList?: boolean }
  /** Nothing was asked of the platform, because the pace could not serve it in time, or every egress is refused. */
  | { type: 'busy'; seconds: number }
  /** The platform served or judged a video. What it holds back can be read after the seconds. */
  | { type: 'served'; seconds: number }
  /** Not even one video fits into the quota, or into what the key may use of it: it is used up, or other calls hold the rest. */
  | { type: 'without_quota' | 'quota_reserved' };

/** When a list that ended incomplete is read again, by how often that added nothing. */
export function listRetrySeconds(setbacks: number): number {
  return RETRY_DELAYS_SECONDS[setbacks] ?? RETRY_DELAYS_SECONDS[2];
}

/** Of a video or list whose failure does not say when a retry can succeed. */
export const BUSY_SECONDS = 30;

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

/**
 * What the videos that a slice read say about it. One in which something failed and the platform served nothing has failed, unless
 * it was stopped.
 *
 * @param slice.durationSeconds the pace states at the start of the slice when it can serve what it holds back
 */
export function outcomeOf(
  videos: readonly Pick<ReadVideo, 'entry'>[],
  { stopped, durationSeconds }: { stopped: boolean; durationSeconds: number },
): SliceOutcome {
  if (isBlocked(videos)) return { type: 'blocked' };
  const served = videos.some(isServed);
  const failures = videos.flatMap(({ entry }) => (entry.ok ? [] : [entry.error]));
  const waits = failures
    .filter(({ code }) => code === 'upstream_busy')
    .map(({ retryAfterSeconds = BUSY_SECONDS }) => retryAfterSeconds);
  const seconds = waits.length > 0 ? Math.max(1, Math.min(...waits) - durationSeconds) : 0;
  if (served) return { type: 'served', seconds };
  if (waits.length > 0) return { type: 'busy', seconds };
  if (failures.length === 0) return { type: 'unserved' };
  return { type: stopped ? 'stopped' : 'failed' };
}
