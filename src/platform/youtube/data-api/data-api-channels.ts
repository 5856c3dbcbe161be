import { Injectable } from '@nestjs/common';
import type { Channel, Upload } from '../../../domain/transcript.js';
import type { PlaylistVideos, ReadingContext, UploadsList, UploadsListPage } from '../../video-platform.js';
import type { ChannelSource, NamedReference } from '../channel/channel-source.js';
import { report } from '../event-log.js';
import { withListKind } from '../channel/playlist-reader.js';
import { type ShortsList, withKinds, withLongVideos } from '../channel/uploads-reader.js';
import { DataApiClient, DataApiUnansweredError } from './data-api-client.js';
import {
  listedVideo,
  type PlaylistItem,
  type PlaylistItems,
  readChannel,
  readChannelId,
  readPlaylistItems,
  readPlaylistTitle,
  readVideoCount,
  readVideos,
} from './data-api-responses.js';

/** The most entries of a page and the most videos of a request. */
const PAGE_SIZE = 50;
/** A page can have fewer entries than requested. */
const PAGES_EXTRA = 3;

const VIDEO_PARTS = {
  part: 'snippet,contentDetails,statistics,liveStreamingDetails',
  fields:
    'kind,items(id,snippet(title,publishedAt,liveBroadcastContent,thumbnails),contentDetails/duration,' +
    'statistics/viewCount,liveStreamingDetails/actualEndTime)',
};
const ITEM_PARTS = {
  part: 'snippet,contentDetails,status',
  fields: 'kind,nextPageToken,items(snippet/title,contentDetails(videoId,videoPublishedAt),status/privacyStatus)',
};

/**
 * Channels and playlists from the Data API: a channel or the title of a playlist costs one unit, and fifty videos of a
 * list two. Its methods also throw
 * `DataApiUnansweredError` for whatever the API does not state with certainty.
 */
@Injectable()
export class DataApiChannels implements ChannelSource {
  constructor(private readonly client: DataApiClient) {}

  /** An unknown name is left to InnerTube, which also follows the former names of a channel. */
  async resolve(reference: NamedReference, context: ReadingContext): Promise<string> {
    const filter = filterOf(reference);
    if (!filter) throw new DataApiUnansweredError('unsupported');
    const id = await this.client.list(
      'channels',
      { part: 'id', fields: 'kind,items/id', ...filter },
      readChannelId,
      context,
    );
    if (id === null) throw new DataApiUnansweredError('unknown_name');
    return id;
  }

  /** The API lists nothing for an ID that it does not know, and sometimes for one that it does: the channel's page decides. */
  async read(channelId: string, context: ReadingContext): Promise<Channel> {
    const parameters = { part: 'snippet', fields: 'kind,items(id,snippet(title,customUrl))', id: channelId };
    const parse = (response: unknown) => readChannel(response, channelId);
    const channel = await this.client.list('channels', parameters, parse, context);
    if (channel === null) throw new DataApiUnansweredError('doubtful');
    return channel;
  }

