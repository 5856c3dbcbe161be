import { unlistedVideo, type Upload, type VideoFailureCode, type VideoKind } from '../../../domain/transcript.js';
import { asArray, asCount, asString, asVideoId, at, textOf } from '../response-parsing.js';

/** The values of an item, in a form independent of its shape. */
interface ShownItem {
  videoId: unknown;
  title: string | null;
  /** Texts below the title: views, date, and in some lists the channel's name. */
  texts: readonly string[];
  /** Styles and labels of all badges, including those on the thumbnail. */
  badges: readonly unknown[];
  durationSeconds: number | null;
  thumbnails: readonly unknown[];
  /** The kind implied by the item's type. */
  kind: VideoKind | null;
}

/**
 * Reads one item of a playlist in any of the shapes seen or reported: `playlistVideoRenderer` (until May 2026),
 * `lockupViewModel` (since June 2026), and those of Shorts. Null for an item without a video ID.
 */
export function readListedUpload(item: unknown): Upload | null {
  const shown = readItem(at(item, 'richItemRenderer', 'content') ?? item);
  const videoId = asVideoId(shown?.videoId);
  if (!shown || videoId === null) return null;
  const { publishedText, viewCount, announced } = readTexts(shown.texts);
  const kind = shown.kind ?? kindOf(shown, announced);
  const durationSeconds = kind === 'live' || kind === 'upcoming' ? null : shown.durationSeconds;
  return {
    ...unlistedVideo(videoId),
    title: shown.title,
    publishedText,
    durationSeconds,
    viewCount,
    thumbnailUrl: largestThumbnail(shown.thumbnails),
    kind: kind ?? kindByDuration(durationSeconds),
    failure: failureOf(shown, kind),
  };
}

function readItem(item: unknown): ShownItem | null {
  const playlistVideo = at(item, 'playlistVideoRenderer');
  if (playlistVideo !== undefined) return readPlaylistVideo(playlistVideo);
  const lockup = at(item, 'lockupViewModel');
  if (lockup !== undefined) return readLockup(lockup);
  const short = at(item, 'shortsLockupViewModel') ?? at(item, 'reelItemRenderer');
  return short === undefined ? null : readShort(short);
}

/** Lockups of these types are lists, whose watch endpoint has the ID of their first video. */
const LIST_LOCKUP = /_(?:PLAYLIST|PODCAST|COURSE|ALBUM|MIX|CHANNEL)$/;

/** Whether an item is known to be no upload: a list of videos among the videos. */
export function isListedList(item: unknown): boolean {
  const lockup = at(at(item, 'richItemRenderer', 'content') ?? item, 'lockupViewModel');
  return LIST_LOCKUP.test(asString(at(lockup, 'contentType')) ?? '');
}

function readPlaylistVideo(video: unknown): ShownItem {
  const overlays = asArray(at(video, 'thumbnailOverlays')).map((overlay) =>
    at(overlay, 'thumbnailOverlayTimeStatusRenderer'),
  );
  const badges = asArray(at(video, 'badges')).map((badge) => at(badge, 'metadataBadgeRenderer'));
  const length = textOf(at(video, 'lengthText'));
  const seconds = asCount(at(video, 'lengthSeconds')) ?? (length === null ? null : readDurationSeconds(length));
  return {
    videoId: at(video, 'videoId') ?? at(video, 'navigationEndpoint', 'watchEndpoint', 'videoId'),
    title: textOf(at(video, 'title')),
    texts: asArray(at(video, 'videoInfo', 'runs')).flatMap((run) => asString(at(run, 'text')) ?? []),
    badges: [...badges, ...overlays].flatMap((badge) => [at(badge, 'style'), at(badge, 'icon', 'iconType')]),
    durationSeconds: seconds !== null && seconds > 0 ? seconds : null,
    thumbnails: asArray(at(video, 'thumbnail', 'thumbnails')),
    kind: at(video, 'upcomingEventData') === undefined ? null : 'upcoming',
  };
}

