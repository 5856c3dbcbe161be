import { Injectable } from '@nestjs/common';
import { PlaylistNotFoundError } from '../../../domain/errors.js';
import type { Upload } from '../../../domain/transcript.js';
import type { PlaylistVideos, UploadsList, UploadsListPage } from '../../video-platform.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { PLAYLIST_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import { type InnertubeCall, InnertubeClient, parsed, type ParsedResponse } from '../innertube/innertube-client.js';
import { withOptional } from '../optional-work.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import {
  readFeedDates,
  type ShortsList,
  withDates,
  withKinds,
  withListKind,
  withLongVideos,
} from './list-additions.js';
import { type PlaylistHeader, type PlaylistPage, readPlaylistPage, type UploadsPage } from './uploads-page.js';

/** A list, and its metric label: all uploads of a channel, its Shorts, or a playlist that a caller names. */
type ListKind = 'uploads' | 'shorts' | 'playlist';

/** The first page of a playlist, or a later one by the token on the page before it. */
type PlaylistPosition = { playlistId: string } | { continuation: string };

/** Pages of a playlist have up to 100 entries; a list with fewer per page on average is not followed further. */
const ENTRIES_PER_PAGE_MIN = 20;
const PAGES_EXTRA = 3;

const UNKNOWN_PLAYLIST = [404];

/** An invalid token gets 400, as any invalid argument. */
const REJECTED_TOKEN = [400, 404];

/**
 * Selects the list that contains deleted and private videos, which is hidden otherwise (recorded in January 2026, and sent
 * by maintained clients for every playlist). Continuation tokens repeat it.
 */
const WITH_UNAVAILABLE_VIDEOS = 'wgYCCAA%3D';

/** A playlist as far as it was read; `list` is null when it does not exist. */
interface PlaylistReading {
  header: PlaylistHeader;
  list: UploadsList | null;
}

type Additions = [shorts: ShortsList | null, dates: ReadonlyMap<string, string> | null];

/**
 * Reads playlists through one egress, page after page. Uploads are a playlist too; their kind is added from the list of
 * Shorts and their date from the feed. If one of these fails, kinds or dates stay unknown.
 */
