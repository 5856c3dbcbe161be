import { Injectable } from '@nestjs/common';
import type { Upload } from '../../../domain/transcript.js';
import type { UploadsList } from '../../video-platform.js';
import { upstreamError } from './channel-errors.js';
import { requestFeed, requestPlaylistPage, type ListKind } from './channel-requests.js';
import { report } from '../event-log.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { withOptional } from '../optional-work.js';
import type { UploadsPage } from './uploads-page.js';
import { UpstreamMetrics } from '../upstream-metrics.js';

/** Pages of a playlist have up to 100 entries; a list with fewer per page on average is not followed further. */
const ENTRIES_PER_PAGE_MIN = 20;
const PAGES_EXTRA = 3;

/** Reads a channel's newest uploads and adds their kind (from the list of Shorts) and date (from the feed). */
@Injectable()
export class UploadsReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /**
   * Lists at least `count` uploads, or all; null when the playlist does not exist. If the list of Shorts or the feed fails,
   * kinds and dates stay unknown.
   *
   * @throws UpstreamError when the uploads themselves cannot be read to that length
   */
  async list(channelId: string, count: number, scope: RequestScope): Promise<UploadsList | null> {
    const [pages, additions] = await withOptional(
      scope,
      () => this.pages('uploads', `UU${channelId.slice(2)}`, count, scope),
      (optionalScope) =>
        Promise.all([
          this.optional('shorts', channelId, optionalScope, () => this.shorts(channelId, count, optionalScope)),
          this.optional('feed', channelId, optionalScope, () => this.dates(channelId, optionalScope)),
        ]),
    );
    if (!pages) return null;
    const [shorts, dates] = additions ?? [null, null];
    return { uploads: withDates(withKinds(pages.uploads, shorts), dates), complete: pages.complete };
  }

  /** Null when the playlist does not exist. */
  private async pages(
    kind: ListKind,
    playlistId: string,
    count: number,
    scope: RequestScope,
  ): Promise<UploadsList | null> {
    const uploads = new Map<string, Upload>();
    const pagesMax = Math.ceil(count / ENTRIES_PER_PAGE_MIN) + PAGES_EXTRA;
    let from: { playlistId: string } | { continuation: string } = { playlistId };
    for (let page = 1; page <= pagesMax; page += 1) {
      const response = await requestPlaylistPage(this.innertube, kind, from, scope);
      this.countShape(kind, playlistId, response);
      const value = valueOf(response, playlistId);
      // The playlist was deleted between two pages: the pages so far are the result.
      if (value.kind === 'no-playlist') return page === 1 ? null : { uploads: [...uploads.values()], complete: true };
      for (const upload of value.uploads) if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
      if (value.continuation === null) return { uploads: [...uploads.values()], complete: true };
      if (uploads.size >= count) return { uploads: [...uploads.values()], complete: false };
      from = { continuation: value.continuation };
    }
    // Fewer than requested without reaching the end: returning them would silently truncate the result.
    throw upstreamError(
      { kind: 'unparsable', expected: `${count} uploads or an end within ${pagesMax} pages` },
      playlistId,
    );
  }

  /** Counts page shapes: a new one announces pages that cannot be read. */
  private countShape(kind: ListKind, playlistId: string, response: ParsedResponse<UploadsPage>): void {
    if (response.kind === 'parsed' && response.value.kind === 'page')
      this.metrics.notice('shape', kind, response.value.shape);
    if (response.kind !== 'unparsable') return;
    this.metrics.notice('shape', kind, 'unreadable');
    report('warn', 'youtube_unreadable', { kind, playlistId, expected: response.expected });
  }

  private async shorts(channelId: string, count: number, scope: RequestScope): Promise<ShortsList> {
    const pages = await this.pages('shorts', `UUSH${channelId.slice(2)}`, count, scope);
    if (!pages) return { ids: [], complete: true };
    return { ids: pages.uploads.map(({ videoId }) => videoId), complete: pages.complete };
  }

  private async dates(channelId: string, scope: RequestScope): Promise<Map<string, string>> {
    return valueOf(await requestFeed(this.innertube, channelId, scope), 'feed');
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
}

function valueOf<T>(response: ParsedResponse<T>, subject: string): T {
  if (response.kind === 'parsed') return response.value;
  throw upstreamError(response, subject);
}

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

/** Adds the exact dates from the channel's feed. */
export function withDates(uploads: readonly Upload[], dates: ReadonlyMap<string, string> | null): Upload[] {
  return uploads.map((upload) => ({
    ...upload,
    publishedAt: upload.publishedAt ?? dates?.get(upload.videoId) ?? null,
  }));
}