  async listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    const list = await this.entries(`UU${channelId.slice(2)}`, count, context);
    if (list.items.length === 0) return this.empty(channelId, context);
    const uploads = await this.uploads(list.items, context);
    return { uploads: await this.withShorts(channelId, uploads, context), complete: list.complete };
  }

  /** A page is one unit. Details of the videos would be another one: what the list lacks comes with each video. */
  async listUploadsPage(
    channelId: string,
    token: string | undefined,
    context: ReadingContext,
  ): Promise<UploadsListPage> {
    const page = await this.page(`UU${channelId.slice(2)}`, token ?? null, context);
    if (page !== null && (page.items.length > 0 || page.nextPageToken !== null)) {
      const items = new Map(page.items.map((item) => [item.videoId, item]));
      return { uploads: [...items.values()].map(listedVideo), next: page.nextPageToken };
    }
    // Whether the playlist does not exist any more, its first page shows.
    if (token !== undefined && page === null) throw new DataApiUnansweredError('doubtful');
    if (token === undefined) await this.empty(channelId, context);
    return { uploads: [], next: null };
  }

  /**
   * The API does not tell an empty playlist from one that it cannot read, and not the title of some lists that the platform
   * makes: InnerTube decides.
   */
  async listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos> {
    const parameters = { part: 'snippet', fields: 'kind,items(id,snippet/title)', id: playlistId };
    const parse = (response: unknown) => readPlaylistTitle(response, playlistId);
    const [title, { items, complete }] = await Promise.all([
      this.client.list('playlists', parameters, parse, context),
      this.entries(playlistId, count, context),
    ]);
    if (items.length === 0 || title === null) throw new DataApiUnansweredError('doubtful');
    const uploads = withListKind(withLongVideos(await this.uploads(items, context)), playlistId);
    return { playlist: { id: playlistId, title }, uploads, complete };
  }

  /** An empty list is certain only for a channel that has no videos; the API has no playlist (404) for some channels. */
  private async empty(channelId: string, context: ReadingContext): Promise<UploadsList> {
    const parameters = { part: 'statistics', fields: 'kind,items(id,statistics/videoCount)', id: channelId };
    const parse = (response: unknown) => readVideoCount(response, channelId);
    const videoCount = await this.client.list('channels', parameters, parse, context);
    if (videoCount !== 0) throw new DataApiUnansweredError('doubtful');
    return { uploads: [], complete: true };
  }

  private async entries(
    playlistId: string,
    count: number,
    context: ReadingContext,
  ): Promise<{ items: PlaylistItem[]; complete: boolean }> {
    const items = new Map<string, PlaylistItem>();
    const pagesMax = Math.ceil(count / PAGE_SIZE) + PAGES_EXTRA;
    let pageToken: string | null = null;
    for (let page = 1; page <= pagesMax; page += 1) {
      const read: PlaylistItems | null = await this.page(playlistId, pageToken, context);
      // The playlist does not exist, or was deleted between two pages.
      if (read === null) return { items: [...items.values()], complete: true };
      for (const item of read.items) if (!items.has(item.videoId)) items.set(item.videoId, item);
      pageToken = read.nextPageToken;
      if (pageToken === null) return { items: [...items.values()], complete: true };
      if (items.size >= count) return { items: [...items.values()], complete: false };
    }
    throw new DataApiUnansweredError('doubtful');
  }

  /** A page of a playlist, the first one without a token; null when there is no such playlist. */
  private page(playlistId: string, pageToken: string | null, context: ReadingContext): Promise<PlaylistItems | null> {
    const position = { playlistId, maxResults: String(PAGE_SIZE), ...(pageToken !== null && { pageToken }) };
    return this.client.list('playlistItems', { ...ITEM_PARTS, ...position }, readPlaylistItems, context);
  }

  private async uploads(items: readonly PlaylistItem[], context: ReadingContext): Promise<Upload[]> {
    const pages = Array.from({ length: Math.ceil(items.length / PAGE_SIZE) }, (_, page) =>
      items.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE).map(({ videoId }) => videoId),
    );
    const videos = await Promise.all(
      pages.map((ids) => this.client.list('videos', { ...VIDEO_PARTS, id: ids.join(',') }, readVideos, context)),
    );
    const known = new Map(videos.flatMap((page) => [...(page ?? [])]));
    return items.map((item) => known.get(item.videoId) ?? listedVideo(item));
  }

  /** Sets the kinds. The list of Shorts is read only when an upload is short enough to be one, and as far as it can reach. */
  private async withShorts(channelId: string, uploads: readonly Upload[], context: ReadingContext): Promise<Upload[]> {
    const timed = withLongVideos(uploads);
    const candidates = timed.filter(({ kind, durationSeconds }) => kind === null && durationSeconds !== null);
    if (candidates.length === 0) return timed;
    return withKinds(timed, await this.shorts(channelId, candidates.length, context));
  }

  private async shorts(channelId: string, count: number, context: ReadingContext): Promise<ShortsList | null> {
    try {
      const { items, complete } = await this.entries(`UUSH${channelId.slice(2)}`, count, context);
      return { ids: items.map(({ videoId }) => videoId), complete };
    } catch (error) {
      if (!(error instanceof DataApiUnansweredError)) throw error;
      report('log', 'youtube_side_list_failed', { kind: 'shorts', channelId, message: error.message });
      return null;
    }
  }
}

/** The filter of `channels.list` for a name; null for the older forms that the API does not know. */
function filterOf(reference: NamedReference): Readonly<Record<string, string>> | null {
  if (reference.kind === 'handle') return { forHandle: `@${reference.handle}` };
  return reference.kind === 'user' ? { forUsername: reference.name } : null;
}
