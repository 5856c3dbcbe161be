import { UpstreamError } from '../../domain/errors.js';
import type { Upload, VideoKind } from '../../domain/transcript.js';
import { ContinuationRejectedError, type UploadsListPage } from '../../platform/video-platform.js';
import { canBePublishedSince } from '../cache/lifetimes.js';

export interface CountedList {
  uploads: Upload[];
  /** Where it goes on; null at its end. */
  next: string | null;
  /** Whether these are all. A list that ends with what cannot be read goes on nowhere and is not complete. */
  complete: boolean;
}

/** Whether a list has the first `count` videos, or all. */
export function reaches({ uploads, complete }: CountedList, count: number): boolean {
  return complete || uploads.length >= count;
}

/** What was read from the platform, with the time. */
export interface Dated {
  /** Of a list the time of its first page, in milliseconds. */
  readAtMs: number;
}

/** How long what was read last serves calls while the platform refuses to be read. */
export const LAST_READ_SECONDS = 86_400;

export function isYoungerThan(seconds: number, { readAtMs }: Dated): boolean {
  // The clock of another process can be ahead.
  return Math.abs(Date.now() - readAtMs) < seconds * 1000;
}

/** The list that was read last, for a call whose list the platform refuses; undefined when it is too old or too short. */
export function lastList<List extends CountedList & Dated>(
  list: List,
  count: number,
): (List & { listedAt: string }) | undefined {
  if (!isYoungerThan(LAST_READ_SECONDS, list) || !reaches(list, count)) return undefined;
  return { ...list, listedAt: new Date(list.readAtMs).toISOString() };
}

/** Pages have up to 100 entries; a list with fewer per page on average is not followed further. */
const ENTRIES_PER_PAGE_MIN = 20;
const PAGES_EXTRA = 3;

/** A list that begins with a page. One that ends before the number of videos that it states is complete: hidden ones are counted. */
export function listFrom({ uploads, next, incomplete, hidden }: UploadsListPage): CountedList {
  return { uploads, next, complete: next === null && (!incomplete || hidden !== null) };
}

/**
 * Reads at least `count` videos of a list, each once, or all when there are fewer.
 *
 * @param known goes on from there, while the platform takes its continuation
 * @param first reads the first page
 * @throws UpstreamError when it cannot be read to that length, and what the parameters throw
 */
export async function readCounted<List extends CountedList>(
  count: number,
  known: List | undefined,
  first: () => Promise<List>,
  pageAfter: (after: string) => Promise<UploadsListPage>,
): Promise<List> {
  if (known && known.next !== null) {
    const list = await readOn(known, count, pageAfter);
    if (list) return list;
  }
  const list = await readOn(await first(), count, pageAfter);
  if (list) return list;
  throw new UpstreamError('upstream_failure', new ContinuationRejectedError());
}

/** Null when the platform refuses the continuation. */
async function readOn<List extends CountedList>(
  list: List,
  count: number,
  pageAfter: (after: string) => Promise<UploadsListPage>,
): Promise<List | null> {
  const pagesMax = Math.ceil(count / ENTRIES_PER_PAGE_MIN) + PAGES_EXTRA;
  const uploads = new Map(list.uploads.map((upload) => [upload.videoId, upload]));
  let { next, complete } = list;
  for (let pages = 1; !complete && uploads.size < count; pages += 1) {
    // Returning fewer would silently truncate the result.
    if (next === null || pages >= pagesMax)
      throw new UpstreamError('upstream_failure', new Error(`The list ends unread after ${uploads.size} of ${count}`));
    const page = await pageAfter(next).catch((error: unknown) => {
      if (error instanceof ContinuationRejectedError) return null;
      throw error;
    });
    if (page === null) return null;
    for (const upload of page.uploads) if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
    ({ next, complete } = listFrom(page));
  }
  return { ...list, uploads: [...uploads.values()], next, complete };
}

