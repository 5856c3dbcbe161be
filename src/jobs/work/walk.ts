import type { Upload, VideoKind } from '../../domain/transcript.js';
import type { UploadsListPage } from '../../platform/video-platform.js';
import { statedAgeSecondsMin } from '../../transcripts/cache/lifetimes.js';
import { isOfKinds } from '../../transcripts/sources/selection.js';
import type { Start } from '../subscription.js';

/** What a walk along the list goes by. A walk has as many pages as it takes to meet an upload that an earlier one has seen. */
export interface Walk {
  /** Of the first walk; null for every later one. */
  start: Start | null;
  /** Empty for all. */
  kinds: readonly VideoKind[];
  createdAtMs: number;
  /** When the walk before has ended: what was listed by then is known, or older than the subscription. */
  seenAtMs: number;
  /** Whether every upload of the channel was seen, so that any other one is new wherever the list has it. */
  seesAll: boolean;
  /** The uploads that this walk has added by now. */
  added: number;
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

/** `pending` uploads are delivered, `seen` ones are not; of an `undecided` one a later page of the walk decides that. */
export type AddedState = 'pending' | 'seen' | 'undecided';

export interface WalkStep {
  /** In the order of the list. */
  added: { upload: Upload; state: AddedState }[];
  /** What becomes of the undecided uploads of the pages before. */
  decided: AddedState;
  /** Pending uploads that the list states something else about now: a stream has begun or ended. */
  changed: { position: number; upload: Upload }[];
  /** A list that ends too early is read again from its first page, at a later check. */
  end: 'continue' | 'ended' | 'read_again';
  seesAll: boolean;
}

/** How many uploads the first walk adds for what is delivered first, and a later one until it meets a seen upload. */
const START_DEPTH_MAX = 500;
const DEPTH_MAX = 5_000;
/** Of a list whose pages add nothing. */
const PAGES_MAX = 500;
/** Within so many pages no date ends a walk at a page of which little was seen: what becomes public late has older dates. */
const DATELESS_PAGES = 10;
/** An upload can be listed some hours after it was published, and a walk takes some time. */
export const LISTING_DELAY_MS = 86_400_000;

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
  const stateOf =
    walk.start === null ? laterRule(walk, uploads, known, nowMs) : firstRule(walk, walk.start, uploads, known);
  const listed = uploads.flatMap((upload, place): WalkStep['added'] => {
    if (known.has(upload.videoId)) return [];
    return [{ upload, state: isWanted(upload, walk.kinds) ? stateOf(upload, place) : 'seen' }];
  });
  const changed = uploads.flatMap((upload) => {
    const { position = 0, pending } = known.get(upload.videoId) ?? {};
    return pending && pending.failure !== upload.failure ? [{ position, upload }] : [];
  });
  const isLast = page.next === null && !page.incomplete;
  const count = walk.added + listed.length;
  const isDeepest = page.pages >= PAGES_MAX || count >= (walk.start === null ? DEPTH_MAX : START_DEPTH_MAX);
  const met =
    walk.start === null ? meetsSeen(walk, page, uploads, known, nowMs) : meetsStart(walk, walk.start, uploads, listed);
  const end = met || isLast || isDeepest ? 'ended' : page.next === null ? 'read_again' : 'continue';
  const undecided = end === 'ended' ? 'seen' : 'undecided';
  return {
    added: listed.map(({ upload, state }) => ({ upload, state: state === 'undecided' ? undecided : state })),
    decided: lowestSeenOf(uploads, known) === -1 ? undecided : 'pending',
    ...{ changed, end },
    // An empty list can be an error of the platform.
    seesAll: walk.seesAll || (walk.start !== null && isLast && count > 0),
  };
}

/** A stream or a premiere becomes a video. */
export function isWanted(upload: Upload, kinds: readonly VideoKind[]): boolean {
  const becomesVideo = upload.kind === 'live' || upload.kind === 'upcoming';
  return isOfKinds(upload, kinds) || (becomesVideo && kinds.includes('video'));
}

