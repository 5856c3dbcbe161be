import type { Upload, VideoKind } from '../../../domain/transcript.js';
import { asVideoId, UnreadableError } from '../response-parsing.js';
import { isComplete, type Continuation, type ShortsBeside } from './list-progress.js';
import { readInstant } from './listed-upload.js';

/*
 * What is added to a list of uploads from other lists: the kinds and the publish dates.
 */

/** The next page can repeat as many uploads, and with as many pages of Shorts to read a page of uploads takes up with them. */
const IDS_MAX = 100;
const UNMET_IDS_MAX = 4 * IDS_MAX;
/** The last Shorts of those that were read can have been deleted since. */
export const UNMET_MIN = 5;

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

/** The Shorts with a further page of their list; without `shorts` those of its start, as of the start of the uploads. */
export function besideUploads(
  { uploads, next: token, progress }: Omit<Continuation, 'token'> & { uploads: readonly Upload[]; next: string | null },
  shorts?: ShortsBeside,
): ShortsBeside {
  const below = [...(shorts?.below ?? []), ...uploads.map(({ videoId }) => videoId)];
  const next = token === null ? null : { progress, token };
  const complete = token === null && isComplete(progress);
  return { above: shorts?.above ?? [], below, next, complete, inStep: shorts?.inStep ?? true };
}

/** Whether more of the list of Shorts has to be read to tell which of these uploads are Shorts. */
export function needsShorts(uploads: readonly Upload[], shorts: ShortsBeside): boolean {
  const { below, next, inStep } = pass(uploads, shorts);
  if (next === null || (inStep && below.length >= UNMET_MIN)) return false;
  const ids = new Set([...shorts.above, ...shorts.below]);
  return uploads.some(({ videoId, kind }) => kind === null && !ids.has(videoId));
}

/**
 * Sets the kind of uploads: Shorts look like videos in the list of uploads. It is `video` as far as the list of Shorts reaches;
 * beyond its oldest entry it stays unknown.
 *
 * @param shorts as of the uploads above these
 * @param unmetMin how many read Shorts must stand below all of them: one, if both lists were read together, so that it cannot
 *   have been deleted since
 */
export function withKinds(
  uploads: readonly Upload[],
  shorts: ShortsBeside,
  unmetMin = 1,
): { uploads: Upload[]; shorts: ShortsBeside } {
  const passed = pass(uploads, shorts);
  const ids = new Set([...shorts.above, ...shorts.below]);
  const isCovered = passed.complete || (passed.inStep && passed.below.length >= unmetMin);
  const lastShort = uploads.findLastIndex(({ videoId }) => ids.has(videoId));
  const described = uploads.map((upload, index): Upload => {
    if (isBroadcast(upload.kind)) return upload;
    if (ids.has(upload.videoId)) return { ...upload, kind: 'short' };
    return isCovered || index < lastShort ? { ...upload, kind: upload.kind ?? 'video' } : upload;
  });
  const isDecided = isCovered || described.slice(lastShort + 1).every(({ kind }) => kind !== null);
  return { uploads: described, shorts: { ...passed, inStep: passed.inStep && isDecided } };
}

/** The Shorts as of the end of these uploads. Both lists are newest first, so those above one that is met are not below it. */
function pass(uploads: readonly Upload[], shorts: ShortsBeside): ShortsBeside {
  const { above, below, inStep } = shorts;
  const listed = new Set(uploads.map(({ videoId }) => videoId));
  const metCount = below.findLastIndex((id) => listed.has(id)) + 1;
  return {
    ...shorts,
    above: [...above, ...below.slice(0, metCount)].slice(-IDS_MAX),
    below: below.slice(metCount).slice(-UNMET_IDS_MAX),
    inStep: inStep || metCount > 0,
  };
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