function readLockup(lockup: unknown): ShownItem {
  const type = asString(at(lockup, 'contentType')) ?? '';
  const tapped = at(lockup, 'rendererContext', 'commandContext', 'onTap', 'innertubeCommand');
  const reelId = at(tapped, 'reelWatchEndpoint', 'videoId');
  const watchedId = LIST_LOCKUP.test(type) ? undefined : (reelId ?? at(tapped, 'watchEndpoint', 'videoId'));
  const metadata = at(lockup, 'metadata', 'lockupMetadataViewModel');
  const rows = asArray(at(metadata, 'metadata', 'contentMetadataViewModel', 'metadataRows'));
  const image = at(lockup, 'contentImage', 'thumbnailViewModel');
  const overlays = asArray(at(image, 'overlays')).flatMap((overlay) => [
    ...asArray(at(overlay, 'thumbnailBottomOverlayViewModel', 'badges')),
    ...asArray(at(overlay, 'thumbnailOverlayBadgeViewModel', 'thumbnailBadges')),
  ]);
  const shown = overlays.map((badge) => at(badge, 'thumbnailBadgeViewModel'));
  const badges = rows.flatMap((row) => asArray(at(row, 'badges'))).map((badge) => at(badge, 'badgeViewModel'));
  const durations = shown.map((badge) => readDurationSeconds(asString(at(badge, 'text')) ?? ''));
  return {
    videoId: asVideoId(at(lockup, 'contentId')) ?? watchedId,
    title: textOf(at(metadata, 'title')),
    texts: factsOf(rows),
    badges: [...shown, ...badges].flatMap((badge) => [
      at(badge, 'badgeStyle'),
      at(badge, 'text'),
      ...asArray(at(badge, 'icon', 'sources')).map((source) => at(source, 'clientResource', 'imageName')),
    ]),
    durationSeconds: durations.find((seconds) => seconds !== null) ?? null,
    thumbnails: asArray(at(image, 'image', 'sources')),
    kind: type.endsWith('_SHORTS') || reelId !== undefined ? 'short' : null,
  };
}

/** The texts of all rows, of which there are any number. Texts that link to something are the byline. */
function factsOf(rows: readonly unknown[]): readonly string[] {
  return rows
    .flatMap((row) => asArray(at(row, 'metadataParts')))
    .filter((part) => asArray(at(part, 'text', 'commandRuns')).length === 0)
    .flatMap((part) => textOf(at(part, 'text')) ?? []);
}

/**
 * What the texts below the title state. The last one of a kind counts: a byline without a link stands above them, and a channel
 * can be called "Premiere", "10 years ago" or "1M views".
 */
function readTexts(texts: readonly string[]): Pick<Upload, 'publishedText' | 'viewCount'> & { announced: boolean } {
  const viewCount = texts.map(readViewCount).findLast((count) => count !== null) ?? null;
  const time = texts.findLast((text) => isPublishedText(text) || isAnnouncementText(text)) ?? null;
  const announced = time !== null && isAnnouncementText(time);
  // What was watched is not announced any more.
  return { viewCount, publishedText: announced ? null : time, announced: announced && viewCount === null };
}

/** A `shortsLockupViewModel`, or the older `reelItemRenderer`. */
function readShort(short: unknown): ShownItem {
  const shown = at(short, 'overlayMetadata');
  return {
    videoId: at(short, 'onTap', 'innertubeCommand', 'reelWatchEndpoint', 'videoId') ?? at(short, 'videoId'),
    title: textOf(at(shown, 'primaryText') ?? at(short, 'headline')),
    texts: [textOf(at(shown, 'secondaryText') ?? at(short, 'viewCountText')) ?? ''],
    badges: [],
    durationSeconds: null,
    // Under `thumbnailViewModel` since December 2025.
    thumbnails: asArray(
      at(short, 'thumbnailViewModel', 'thumbnailViewModel', 'image', 'sources') ??
        at(short, 'thumbnail', 'sources') ??
        at(short, 'thumbnail', 'thumbnails'),
    ),
    kind: 'short',
  };
}

const LIVE = new Set<unknown>(['LIVE', 'BADGE_STYLE_TYPE_LIVE_NOW', 'THUMBNAIL_OVERLAY_BADGE_STYLE_LIVE']);
const UPCOMING = new Set<unknown>([
  'UPCOMING',
  'Upcoming',
  'PREMIERE',
  'Premiere',
  'THUMBNAIL_OVERLAY_BADGE_STYLE_UPCOMING',
]);
const SHORT = new Set<unknown>(['SHORTS', 'THUMBNAIL_OVERLAY_BADGE_STYLE_SHORTS']);
const MEMBERS_ONLY = new Set<unknown>(['BADGE_STYLE_TYPE_MEMBERS_ONLY', 'BADGE_MEMBERS_ONLY']);