@Injectable()
export class PlaylistReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Lists at least `count` videos, or all; throws `PlaylistNotFoundError` and `UpstreamError`. */
  async playlist(playlistId: string, count: number, scope: RequestScope): Promise<PlaylistVideos> {
    const { header, list } = await this.read('playlist', playlistId, count, scope);
    if (list === null) {
      const state = header.isPrivate ? 'is private' : 'does not exist';
      throw new PlaylistNotFoundError(
        header.isPrivate ? 'private' : 'unknown',
        new Error(`The playlist ${playlistId} ${state}`),
      );
    }
    return {
      playlist: { id: playlistId, title: header.title },
      uploads: withListKind(list.uploads, playlistId),
      complete: list.complete,
    };
  }

  /**
   * Lists at least `count` uploads, or all; null when the playlist does not exist.
   *
   * @throws UpstreamError when the uploads themselves cannot be read to that length
   */
  async uploads(channelId: string, count: number, scope: RequestScope): Promise<UploadsList | null> {
    const [{ list }, additions] = await withOptional(
      scope,
      () => this.read('uploads', uploadsPlaylist(channelId), count, scope),
      (optionalScope) => this.additions(channelId, count, optionalScope),
    );
    return list && { uploads: withAdditions(list.uploads, additions), complete: list.complete };
  }

  /**
   * Reads the first page of all uploads, with kinds as far as the newest page of Shorts covers them and with the dates in
   * the feed; null when the playlist does not exist.
   *
   * @throws UpstreamError when the page cannot be read
   */
  async firstUploads(channelId: string, scope: RequestScope): Promise<UploadsListPage | null> {
    const playlistId = uploadsPlaylist(channelId);
    const [{ list }, additions] = await withOptional(
      scope,
      () => this.page('uploads', { playlistId }, playlistId, scope),
      (optionalScope) => this.additions(channelId, 1, optionalScope),
    );
    if (list.kind === 'no-playlist') return null;
    return { uploads: withLongVideos(withAdditions(list.uploads, additions)), next: list.continuation };
  }

  /**
   * Reads a later page, by one request; null when the platform refuses the token or the playlist does not exist any more.
   *
   * @throws UpstreamError when the page cannot be read
   */
  async nextUploads(channelId: string, token: string, scope: RequestScope): Promise<UploadsListPage | null> {
    const playlistId = uploadsPlaylist(channelId);
    const response = await this.request('uploads', { continuation: token }, playlistId, scope);
    if (isJsonError(response, REJECTED_TOKEN)) return null;
    if (response.kind !== 'parsed') throw upstreamError(response, playlistId);
    const { list } = response.value;
    return list.kind === 'no-playlist' ? null : { uploads: withLongVideos(list.uploads), next: list.continuation };
  }

  /** The list of Shorts, so far that it covers `count` uploads, and the feed; null for one that fails. */
  private additions(channelId: string, count: number, scope: RequestScope): Promise<Additions> {
    return Promise.all([
      this.optional('shorts', channelId, scope, () => this.shorts(channelId, count, scope)),
      this.optional('feed', channelId, scope, () => this.dates(channelId, scope)),
    ]);
  }

  private async shorts(channelId: string, count: number, scope: RequestScope): Promise<ShortsList> {
    const { list } = await this.read('shorts', `UUSH${channelId.slice(2)}`, count, scope);
    if (!list) return { ids: [], complete: true };
    return { ids: list.uploads.map(({ videoId }) => videoId), complete: list.complete };
  }

  /**
   * The exact dates of the newest 15 uploads, from the channel's feed. The platform answers 404 for every channel for days at
   * a time (reported for February, April and September 2026): then there are no dates.
   */
  private async dates(channelId: string, scope: RequestScope): Promise<Map<string, string>> {
    const url = new URL('/feeds/videos.xml', YOUTUBE_ORIGIN);
    url.searchParams.set('channel_id', channelId);
    const response = await this.innertube.fetchText('feed', 'WEB', url, scope);
    if (response.kind === 'http-error' && response.status === 404) return new Map();
    const dates = response.kind === 'ok' ? parsed(() => readFeedDates(response.body)) : response;
    if (dates.kind === 'parsed') return dates.value;
    throw upstreamError(dates, 'feed');
  }

  /** Reads an addition to the list; a failure is logged and returns null. Never rejects. */
  private async optional<T>(
    kind: string,
    channelId: string,
    scope: RequestScope,
    read: () => Promise<T>,
  ): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      if (scope.context.signal.aborted) this.metrics.notice(kind, 'WEB', 'given-up');
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const message = cause instanceof Error ? cause.message : String(cause);
      report('log', 'youtube_side_list_failed', { kind, channelId, message });
      return null;
    }
  }

  /**
   * Reads at least `count` videos of a playlist, or all, each once.
   *
   * @throws UpstreamError when they cannot be read to that length
   */
  private async read(kind: ListKind, playlistId: string, count: number, scope: RequestScope): Promise<PlaylistReading> {
    const first = await this.page(kind, { playlistId }, playlistId, scope);
    const { header } = first;
    if (first.list.kind === 'no-playlist') return { header, list: null };
    const uploads = new Map<string, Upload>();
    const reading = (complete: boolean) => ({ header, list: { uploads: [...uploads.values()], complete } });
    const pagesMax = Math.ceil(count / ENTRIES_PER_PAGE_MIN) + PAGES_EXTRA;
    let list: UploadsPage = first.list;
    for (let page = 1; page <= pagesMax; page += 1) {
      // The playlist was deleted between two pages: the pages so far are the result.
      if (list.kind === 'no-playlist') return reading(true);
      for (const upload of list.uploads) if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
      const { continuation } = list;
      if (continuation === null) return reading(true);
      if (uploads.size >= count) return reading(false);
      if (page < pagesMax) ({ list } = await this.page(kind, { continuation }, playlistId, scope));
    }
    // Fewer than requested without reaching the end: returning them would silently truncate the result.
    throw upstreamError(
      { kind: 'unparsable', expected: `${count} uploads or an end within ${pagesMax} pages` },
      playlistId,
    );
  }

  private async page(
    kind: ListKind,
    from: PlaylistPosition,
    playlistId: string,
    scope: RequestScope,
  ): Promise<PlaylistPage> {
    const response = await this.request(kind, from, playlistId, scope);
    if (response.kind === 'parsed') return response.value;
    // As for an unknown channel. The lists of a channel are known to belong to one, whose page decides whether it exists.
    if (kind === 'playlist' && 'playlistId' in from && isJsonError(response, UNKNOWN_PLAYLIST))
      return { header: { title: null, isPrivate: false }, list: { kind: 'no-playlist' } };
    throw upstreamError(response, playlistId);
  }

  /** Counts page shapes too: a new one announces pages that cannot be read. */
  private async request(
    kind: ListKind,
    from: PlaylistPosition,
    playlistId: string,
    scope: RequestScope,
  ): Promise<ParsedResponse<PlaylistPage>> {
    const named = kind === 'playlist';
    const payload =
      'playlistId' in from
        ? { browseId: `VL${from.playlistId}`, ...(named && { params: WITH_UNAVAILABLE_VIDEOS }) }
        : { continuation: from.continuation };
    const fields = named ? PLAYLIST_FIELDS : UPLOADS_FIELDS;
    const call: InnertubeCall = { kind, client: 'WEB', path: 'browse', payload, fields };
    const response = await this.innertube.query(call, readPlaylistPage, scope);
    if (response.kind === 'parsed' && response.value.list.kind === 'page')
      this.metrics.notice('shape', kind, response.value.list.shape);
    if (response.kind === 'unparsable') {
      this.metrics.notice('shape', kind, 'unreadable');
      report('warn', 'youtube_unreadable', { kind, playlistId, expected: response.expected });
    }
    return response;
  }
}

function withAdditions(uploads: readonly Upload[], additions: Additions | null): Upload[] {
  const [shorts, dates] = additions ?? [null, null];
  return withDates(withKinds(uploads, shorts), dates);
}

function uploadsPlaylist(channelId: string): string {
  return `UU${channelId.slice(2)}`;
}
