import { Injectable } from '@nestjs/common';
import type { Upload } from '../../../domain/transcript.js';
import type { UploadsList } from '../../video-platform.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import { requestPlaylistPage, type ListKind, type PlaylistPosition } from './channel-requests.js';
import type { PlaylistHeader, PlaylistPage, UploadsPage } from './uploads-page.js';

/** Pages of a playlist have up to 100 entries; a list with fewer per page on average is not followed further. */
const ENTRIES_PER_PAGE_MIN = 20;
const PAGES_EXTRA = 3;

const UNKNOWN_PLAYLIST = [404];

/** An invalid token gets 400, as any invalid argument. */
const REJECTED_TOKEN = [400, 404];

/** A playlist as far as it was read; `list` is null when it does not exist. */
export interface PlaylistReading {
  header: PlaylistHeader;
  list: UploadsList | null;
}

/** Reads playlists page after page. */
@Injectable()
export class PlaylistPages {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /**
   * Reads at least `count` videos of a playlist, or all, each once.
   *
   * @throws UpstreamError when they cannot be read to that length
   */
  async read(kind: ListKind, playlistId: string, count: number, scope: RequestScope): Promise<PlaylistReading> {
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

  /** Reads the first page. @throws UpstreamError when it cannot be read */
  async first(kind: ListKind, playlistId: string, scope: RequestScope): Promise<UploadsPage> {
    return (await this.page(kind, { playlistId }, playlistId, scope)).list;
  }

  /** Reads a later page; null when the platform refuses its token. @throws UpstreamError when it cannot be read */
  async next(kind: ListKind, token: string, playlistId: string, scope: RequestScope): Promise<UploadsPage | null> {
    const response = await this.request(kind, { continuation: token }, playlistId, scope);
    if (response.kind === 'parsed') return response.value.list;
    if (isJsonError(response, REJECTED_TOKEN)) return null;
    throw upstreamError(response, playlistId);
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

  private async request(
    kind: ListKind,
    from: PlaylistPosition,
    playlistId: string,
    scope: RequestScope,
  ): Promise<ParsedResponse<PlaylistPage>> {
    const response = await requestPlaylistPage(this.innertube, kind, from, scope);
    this.countShape(kind, playlistId, response);
    return response;
  }

  /** Counts page shapes: a new one announces pages that cannot be read. */
  private countShape(kind: ListKind, playlistId: string, response: ParsedResponse<PlaylistPage>): void {
    if (response.kind === 'parsed' && response.value.list.kind === 'page')
      this.metrics.notice('shape', kind, response.value.list.shape);
    if (response.kind !== 'unparsable') return;
    this.metrics.notice('shape', kind, 'unreadable');
    report('warn', 'youtube_unreadable', { kind, playlistId, expected: response.expected });
  }
}
