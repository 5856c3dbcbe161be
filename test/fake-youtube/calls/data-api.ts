import { channelById, channelByPath, videoById } from '../catalogue/catalogue.js';
import type { Channel, Video } from '../catalogue/model.js';
import { playlistById } from '../catalogue/playlists.js';
import { errorResponse, type FakeResponse, invalidArgument, jsonResponse } from '../fake-response.js';
import type { Incoming } from '../incoming-request.js';
import type { JsonObject } from '../json.js';
import type { Settings } from '../settings.js';
import { project } from '../partial-response.js';
import { EVENT_START, uploaderOf } from './playlist-page.js';

const PAGE_MAX = 50;
const PAGE_DEFAULT = 5;
/** What the API knows nothing about: it lists private and deleted uploads without their details. */
const HIDDEN: readonly string[] = ['private', 'deleted'];

/** The YouTube Data API v3 over the catalogue: `channels`, `playlists`, `playlistItems` and `videos`, one unit a request. */
export class DataApi {
  /** Units used since the last reset. */
  units = 0;

  constructor(private readonly settings: Settings) {}

  respond(incoming: Incoming): FakeResponse {
    const query = incoming.url.searchParams;
    const key = query.get('key') ?? incoming.headers['x-goog-api-key'];
    if (key !== this.settings.apiKey) {
      return errorResponse(400, 'INVALID_ARGUMENT', 'badRequest', 'API key not valid. Please pass a valid API key.');
    }
    if (this.units >= this.settings.apiUnitsMax) return quotaExceeded();
    this.units += 1;
    if (!query.get('part')) return missing('part');
    const parts = new Set((query.get('part') ?? '').split(','));
    if (incoming.kind === 'api-channels') return channels(query, parts);
    if (incoming.kind === 'api-playlists') return playlists(query, parts);
    return incoming.kind === 'api-videos' ? videos(query, parts) : playlistItems(query, parts);
  }
}

function channels(query: URLSearchParams, parts: ReadonlySet<string>): FakeResponse {
  const handle = query.get('forHandle');
  const user = query.get('forUsername');
  const ids = query.get('id')?.split(',') ?? [];
  if (handle === null && user === null && ids.length === 0) return missing('id');
  const byHandle = handle === null ? [] : [channelByPath(`/@${handle.replace(/^@/, '')}`)];
  const byUser = user === null ? [] : [channelByPath(`/user/${user}`)];
  const found = [...byHandle, ...byUser, ...ids.map(channelById)].flatMap((channel) =>
    channel && channel.state !== 'terminated' ? [channel] : [],
  );
  const items = found.map((channel) => picked(channelItem(channel), parts));
  return list(query, 'channelListResponse', items, { totalResults: items.length, resultsPerPage: items.length });
}

function channelItem(channel: Channel): Record<string, JsonObject | string> {
  return {
    kind: 'youtube#channel',
    id: channel.id,
    snippet: {
      title: channel.name,
      description: channel.description,
      ...(channel.handle !== null && { customUrl: channel.handle.toLowerCase() }),
      publishedAt: '2012-04-01T08:00:00Z',
      thumbnails: {},
    },
    contentDetails: { relatedPlaylists: { likes: '', uploads: `UU${channel.id.slice(2)}` } },
    statistics: { videoCount: String(channel.uploads().length), hiddenSubscriberCount: false },
    status: { privacyStatus: 'public', isLinked: true },
  };
}

function playlists(query: URLSearchParams, parts: ReadonlySet<string>): FakeResponse {
  const ids = query.get('id')?.split(',') ?? [];
  if (ids.length === 0) return missing('id');
  const items = ids.flatMap((id) => {
    const found = playlistOf(id);
    return typeof found === 'string' || found.title === null ? [] : [picked(playlistItemOf(id, found), parts)];
  });
  return list(query, 'playlistListResponse', items, { totalResults: items.length, resultsPerPage: items.length });
}

function playlistItemOf(id: string, { channel, title }: ApiList): Record<string, JsonObject | string> {
  const snippet = { publishedAt: '2020-02-02T02:02:02Z', channelId: channel.id, title: title ?? '', description: '' };
  return { kind: 'youtube#playlist', id, snippet: { ...snippet, channelTitle: channel.name } };
}