/** Takes over what an earlier read stated: the dates, and the kinds that do not change. */
export function withKnown(uploads: readonly Upload[], known: readonly Upload[]): Upload[] {
  const byId = new Map(known.map((upload) => [upload.videoId, upload]));
  return uploads.map((upload) => {
    const { publishedAt = null, kind = null } = byId.get(upload.videoId) ?? {};
    return { ...upload, publishedAt, kind: upload.kind ?? (isBroadcast(kind) ? null : kind) };
  });
}

/** Whether an earlier read does not know one of the uploads, or knows it as a stream that has ended since. */
export function hasNews(uploads: readonly Upload[], known: readonly Upload[]): boolean {
  const kinds = new Map(known.map(({ videoId, kind }) => [videoId, kind]));
  return uploads.some(({ videoId, kind }) => {
    const before = kinds.get(videoId);
    return before === undefined || (isBroadcast(before) && !isBroadcast(kind));
  });
}

function isBroadcast(kind: VideoKind | null): boolean {
  return kind === 'live' || kind === 'upcoming';
}

/** How deep a list is read for videos of some kinds, or published after a time. */
const FILTERED_DEPTH_MAX = 500;

/** Which videos of a list a call is about, from its start on. */
export interface Selection {
  limit: number;
  /** As for `isOfKinds`. */
  kinds?: readonly VideoKind[] | undefined;
  /** A time (ISO 8601): only those that can have been published then or later. */
  publishedAfter?: string | undefined;
  /** The ID of a video: only those above it; all when it is not among them. */
  since?: string | undefined;
}

export interface Selected {
  uploads: Upload[];
  /** Whether the video of `since` was found; undefined without it. */
  sinceFound: boolean | undefined;
}

/**
 * Reads a list as deep as a selection needs.
 *
 * @param read reads at least so many videos of the list, or all
 * @param order of a list that is newest first, the end of what was read is the oldest of it
 */
export async function readSelection<List extends Pick<CountedList, 'uploads' | 'complete'>>(
  selection: Selection,
  read: (count: number) => Promise<List>,
  order: 'newest-first' | 'any' = 'any',
): Promise<{ list: List } & Selected> {
  const { limit } = selection;
  const list = await read(limit);
  const selected = selectedOf(list.uploads, selection);
  const isEnough = selected.uploads.length === limit || selected.sinceFound === true || list.complete;
  const oldest = list.uploads.at(-1);
  const isPast = order === 'newest-first' && oldest !== undefined && !isPublishedAfter(oldest, selection);
  if (!isFiltered(selection) || isEnough || isPast) return { list, ...selected };
  const deeper = await read(FILTERED_DEPTH_MAX);
  return { list: deeper, ...selectedOf(deeper.uploads, selection) };
}

/** Whether a video is of one of some kinds, empty for all. One whose kind the platform does not state can be a video or a Short. */
export function isOfKinds({ kind }: Upload, kinds: readonly VideoKind[]): boolean {
  const possible: readonly VideoKind[] = kind === null ? ['video', 'short'] : [kind];
  return kinds.length === 0 || possible.some((each) => kinds.includes(each));
}

/** Whether a video can have been published at the time of a request or later. */
export function isPublishedAfter(
  upload: Upload,
  { publishedAfter }: { publishedAfter?: string | null | undefined },
  nowMs = Date.now(),
): boolean {
  return (publishedAfter ?? null) === null || canBePublishedSince(upload, Date.parse(String(publishedAfter)), nowMs);
}

const isFiltered = ({ kinds, publishedAfter }: Selection): boolean => (kinds ?? publishedAfter) !== undefined;

function selectedOf(uploads: readonly Upload[], selection: Selection): Selected {
  const { limit, kinds = [], since } = selection;
  const selected: Upload[] = [];
  for (const upload of uploads.slice(0, isFiltered(selection) ? FILTERED_DEPTH_MAX : limit)) {
    if (upload.videoId === since) return { uploads: selected, sinceFound: true };
    if (isOfKinds(upload, kinds) && isPublishedAfter(upload, selection)) selected.push(upload);
    if (selected.length === limit) break;
  }
  return { uploads: selected, sinceFound: since === undefined ? undefined : false };
}
