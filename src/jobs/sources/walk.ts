import type { Upload, VideoKind } from '../../domain/transcript.js';
import type { UploadsListPage } from '../../platform/video-platform.js';
import { statedAgeSecondsMin } from '../../transcripts/cache/lifetimes.js';
import { isOfKinds } from '../../transcripts/sources/counted-list.js';
import type { Start } from '../job.js';

/** A start that the walk has to read for. */
export interface WaitingStart {
  /** A number of the newest uploads, or the ID of a video, above which all are meant. */
  start: Exclude<Start, 'now'>;
  /** Empty for all. */
  kinds: readonly VideoKind[];
  /** The wanted uploads that this walk has listed by now. */
  listed: number;
}

/** What a walk along the list of a source goes by. It has as many pages as it takes to meet an upload that an earlier one has seen. */
export interface Walk {
  kind: 'channel' | 'playlist';
  /** Whether no walk has ended yet: what it lists counts as seen. */
  isFirst: boolean;
  /** Those that this page can serve. */
  starts: readonly WaitingStart[];
  /** The uploads that this walk has listed for them by now. */
  listed: number;
  /** Whether an earlier page has met what was seen, so that the walk goes on for the starts only. */
  forStarts: boolean;
  /** When the source was followed first. */
  createdAtMs: number;
  /** When the walk before has ended: what was listed by then is known, or older than the first subscription. */
  seenAtMs: number;
  /** Whether every upload of the channel was seen, so that any other one is new wherever the list has it. */
  seesAll: boolean;
  /** The uploads that this walk has added by now. */
  added: number;
  /** How many videos the list states beyond those that it has, as several reads have confirmed; null for none. */
  hidden: number | null;
}

/** An upload of the page that the source has. */
export interface KnownUpload {
  /** Whether an earlier walk has added it. */
  seen: boolean;
  /** As it was listed, while something can become of it. */
  listed?: Upload | undefined;
}

/** `new` uploads are for the subscriptions, `seen` ones are not; of an `undecided` one a later page of the walk decides that. */
export type AddedState = 'new' | 'seen' | 'undecided';

export interface WalkStep {
  /** In the order of the list. `isOld`: published long before the walk before has ended. */
  added: { upload: Upload; state: AddedState; isOld: boolean }[];
  /** What becomes of the undecided uploads of the pages before. */
  decided: AddedState;
  /** Uploads that the list states something else about now: a stream has begun or ended. */
  changed: Upload[];
  /** The uploads of the page, when a start waits for them. */
  ranked: Upload[];
  /** A list that ends too early is read again from its first page, at a later check. */
  end: 'continue' | 'ended' | 'read_again';
  forStarts: boolean;
  seesAll: boolean;
}

/** How many uploads are listed for a start, and how many a walk adds until it meets a seen upload. */
const START_DEPTH_MAX = 500;
const DEPTH_MAX = 5_000;
/** Of a playlist, which is read whole. */
const PLAYLIST_PAGES_MAX = 50;
/** Of a list whose pages add nothing. */
const PAGES_MAX = 500;
/** Within so many pages no date ends a walk at a page of which little was seen: what becomes public late has older dates. */
const DATELESS_PAGES = 10;
/** An upload can be listed some hours after it was published, and a walk takes some time. */
export const LISTING_DELAY_MS = 86_400_000;

/**
 * Goes one page along the list: decides which of its uploads are new, and whether the walk goes on.
 *
 * @param known the uploads of the page that the source has, by their IDs
 */
export function walkPage(
  walk: Walk,
  page: UploadsListPage,
  known: ReadonlyMap<string, KnownUpload>,
  nowMs = Date.now(),
): WalkStep {
  const uploads = [...new Map(page.uploads.map((upload) => [upload.videoId, upload])).values()];
  const stateOf = rule(walk, uploads, known, nowMs);
  const listed = uploads.flatMap((upload, place) => {
    if (known.has(upload.videoId)) return [];
    return [
      { upload, state: stateOf(upload, place), isOld: isBefore(walk.seenAtMs - LISTING_DELAY_MS, upload, nowMs) },
    ];
  });
  const changed = uploads.filter((upload) => {
    const before = known.get(upload.videoId)?.listed;
    return before && before.failure !== upload.failure;
  });
  // It states as many more videos as several reads of it did.
  const isHidden = page.hidden !== null && page.hidden === walk.hidden;
  const isLast = page.next === null && (!page.incomplete || isHidden);
  const count = walk.added + listed.length;
  const pagesMax = walk.kind === 'playlist' ? PLAYLIST_PAGES_MAX : PAGES_MAX;
  const isDeepest = page.pages >= pagesMax || (walk.kind === 'channel' && count >= DEPTH_MAX);
  const met = walk.forStarts || isLast || isDeepest || meets(walk, page, uploads, known, nowMs);
  const isServed =
    walk.listed + uploads.length >= START_DEPTH_MAX || walk.starts.every((start) => isServedBy(start, uploads));
  const isEnd = isLast || isDeepest || (met && isServed);
  const undecided = met ? 'seen' : 'undecided';
  return {
    added: listed.map((each) => ({ ...each, state: each.state === 'undecided' ? undecided : each.state })),
    decided: lowestSeenOf(uploads, known) === -1 ? undecided : 'new',
    ...{ changed, ranked: walk.starts.length > 0 ? uploads : [] },
    end: isEnd ? 'ended' : page.next === null ? 'read_again' : 'continue',
    forStarts: met,
    // An empty list can be an error of the platform.
    seesAll: walk.seesAll || (walk.isFirst && isLast && count > 0),
  };
}