function kindOf({ badges }: ShownItem, announced: boolean): VideoKind | null {
  if (badges.some((badge) => LIVE.has(badge))) return 'live';
  if (announced || badges.some((badge) => UPCOMING.has(badge))) return 'upcoming';
  return badges.some((badge) => SHORT.has(badge)) ? 'short' : null;
}

/** Shorts have at most three minutes (since October 2024); lists round durations. */
const SHORT_SECONDS_MAX = 181;

/** The kind of a video that was or will be no stream: null for one that can be a Short, which only the list of Shorts tells. */
export function kindByDuration(durationSeconds: number | null): 'video' | null {
  return (durationSeconds ?? 0) > SHORT_SECONDS_MAX ? 'video' : null;
}

/** Only failures that the list states unambiguously; an item that is not playable here may still have captions. */
function failureOf({ badges, title }: ShownItem, kind: VideoKind | null): VideoFailureCode | null {
  if (title === '[Private video]') return 'video_private';
  if (title === '[Deleted video]') return 'video_unavailable';
  if (badges.some((badge) => MEMBERS_ONLY.has(badge))) return 'video_members_only';
  if (kind === 'live') return 'video_live';
  return kind === 'upcoming' ? 'video_not_live_yet' : null;
}

/** The URL of the widest thumbnail in a list of `{ url, width }`. */
export function largestThumbnail(thumbnails: readonly unknown[]): string | null {
  const [widest] = thumbnails
    .map((thumbnail) => ({ url: asString(at(thumbnail, 'url')) ?? '', width: asCount(at(thumbnail, 'width')) ?? 0 }))
    .filter(({ url }) => /^(?:https:)?\/\//.test(url))
    .sort((one, other) => other.width - one.width);
  return widest?.url.replace(/^\/\//, 'https://') ?? null;
}

/*
 * Readers of values that the platform displays as English text (requests set `hl=en`). An ambiguous value is null, never
 * guessed.
 */

const VIEWS = /^(\d{1,3}(?:,\d{3})+|\d{1,15})(\.\d{1,3})?([kmb])? views?$/i;
const TIMES: Readonly<Record<string, number>> = { k: 1e3, m: 1e6, b: 1e9 };

/**
 * Reads "1,234 views", "106k views", "1.2M views", "1 view" and "No views". An abbreviated count has the displayed
 * precision. Null for another grouping of digits ("1,23,456 views"), for viewers of a live stream and for other texts.
 */
export function readViewCount(text: string): number | null {
  if (/^no views$/i.test(text)) return 0;
  const [, whole, fraction, unit] = VIEWS.exec(text) ?? [];
  if (whole === undefined || (fraction !== undefined && unit === undefined)) return null;
  const count = Number(whole.replaceAll(',', '') + (fraction ?? '')) * (TIMES[unit?.toLowerCase() ?? ''] ?? 1);
  return Number.isSafeInteger(Math.round(count)) ? Math.round(count) : null;
}

/** Reads "0:45", "12:05" and "1:02:03" as seconds. */
export function readDurationSeconds(text: string): number | null {
  const [, hours, minutes, seconds] = /^(?:(\d{1,4}):(?=\d\d:))?([0-5]?\d):([0-5]\d)$/.exec(text) ?? [];
  if (minutes === undefined || seconds === undefined) return null;
  return Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(seconds);
}

const UNIT = 's|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|mo|mos|months?|y|yrs?|years?';
const AGO = new RegExp(
  `^(?:(?:Streamed(?: live)?|Premiered|Updated) )?(?:(?:\\d{1,4} ?|an? )(?:${UNIT})\\.? ago|just now|today|yesterday)$`,
  'i',
);

/** True for a publish date: "4 months ago", "Streamed 1 year ago", "Yesterday", and the short forms "2mo ago" and "5 hr ago". */
export function isPublishedText(text: string): boolean {
  return AGO.test(text) || /^Premiered /.test(text);
}

/** True for an announcement: "Premieres 6/1/26, 8:00 PM", "Scheduled for …". */
export function isAnnouncementText(text: string): boolean {
  return /^(?:Premieres |Scheduled for |Upcoming$|Premiere$)/i.test(text);
}

/**
 * Converts an ISO 8601 time with an offset to UTC, to the second: `2015-01-27T21:14:36-08:00` becomes
 * `2015-01-28T05:14:36Z`. Null for a date without a time or an offset, which is not exact.
 */
export function readInstant(text: string): string | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)$/.test(text)) return null;
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString().replace(/\.\d{3}Z$/, 'Z');
}
