import type { Upload, VideoKind } from '../../../domain/transcript.js';
import { asVideoId, UnreadableError } from '../response-parsing.js';
import { readInstant } from './listed-upload.js';

/*
 * What is added to a list of uploads from other lists: the kinds and the publish dates.
 */

/** A channel's Shorts, newest first, and the token of the following ones; `complete` when these are all of them. */
export interface ShortsList {
  uploads: readonly Upload[];
  next: string | null;
  complete: boolean;
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

/** Shorts have at most three minutes (since October 2024); lists round durations. */
const SHORT_SECONDS_MAX = 181;

/**
 * Sets the kind of uploads: Shorts look like videos in the list of uploads. The kind is `video` for one that is too long, and
 * within the range that the list of Shorts covers; beyond its oldest entry, and without the list (null), it stays unknown.
 */
export function withKinds(uploads: readonly Upload[], shorts: ShortsList | null): Upload[] {
  const ids = new Set(shorts?.uploads.map(({ videoId }) => videoId));
  const coveredCount = shorts === null ? 0 : coverage(uploads, shorts);
  return uploads.map((upload, index) => {
    const { videoId, kind, durationSeconds } = upload;
    if (isBroadcast(kind)) return upload;
    if (ids.has(videoId)) return { ...upload, kind: 'short' };
    const isVideo = index < coveredCount || (durationSeconds ?? 0) > SHORT_SECONDS_MAX;
    return isVideo ? { ...upload, kind: kind ?? 'video' } : upload;
  });
}

/** How many of the newest uploads a list of Shorts covers. */
function coverage(uploads: readonly Upload[], { uploads: shorts, complete }: ShortsList): number {
  if (complete) return uploads.length;
  const oldest = shorts.at(-1)?.videoId;
  if (oldest === undefined) return 0;
  const position = uploads.findIndex(({ videoId }) => videoId === oldest);
  // Both lists are newest first, so an oldest Short that is not among the uploads is older than all of them.
  return position < 0 ? uploads.length : position + 1;
}

const FEED_VIDEO_ID = /<yt:videoId>([^<]*)<\/yt:videoId>/;
const PUBLISHED = /<published>([^<]*)<\/published>/;

/**
 * Reads a channel's Atom feed: the publish date of each of its videos (the newest 15) as video ID -> ISO 8601 in UTC.
 * An entry without a readable ID or time is skipped.
 *
 * @throws UnreadableError for a body that is not a feed or is truncated
 */
export function readFeedDates(xml: string): Map<string, string> {
  const body = xml.trim();
  if (!/^(?:<\?xml [^<>]*\?>\s*)?<feed[\s>]/.test(body) || !body.endsWith('</feed>'))
    throw new UnreadableError('a whole feed');
  const dates = new Map<string, string>();
  for (const opened of body.split('<entry>').slice(1)) {
    const [entry = ''] = opened.split('</entry>', 1);
    const videoId = asVideoId(FEED_VIDEO_ID.exec(entry)?.[1]?.trim());
    const published = readInstant(PUBLISHED.exec(entry)?.[1]?.trim() ?? '');
    if (videoId !== null && published !== null) dates.set(videoId, published);
  }
  return dates;
}