/** A stream or a premiere becomes a video. As `source_is_wanted` in SQL, by which subscriptions take uploads. */
export function isWanted(upload: Upload, kinds: readonly VideoKind[]): boolean {
  const becomesVideo = upload.kind === 'live' || upload.kind === 'upcoming';
  return isOfKinds(upload, kinds) || (becomesVideo && kinds.includes('video'));
}

function isServedBy({ start, kinds, listed }: WaitingStart, uploads: readonly Upload[]): boolean {
  if (typeof start === 'string') return uploads.some(({ videoId }) => videoId === start);
  return listed + uploads.filter((upload) => isWanted(upload, kinds)).length >= start;
}

type StateRule = (upload: Upload, place: number) => AddedState;

/**
 * What is above a seen upload is new. Below the last one of a page are those that the first walk did not reach, unless their age
 * or a later page says else. Anything new in a playlist is.
 */
function rule(
  walk: Walk,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
  nowMs: number,
): StateRule {
  if (walk.kind === 'playlist') return () => (walk.isFirst ? 'seen' : 'new');
  if (walk.forStarts) return () => 'seen';
  if (walk.isFirst) {
    // What appears while it is repeated.
    const lowestKnown = uploads.findLastIndex(({ videoId }) => known.has(videoId));
    return (upload, place) => (isPublishedSince(walk, upload) || place < lowestKnown ? 'new' : 'seen');
  }
  const lowestSeen = lowestSeenOf(uploads, known);
  const firstOld = uploads.findIndex((upload) => ageOf(walk, upload, nowMs) === 'old');
  return (upload, place) => {
    if (walk.seesAll || isPublishedSince(walk, upload) || place < lowestSeen) return 'new';
    switch (ageOf(walk, upload, nowMs)) {
      // Also below a seen one: a stream that was seen moves to when it ran, among new ones.
      case 'recent':
        return 'new';
      case 'old':
        return 'undecided';
      case 'stream':
        return lowestSeen === -1 ? 'new' : 'undecided';
      // Below an old one, so is what states no age, e.g. a private video.
      case 'undated':
        return lowestSeen === -1 && (firstOld === -1 || place < firstOld) ? 'new' : 'undecided';
    }
  };
}

function meets(
  walk: Walk,
  { pages }: UploadsListPage,
  uploads: readonly Upload[],
  known: ReadonlyMap<string, KnownUpload>,
  nowMs: number,
): boolean {
  const last = uploads.at(-1);
  if (!last || walk.kind === 'playlist') return false;
  if (walk.isFirst) return true;
  const isSeen = ({ videoId }: Upload): boolean => known.get(videoId)?.seen === true;
  const seen = uploads.filter(isSeen).length;
  const below = uploads.length - 1 - lowestSeenOf(uploads, known);
  // So many are not what a few deletions have moved to the end of the page.
  if (below > seen && pages < DATELESS_PAGES) return false;
  const isKnown = (upload: Upload): boolean => isSeen(upload) || ageOf(walk, upload, nowMs) === 'old';
  // Below a single one, at the end of a page, a list that is a little out of order has new ones.
  if (isKnown(last)) return uploads.slice(0, -1).some(pages < DATELESS_PAGES ? isSeen : isKnown);
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
function ageOf(walk: Walk, upload: Upload, nowMs: number): Age {
  if (upload.failure === 'video_live' || upload.failure === 'video_not_live_yet') return 'stream';
  if (statedAgeSecondsMin(upload, nowMs) === undefined) return 'undated';
  const sinceMs = Math.max(walk.createdAtMs, walk.seenAtMs - LISTING_DELAY_MS);
  return !walk.seesAll && isBefore(sinceMs, upload, nowMs) ? 'old' : 'recent';
}

/** Whether an upload was certainly published before a time. */
function isBefore(sinceMs: number, upload: Upload, nowMs: number): boolean {
  const ageSeconds = statedAgeSecondsMin(upload, nowMs);
  return ageSeconds !== undefined && ageSeconds * 1000 > nowMs - sinceMs;
}
