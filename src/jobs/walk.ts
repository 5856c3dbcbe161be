import type { Upload, VideoKind } from '../domain/transcript.js';
import type { UploadsListPage } from '../platform/video-platform.js';
import { statedAgeSecondsMin } from '../transcripts/cache/lifetimes.js';
import { isOfKinds } from '../transcripts/sources/selection.js';
import type { Start } from './subscription.js';

/** What a walk along the list goes by. A walk has as many pages as it takes to meet an upload that an earlier one has seen. */
export interface Walk {
  /** Of the first walk; null for every later one. */
  start: Start | null;
  /** Empty for all. */
  kinds: readonly VideoKind[];
  createdAtMs: number;
  /** When the walk before has ended: what was listed by then is known, or older than the subscription. */
  seenAtMs: number;
  /** The uploads that are delivered by now. */
  delivered: number;
}

/** An upload of the page that the subscription has. */
export interface KnownUpload {
  position: number;
  /** Whether an earlier walk has added it. */
  seen: boolean;
  /** Of a pending upload: as it was listed. */
  pending?: Upload | undefined;
}

export interface WalkStep {
  /** In the order of the list; `seen` ones are not delivered. */
  added: { upload: Upload; state: 'pending' | 'seen' }[];
  /** Pending uploads that the list states something else about now: a stream has begun or ended. */
  changed: { position: number; upload: Upload }[];
  /** A list that ends too early is read again from its first page, at a later check. */
  end: 'continue' | 'ended' | 'read_again';
}

/** Pages of up to 100 uploads that the first walk reads for what is delivered first, and a later one for a seen upload. */
const START_PAGES_MAX = 5;
const PAGES_MAX = 50;
/** An upload can be listed some hours after it was published, and a walk takes some time. */
const LISTING_DELAY_MS = 86_400_000;

/**
 * Goes one page along the list: decides which of its uploads are new, and whether the walk goes on.
 *
 * @param known the uploads of the page that the subscription has, by their IDs
 */
export function walkPage(
  walk: Walk,
  page: UploadsListPage,
  known: ReadonlyMap<string, KnownUpload>,
  nowMs = Date.now(),
): WalkStep {
  const uploads = [...new Map(page.uploads.map((upload) => [upload.videoId, upload])).values()];
  const isNew =
    walk.start === null ? laterRule(walk, uploads, known, nowMs) : firstRule(walk, walk.start, uploads, known);
  const added = uploads.flatMap((upload, place): WalkStep['added'] => {
    if (known.has(upload.videoId)) return [];
    return [{ upload, state: isNew(upload, place) && isWanted(upload, walk.kinds) ? 'pending' : 'seen' }];
  });
  const changed = uploads.flatMap((upload) => {
    const { position = 0, pending } = known.get(upload.videoId) ?? {};
    return pending && pending.failure !== upload.failure ? [{ position, upload }] : [];
  });
  const isLast =
    (page.next === null && !page.incomplete) || page.pages >= (walk.start === null ? PAGES_MAX : START_PAGES_MAX);
  const met =
    walk.start === null ? meetsSeen(walk, uploads, known, nowMs) : meetsStart(walk, walk.start, uploads, added);
  return { added, changed, end: met || isLast ? 'ended' : page.next === null ? 'read_again' : 'continue' };
}

/** A stream or a premiere becomes a video. */
export function isWanted(upload: Upload, kinds: readonly VideoKind[]): boolean {
  const becomesVideo = upload.kind === 'live' || upload.kind === 'upcoming';
  return isOfKinds(upload, kinds) || (becomesVideo && kinds.includes('video'));
}

type NewRule = (upload: Upload, place: number) => boolean;

/** The first walk delivers what it is to start with, and what is published while it lasts. */
function firstRule(
  walk: Walk,
  start: Start,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
): NewRule {
  const lowestKnown = uploads.findLastIndex(({ videoId }) => known.has(videoId));
  const startPlace = uploads.findIndex(({ videoId }) => videoId === start);
  let { delivered } = walk;
  const isFirst = (upload: Upload, place: number): boolean => {
    if (start === 'now') return false;
    if (typeof start === 'string') return startPlace === -1 || place < startPlace;
    if (delivered >= start || !isWanted(upload, walk.kinds)) return false;
    delivered++;
    return true;
  };
  return (upload, place) => isPublishedSince(walk, upload) || place < lowestKnown || isFirst(upload, place);
}

function meetsStart(
  { delivered }: Walk,
  start: Start,
  uploads: readonly Upload[],
  additions: WalkStep['added'],
): boolean {
  if (start === 'now') return uploads.length > 0;
  if (typeof start === 'string') return uploads.some(({ videoId }) => videoId === start);
  return delivered + additions.filter(({ state }) => state === 'pending').length >= start;
}

/** What is above a seen upload is new. Below the last one are those that the baseline did not reach, unless their age says else. */
function laterRule(
  walk: Walk,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
  nowMs: number,
): NewRule {
  const lowestSeen = lowestSeenOf(uploads, known);
  const publishedAtMs = (upload?: Upload): number => Date.parse(upload?.publishedAt ?? '');
  const lowestSeenAtMs = publishedAtMs(uploads[lowestSeen]);
  return (upload, place) => {
    if (isPublishedSince(walk, upload)) return true;
    // The end of what was seen can be out of order.
    if (place < lowestSeen && !(publishedAtMs(upload) < lowestSeenAtMs)) return true;
    // When a channel deletes all that was seen, older uploads take their place. A stream moves to when it ran, among new ones.
    const isDoubtful = lowestSeen === -1 || (upload.failure === null && statesAge(upload));
    return isDoubtful && !predates(walk, upload, nowMs);
  };
}

function meetsSeen(
  walk: Walk,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
  nowMs: number,
): boolean {
  const last = uploads.at(-1);
  if (!last) return false;
  const isOld = (upload: Upload): boolean => known.get(upload.videoId)?.seen === true || predates(walk, upload, nowMs);
  // Below a single one, at the end of a page, a list that is a little out of order has new ones.
  if (isOld(last)) return uploads.slice(0, -1).some(isOld);
  return lowestSeenOf(uploads, known) !== -1 && !statesAge(last);
}

function lowestSeenOf(uploads: readonly Upload[], known: ReadonlyMap<string, KnownUpload>): number {
  return uploads.findLastIndex(({ videoId }) => known.get(videoId)?.seen);
}

function isPublishedSince({ createdAtMs }: Walk, { publishedAt }: Upload): boolean {
  return publishedAt !== null && Date.parse(publishedAt) > createdAtMs;
}

function statesAge(upload: Upload): boolean {
  return statedAgeSecondsMin(upload, 0) !== undefined;
}

/** Whether an upload was certainly listed before the walk before has ended. What is announced or live counts as new. */
function predates({ createdAtMs, seenAtMs }: Walk, upload: Upload, nowMs: number): boolean {
  const sinceMs = Math.max(createdAtMs, seenAtMs - LISTING_DELAY_MS);
  return upload.failure === null && (statedAgeSecondsMin(upload, nowMs) ?? 0) * 1000 > nowMs - sinceMs;
}