interface ApiList {
  channel: Channel;
  /** Null for the lists of one kind of upload, which `playlists` does not know. */
  title: string | null;
  videos: readonly Video[];
}

function playlistOf(id: string): ApiList | 'missing' | 'private' {
  const playlist = playlistById(id);
  if (playlist?.state === 'private') return 'private';
  if (playlist) return { channel: playlist.owner, title: playlist.title, videos: playlist.videos() };
  const [, shortsOnly, suffix] = /^UU(SH)?(.{22})$/.exec(id) ?? [];
  const channel = suffix === undefined ? undefined : channelById(`UC${suffix}`);
  if (!channel || channel.state === 'terminated' || channel.uploadsPlaylist === 'missing') return 'missing';
  const videos = channel.uploads().filter(({ short }) => short || shortsOnly === undefined);
  if (shortsOnly !== undefined && videos.length === 0) return 'missing';
  return { channel, title: shortsOnly === undefined ? 'Videos' : null, videos };
}

function playlistItems(query: URLSearchParams, parts: ReadonlySet<string>): FakeResponse {
  const playlistId = query.get('playlistId');
  if (playlistId === null) return missing('playlistId');
  const found = playlistOf(playlistId);
  if (found === 'private') {
    const message = 'The request is not properly authorized to retrieve the specified playlist.';
    return errorResponse(403, 'PERMISSION_DENIED', 'playlistItemsNotAccessible', message);
  }
  if (found === 'missing') {
    const message = 'The playlist identified with the request’s playlistId parameter cannot be found.';
    return errorResponse(404, 'NOT_FOUND', 'playlistNotFound', message);
  }
  const { channel, videos: uploads } = found;
  const offset = Number(Buffer.from(query.get('pageToken') ?? '', 'base64url').toString() || '0');
  if (!Number.isInteger(offset)) return invalidArgument();
  const size = Math.min(PAGE_MAX, Number(query.get('maxResults') ?? PAGE_DEFAULT));
  const token = (at: number): string => Buffer.from(String(at)).toString('base64url');
  const items = uploads
    .slice(offset, offset + size)
    .map((video, index) =>
      picked(
        playlistItem(uploaderOf({ listId: playlistId, channel }, video), video, playlistId, offset + index),
        parts,
      ),
    );
  return list(
    query,
    'playlistItemListResponse',
    items,
    { totalResults: uploads.length, resultsPerPage: size },
    { ...(offset + size < uploads.length && { nextPageToken: token(offset + size) }) },
  );
}

function playlistItem(
  channel: Channel,
  video: Video,
  playlistId: string,
  position: number,
): Record<string, JsonObject | string> {
  const title = video.state === 'private' ? 'Private video' : video.state === 'deleted' ? 'Deleted video' : video.title;
  return {
    kind: 'youtube#playlistItem',
    id: Buffer.from(`${playlistId}.${video.id}`).toString('base64url'),
    snippet: {
      publishedAt: instant(video.publishedAt),
      channelId: channel.id,
      title,
      description: HIDDEN.includes(video.state) ? `This video is ${video.state}.` : channel.description,
      channelTitle: channel.name,
      playlistId,
      position,
      resourceId: { kind: 'youtube#video', videoId: video.id },
      ...(!HIDDEN.includes(video.state) && { videoOwnerChannelTitle: channel.name, videoOwnerChannelId: channel.id }),
    },
    contentDetails: {
      videoId: video.id,
      ...(!HIDDEN.includes(video.state) && { videoPublishedAt: instant(video.publishedAt) }),
    },
    status: { privacyStatus: video.state === 'private' ? 'private' : 'public' },
  };
}

function videos(query: URLSearchParams, parts: ReadonlySet<string>): FakeResponse {
  const ids = query.get('id')?.split(',') ?? [];
  if (ids.length === 0) return missing('id');
  if (ids.length > PAGE_MAX) return invalidArgument();
  // Private and deleted videos are left out.
  const found = ids
    .map(videoById)
    .flatMap((each) => (each === undefined || HIDDEN.includes(each.video.state) ? [] : [each]));
  const items = found.map(({ channel, video }) => picked(videoItem(channel, video), parts));
  return list(query, 'videoListResponse', items, { totalResults: items.length, resultsPerPage: items.length });
}

