import type { Upload, VideoKind } from '../../../domain/transcript.js';
import { asVideoId, UnreadableError } from '../response-parsing.js';
import { readInstant } from './displayed-values.js';

/*
 * What is added to a list of uploads from other lists: the kinds and the publish dates.
 */

/** The IDs of a channel's Shorts, newest first; `complete` when these are all of them. */
export interface ShortsList {
  ids: readonly string[];
  complete: boolean;
}

/**
 * Sets the kind of uploads: Shorts look like videos in the list of uploads. The kind is `video` only within the range that
 * the list of Shorts covers; beyond its oldest entry, and without the list (null), it stays unknown.
 */
export function withKinds(uploads: readonly Upload[], shorts: ShortsList | null): Upload[] {
  if (!shorts) return [...uploads];
  const ids = new Set(shorts.ids);
  const coveredCount = shorts.complete ? uploads.length : coverage(uploads, shorts.ids);
  return uploads.map((upload, index) => {
    if (upload.kind === 'live' || upload.kind === 'upcoming') return upload;
    if (ids.has(upload.videoId)) return { ...upload, kind: 'short' };
    return index < coveredCount ? { ...upload, kind: upload.kind ?? 'video' } : upload;
  });
}

/** How many of the newest uploads a partial list of Shorts covers. */
function coverage(uploads: readonly Upload[], shortIds: readonly string[]): number {
  const oldest = shortIds.at(-1);
  if (oldest === undefined) return 0;
  const position = uploads.findIndex(({ videoId }) => videoId === oldest);
  // Both lists are newest first, so an oldest Short that is not among the uploads is older than all of them.
  return position < 0 ? uploads.length : position + 1;
}

/** Shorts have at most three minutes (since October 2024); lists round durations. */
const SHORT_SECONDS_MAX = 181;

/** Sets the kind of videos that are too long to be Shorts. */
export function withLongVideos(uploads: readonly Upload[]): Upload[] {
  return uploads.map((upload) =>
    upload.kind === null && (upload.durationSeconds ?? 0) > SHORT_SECONDS_MAX ? { ...upload, kind: 'video' } : upload,
  );
}

/** Lists that the platform makes of one kind of a channel's uploads. */
const LIST_KIND = /^UU(SH|LF|LV)[A-Za-z0-9_-]{22}$/;
const KINDS: Readonly<Record<string, VideoKind>> = { SH: 'short', LF: 'video', LV: 'video' };

/** Sets the kind of videos in a list of one kind, whose entries do not state it. */
export function withListKind(uploads: readonly Upload[], playlistId: string): Upload[] {
  const listKind = KINDS[LIST_KIND.exec(playlistId)?.[1] ?? ''] ?? null;
  return uploads.map((upload) => ({ ...upload, kind: upload.kind ?? listKind }));
}

/** Adds the exact dates from the channel's feed. */
export function withDates(uploads: readonly Upload[], dates: ReadonlyMap<string, string> | null): Upload[] {
  return uploads.map((upload) => ({
    ...upload,
    publishedAt: upload.publishedAt ?? dates?.get(upload.videoId) ?? null,
  }));
}

const VIDEO_ID = /<yt:videoId>([^<]*)<\/yt:videoId>/;
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
    const videoId = asVideoId(VIDEO_ID.exec(entry)?.[1]?.trim());
    const published = readInstant(PUBLISHED.exec(entry)?.[1]?.trim() ?? '');
    if (videoId !== null && published !== null) dates.set(videoId, published);
  }
  return dates;
}