type StateRule = (upload: Upload, place: number) => AddedState;

/** The first walk delivers what it is to start with, and what is published while it lasts. */
function firstRule(
  walk: Walk,
  start: Start,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
): StateRule {
  const lowestKnown = uploads.findLastIndex(({ videoId }) => known.has(videoId));
  const startPlace = uploads.findIndex(({ videoId }) => videoId === start);
  let { added, delivered } = walk;
  const isFirst = (upload: Upload, place: number): boolean => {
    if (start === 'now' || ++added > START_DEPTH_MAX) return false;
    if (typeof start === 'string') return startPlace === -1 || place < startPlace;
    if (delivered >= start || !isWanted(upload, walk.kinds)) return false;
    delivered++;
    return true;
  };
  return (upload, place) =>
    isPublishedSince(walk, upload) || place < lowestKnown || isFirst(upload, place) ? 'pending' : 'seen';
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

/**
 * What is above a seen upload is new. Below the last one of a page are those that the baseline did not reach, unless their age
 * or a later page says else.
 */
function laterRule(
  walk: Walk,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
  nowMs: number,
): StateRule {
  const lowestSeen = lowestSeenOf(uploads, known);
  const firstOld = uploads.findIndex((upload) => ageOf(walk, upload, nowMs) === 'old');
  return (upload, place) => {
    if (walk.seesAll || isPublishedSince(walk, upload) || place < lowestSeen) return 'pending';
    switch (ageOf(walk, upload, nowMs)) {
      // Also below a seen one: a stream that was seen moves to when it ran, among new ones.
      case 'recent':
        return 'pending';
      case 'old':
        return 'undecided';
      case 'stream':
        return lowestSeen === -1 ? 'pending' : 'undecided';
      // Below an old one, so is what states no age, e.g. a private video.
      case 'undated':
        return lowestSeen === -1 && (firstOld === -1 || place < firstOld) ? 'pending' : 'undecided';
    }
  };
}

function meetsSeen(
  walk: Walk,
  { pages }: UploadsListPage,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
  nowMs: number,
): boolean {
  const last = uploads.at(-1);
  if (!last) return false;
  const isSeen = ({ videoId }: Upload): boolean => known.get(videoId)?.seen === true;
  const seen = uploads.filter(isSeen).length;
  const below = uploads.length - 1 - lowestSeenOf(uploads, known);
  // So many are not what a few deletions have moved to the end of the page.
  if (below > seen && pages < DATELESS_PAGES) return false;
  const isOld = (upload: Upload): boolean => isSeen(upload) || ageOf(walk, upload, nowMs) === 'old';
  // Below a single one, at the end of a page, a list that is a little out of order has new ones.
  if (isOld(last)) return uploads.slice(0, -1).some(pages < DATELESS_PAGES ? isSeen : isOld);
  return seen > 0 && !walk.seesAll && statedAgeSecondsMin(last, nowMs) === undefined;
}

function lowestSeenOf(uploads: readonly Upload[], known: ReadonlyMap<string, KnownUpload>): number {
  return uploads.findLastIndex(({ videoId }) => known.get(videoId)?.seen);
}

function isPublishedSince({ createdAtMs }: Walk, { publishedAt }: Upload): boolean {
  return publishedAt !== null && Date.parse(publishedAt) > createdAtMs;
}

type Age = 'recent' | 'old' | 'stream' | 'undated';

/** `old` is what was certainly listed before the walk before has ended. What is announced or live counts as new. */
function ageOf({ createdAtMs, seenAtMs, seesAll }: Walk, upload: Upload, nowMs: number): Age {
  if (upload.failure === 'video_live' || upload.failure === 'video_not_live_yet') return 'stream';
  const ageSeconds = statedAgeSecondsMin(upload, nowMs);
  if (ageSeconds === undefined) return 'undated';
  const sinceMs = Math.max(createdAtMs, seenAtMs - LISTING_DELAY_MS);
  return !seesAll && ageSeconds * 1000 > nowMs - sinceMs ? 'old' : 'recent';
}