function videoItem(channel: Channel, video: Video): Record<string, JsonObject | string> {
  const spoken = video.tracks.find(({ generated }) => generated)?.languageCode;
  const live = liveDetails(video);
  return {
    kind: 'youtube#video',
    id: video.id,
    snippet: {
      publishedAt: instant(video.publishedAt),
      channelId: channel.id,
      title: video.title,
      description: channel.description,
      channelTitle: channel.name,
      thumbnails: {
        default: { url: `https://i.ytimg.com/vi/${video.id}/default.jpg`, width: 120, height: 90 },
        high: { url: `https://i.ytimg.com/vi/${video.id}/hqdefault.jpg`, width: 480, height: 360 },
      },
      liveBroadcastContent: video.state === 'live' || video.state === 'upcoming' ? video.state : 'none',
      ...(spoken !== undefined && { defaultAudioLanguage: spoken }),
    },
    contentDetails: {
      duration: duration(video.state === 'live' || video.state === 'upcoming' ? 0 : video.durationSeconds),
      dimension: '2d',
      definition: 'hd',
      caption: String(video.tracks.some(({ generated }) => !generated)),
      licensedContent: false,
      contentRating: video.state === 'age-gated' ? { ytRating: 'ytAgeRestricted' } : {},
      projection: 'rectangular',
    },
    statistics: { viewCount: String(video.viewCount), favoriteCount: '0', commentCount: '0' },
    status: { uploadStatus: 'processed', privacyStatus: 'public', license: 'youtube', embeddable: true },
    ...(live && { liveStreamingDetails: live }),
  };
}

function liveDetails(video: Video): JsonObject | undefined {
  if (video.state === 'upcoming') return { scheduledStartTime: instant(EVENT_START) };
  if (video.state === 'live') return { actualStartTime: instant(video.publishedAt), concurrentViewers: '41' };
  if (!video.pastLive) return undefined;
  const end = new Date(video.publishedAt.getTime() + video.durationSeconds * 1_000);
  return { actualStartTime: instant(video.publishedAt), actualEndTime: instant(end) };
}

/** The requested parts of an item. */
function picked(item: Record<string, JsonObject | string>, parts: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(item).filter(([name]) => name === 'kind' || name === 'id' || parts.has(name)),
  );
}

function list(
  query: URLSearchParams,
  kind: string,
  items: readonly JsonObject[],
  pageInfo: JsonObject,
  more: JsonObject = {},
): FakeResponse {
  const response = { kind: `youtube#${kind}`, etag: 'fake', ...more, pageInfo, items };
  const fields = query.get('fields');
  const cut = fields === null ? response : project(response, fields);
  return cut === undefined ? invalidArgument() : jsonResponse(() => cut as JsonObject);
}

function quotaExceeded(): FakeResponse {
  const message = 'The request cannot be completed because you have exceeded your quota.';
  const errors = [{ message, domain: 'youtube.quota', reason: 'quotaExceeded' }];
  return {
    status: 403,
    contentType: 'application/json; charset=UTF-8',
    body: { json: () => ({ error: { code: 403, message, errors } }) },
  };
}

function missing(parameter: string): FakeResponse {
  return errorResponse(400, 'INVALID_ARGUMENT', 'missingRequiredParameter', `Required parameter: ${parameter}`);
}

function instant(date: Date): string {
  return date.toISOString().replace('.000Z', 'Z');
}

/** ISO 8601: `PT12M34S`; `P0D` for a stream that has not ended. */
function duration(seconds: number): string {
  if (seconds === 0) return 'P0D';
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  const days = Math.floor(hours / 24);
  return `P${days ? `${days}D` : ''}T${hours % 24 ? `${hours % 24}H` : ''}${minutes ? `${minutes}M` : ''}${rest ? `${rest}S` : ''}`;
}
