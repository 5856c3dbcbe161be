import {
  type Channel,
  unlistedVideo,
  type Upload,
  type VideoFailureCode,
  type VideoKind,
} from '../../../domain/transcript.js';
import { readInstant } from '../channel/displayed-values.js';
import { asArray, asCount, asString, asVideoId, at, isObject, UnreadableError } from '../response-parsing.js';

/*
 * Readers of responses of the YouTube Data API v3, by its reference. Each throws `UnreadableError` for anything else.
 */

const CHANNEL_ID = /^UC[A-Za-z0-9_-]{22}$/;

/** The ID of the only channel in a list; null for an empty list, which means that the channel does not exist. */
export function readChannelId(response: unknown): string | null {
  const [item] = readItems(response, 'youtube#channelListResponse');
  if (item === undefined) return null;
  const id = asString(at(item, 'id'));
  if (id === null || !CHANNEL_ID.test(id)) throw new UnreadableError('the ID of a channel');
  return id;
}

/** The requested channel; null when it does not exist. Handles are in lower case. */
export function readChannel(response: unknown, channelId: string): Channel | null {
  const id = readChannelId(response);
  if (id === null) return null;
  if (id !== channelId) throw new UnreadableError('the requested channel');
  const snippet = at(response, 'items', 0, 'snippet');
  const name = asString(at(snippet, 'title'));
  if (name === null) throw new UnreadableError('the name of a channel');
  // Older custom URLs have no @.
  const url = asString(at(snippet, 'customUrl'));
  return { id, name, handle: url?.startsWith('@') === true ? url.normalize('NFC') : null };
}

/** The number of public videos of the requested channel, which can be hidden (null); undefined without the channel. */
export function readVideoCount(response: unknown, channelId: string): number | null | undefined {
  const id = readChannelId(response);
  if (id === null) return undefined;
  if (id !== channelId) throw new UnreadableError('the requested channel');
  return asCount(at(response, 'items', 0, 'statistics', 'videoCount'));
}

/** The title of the requested playlist; null when the API does not list it, as for some lists that the platform makes. */
export function readPlaylistTitle(response: unknown, playlistId: string): string | null {
  const [item] = readItems(response, 'youtube#playlistListResponse');
  if (item === undefined) return null;
  if (at(item, 'id') !== playlistId) throw new UnreadableError('the requested playlist');
  return asString(at(item, 'snippet', 'title'));
}

/** An entry of a playlist. */
export interface PlaylistItem {
  videoId: string;
  title: string | null;
  publishedAt: string | null;
  /** Set for a private or deleted video, which the playlist lists with a placeholder instead of a title. */
  failure: VideoFailureCode | null;
}

export interface PlaylistItems {
  items: PlaylistItem[];
  nextPageToken: string | null;
}

/** A page of a playlist, without entries whose video cannot be read. */
export function readPlaylistItems(response: unknown): PlaylistItems {
  const entries = readItems(response, 'youtube#playlistItemListResponse');
  const items = entries.flatMap((entry) => {
    const videoId = asVideoId(at(entry, 'contentDetails', 'videoId'));
    if (videoId === null) return [];
    const failure = hiddenBecause(entry);
    const title = failure === null ? asString(at(entry, 'snippet', 'title')) : null;
    const publishedAt = readInstant(asString(at(entry, 'contentDetails', 'videoPublishedAt')) ?? '');
    return [{ videoId, title, publishedAt, failure }];
  });
  if (items.length === 0 && entries.length > 0) throw new UnreadableError('one readable entry of a playlist');
  return { items, nextPageToken: asString(at(response, 'nextPageToken')) };
}

function hiddenBecause(entry: unknown): VideoFailureCode | null {
  if (at(entry, 'status', 'privacyStatus') === 'private') return 'video_private';
  return at(entry, 'snippet', 'title') === 'Deleted video' ? 'video_unavailable' : null;
}

/** The videos of a list by ID. The API omits those that are private or deleted. */
export function readVideos(response: unknown): Map<string, Upload> {
  const uploads = new Map<string, Upload>();
  for (const item of readItems(response, 'youtube#videoListResponse')) {
    const videoId = asVideoId(at(item, 'id'));
    if (videoId !== null) uploads.set(videoId, readVideo(item, videoId));
  }
  return uploads;
}

function readVideo(item: unknown, videoId: string): Upload {
  const kind = readKind(item);
  const seconds = readDuration(asString(at(item, 'contentDetails', 'duration')) ?? '');
  return {
    ...listedVideo({
      videoId,
      title: asString(at(item, 'snippet', 'title')),
      publishedAt: readInstant(asString(at(item, 'snippet', 'publishedAt')) ?? ''),
      failure: kind === 'live' ? 'video_live' : kind === 'upcoming' ? 'video_not_live_yet' : null,
    }),
    durationSeconds: kind !== null || seconds === 0 ? null : seconds,
    viewCount: asCount(at(item, 'statistics', 'viewCount')),
    thumbnailUrl: largestThumbnail(at(item, 'snippet', 'thumbnails')),
    kind,
  };
}

/** A video of which only the entry of the playlist is known. */
export function listedVideo(item: PlaylistItem): Upload {
  return { ...unlistedVideo(item.videoId), ...item };
}

/** Whether the video is live or upcoming; null for all others. A past stream can still be listed as live for a while. */
function readKind(item: unknown): VideoKind | null {
  const broadcast = at(item, 'snippet', 'liveBroadcastContent');
  if (at(item, 'liveStreamingDetails', 'actualEndTime') !== undefined) return null;
  return broadcast === 'live' || broadcast === 'upcoming' ? broadcast : null;
}

function largestThumbnail(thumbnails: unknown): string | null {
  if (!isObject(thumbnails)) return null;
  const found = Object.values(thumbnails).flatMap((thumbnail) => {
    const url = asString(at(thumbnail, 'url'));
    return url?.startsWith('https://') === true ? [{ url, width: asCount(at(thumbnail, 'width')) ?? 0 }] : [];
  });
  return found.reduce<{ url: string | null; width: number }>((best, each) => (each.width > best.width ? each : best), {
    url: found[0]?.url ?? null,
    width: -1,
  }).url;
}

/** Reads an ISO 8601 duration such as `PT12M34S` or `P1DT2H` as seconds. */
export function readDuration(text: string): number | null {
  const match = /^P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,6})S)?)?$/.exec(text);
  if (!match || text === 'P' || text.endsWith('T')) return null;
  const [days, hours, minutes, seconds] = match.slice(1).map((part: string | undefined) => Number(part ?? 0));
  return (days ?? 0) * 86_400 + (hours ?? 0) * 3_600 + (minutes ?? 0) * 60 + (seconds ?? 0);
}

/** The items of a list; the API omits the property of an empty one. */
function readItems(response: unknown, kind: string): readonly unknown[] {
  const items = at(response, 'items');
  if (at(response, 'kind') !== kind || (items !== undefined && !Array.isArray(items))) {
    throw new UnreadableError(`a ${kind}`);
  }
  return asArray(items);
}
