import type { Upload } from '../../../domain/transcript.js';
import type { UploadsListPage } from '../../video-platform.js';
import { asVideoId, UnreadableError } from '../response-parsing.js';
import { readInstant } from './listed-upload.js';

/*
 * What is added to the first page of a list of uploads from other lists: the kinds and the publish dates.
 */

/** What the feed of a channel states about one of its newest uploads. */
export interface FeedEntry {
  /** ISO 8601 in UTC; null when it cannot be read. */
  publishedAt: string | null;
  /** Whether it links the video as a Short. It does not do so for all Shorts. */
  isShort: boolean;
}

/** What was read; null for what could not be. */
export interface Additions {
  /** The first page of the list of Shorts. */
  shorts: UploadsListPage | null;
  /** By video ID. */
  feed: ReadonlyMap<string, FeedEntry> | null;
}

/**
 * Adds dates and kinds to the first page of the uploads. Shorts look like videos there: an upload is a `video` as far as the
 * list of Shorts reaches; beyond its oldest entry the kind stays unknown.
 */
export function withAdditions(page: UploadsListPage, { shorts, feed }: Additions): UploadsListPage {
  const whole = shorts ? withRestOfShorts(page, shorts) : page;
  const shortIds = new Set(shorts?.uploads.map(({ videoId }) => videoId));
  const isListed = new Set(whole.uploads.map(({ videoId }) => videoId));
  const lastShort = whole.uploads.findLastIndex(({ videoId }) => shortIds.has(videoId));
  // Both lists are newest first: a Short that is not among the uploads after all that are is below them.
  const lastRead = shorts?.uploads.at(-1);
  const isCovered = shorts !== null && (isWhole(shorts) || (lastRead && !isListed.has(lastRead.videoId)));
  const uploads = whole.uploads.map((upload, index): Upload => {
    const { publishedAt = null, isShort = false } = feed?.get(upload.videoId) ?? {};
    const dated = { ...upload, publishedAt: publishedAt ?? upload.publishedAt };
    if (upload.kind === 'live' || upload.kind === 'upcoming') return dated;
    if (isShort || shortIds.has(upload.videoId)) return { ...dated, kind: 'short' };
    return isCovered || index < lastShort ? { ...dated, kind: upload.kind ?? 'video' } : dated;
  });
  return { ...whole, uploads };
}

function isWhole({ next, incomplete }: UploadsListPage): boolean {
  return next === null && !incomplete;
}

/** A list of uploads that has ended, of a channel that has Shorts only: the list of Shorts can go on (reported for lists of 100). */
function withRestOfShorts(page: UploadsListPage, shorts: UploadsListPage): UploadsListPage {
  const ids = new Set(shorts.uploads.map(({ videoId }) => videoId));
  const isOfShorts = page.uploads.every(({ videoId }) => ids.has(videoId));
  const hasMore = shorts.next !== null || shorts.uploads.length > page.uploads.length;
  if (page.next !== null || page.uploads.length === 0 || !isOfShorts || !hasMore) return page;
  const listed = new Set(page.uploads.map(({ videoId }) => videoId));
  return { ...shorts, uploads: [...page.uploads, ...shorts.uploads.filter(({ videoId }) => !listed.has(videoId))] };
}

const FEED_VIDEO_ID = /<yt:videoId>([^<]*)<\/yt:videoId>/;
const PUBLISHED = /<published>([^<]*)<\/published>/;
const LINKED_AS_SHORT = /<link\b[^>]*\bhref="[^"]*\/shorts\//;

/**
 * Reads a channel's Atom feed: what it states about each of its videos (the newest 15), by video ID. An entry without a
 * readable ID is skipped.
 *
 * @throws UnreadableError for a body that is not a feed or is truncated
 */
export function readFeed(xml: string): Map<string, FeedEntry> {
  const body = xml.trim();
  if (!/^(?:<\?xml [^<>]*\?>\s*)?<feed[\s>]/.test(body) || !body.endsWith('</feed>'))
    throw new UnreadableError('a whole feed');
  const entries = new Map<string, FeedEntry>();
  for (const opened of body.split('<entry>').slice(1)) {
    const [entry = ''] = opened.split('</entry>', 1);
    const videoId = asVideoId(FEED_VIDEO_ID.exec(entry)?.[1]?.trim());
    const publishedAt = readInstant(PUBLISHED.exec(entry)?.[1]?.trim() ?? '');
    if (videoId !== null) entries.set(videoId, { publishedAt, isShort: LINKED_AS_SHORT.test(entry) });
  }
  return entries;
}
