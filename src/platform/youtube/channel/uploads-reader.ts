import { Injectable } from '@nestjs/common';
import type { Upload } from '../../../domain/transcript.js';
import type { UploadsList, UploadsListPage } from '../../video-platform.js';
import { upstreamError } from './channel-errors.js';
import { requestFeed } from './channel-requests.js';
import { report } from '../event-log.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { withOptional } from '../optional-work.js';
import { PlaylistPages } from './playlist-pages.js';
import { UpstreamMetrics } from '../upstream-metrics.js';

/** Reads a channel's newest uploads and adds their kind (from the list of Shorts) and date (from the feed). */
@Injectable()
export class UploadsReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly pages: PlaylistPages,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /**
   * Lists at least `count` uploads, or all; null when the playlist does not exist. If the list of Shorts or the feed fails,
   * kinds and dates stay unknown.
   *
   * @throws UpstreamError when the uploads themselves cannot be read to that length
   */
  async list(channelId: string, count: number, scope: RequestScope): Promise<UploadsList | null> {
    const [{ list }, additions] = await withOptional(
      scope,
      () => this.pages.read('uploads', uploadsPlaylist(channelId), count, scope),
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
  async firstPage(channelId: string, scope: RequestScope): Promise<UploadsListPage | null> {
    const [list, additions] = await withOptional(
      scope,
      () => this.pages.first('uploads', uploadsPlaylist(channelId), scope),
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
  async nextPage(channelId: string, token: string, scope: RequestScope): Promise<UploadsListPage | null> {
    const list = await this.pages.next('uploads', token, uploadsPlaylist(channelId), scope);
    if (list === null || list.kind === 'no-playlist') return null;
    return { uploads: withLongVideos(list.uploads), next: list.continuation };
  }

  /** The list of Shorts, so far that it covers `count` uploads, and the feed; null for one that fails. */
  private additions(channelId: string, count: number, scope: RequestScope): Promise<Additions> {
    return Promise.all([
      this.optional('shorts', channelId, scope, () => this.shorts(channelId, count, scope)),
      this.optional('feed', channelId, scope, () => this.dates(channelId, scope)),
    ]);
  }

  private async shorts(channelId: string, count: number, scope: RequestScope): Promise<ShortsList> {
    const { list } = await this.pages.read('shorts', `UUSH${channelId.slice(2)}`, count, scope);
    if (!list) return { ids: [], complete: true };
    return { ids: list.uploads.map(({ videoId }) => videoId), complete: list.complete };
  }

  private async dates(channelId: string, scope: RequestScope): Promise<Map<string, string>> {
    const response = await requestFeed(this.innertube, channelId, scope);
    if (response.kind === 'parsed') return response.value;
    throw upstreamError(response, 'feed');
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

type Additions = [shorts: ShortsList | null, dates: ReadonlyMap<string, string> | null];

function withAdditions(uploads: readonly Upload[], additions: Additions | null): Upload[] {
  const [shorts, dates] = additions ?? [null, null];
  return withDates(withKinds(uploads, shorts), dates);
}

function uploadsPlaylist(channelId: string): string {
  return `UU${channelId.slice(2)}`;
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

/** Shorts have at most three minutes (since October 2024); lists round durations. */
const SHORT_SECONDS_MAX = 181;

/** Sets the kind of videos that are too long to be Shorts. */
export function withLongVideos(uploads: readonly Upload[]): Upload[] {
  return uploads.map((upload) =>
    upload.kind === null && (upload.durationSeconds ?? 0) > SHORT_SECONDS_MAX ? { ...upload, kind: 'video' } : upload,
  );
}

/** Adds the exact dates from the channel's feed. */
export function withDates(uploads: readonly Upload[], dates: ReadonlyMap<string, string> | null): Upload[] {
  return uploads.map((upload) => ({
    ...upload,
    publishedAt: upload.publishedAt ?? dates?.get(upload.videoId) ?? null,
  }));
}
