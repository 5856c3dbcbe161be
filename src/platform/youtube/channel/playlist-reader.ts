import { Injectable } from '@nestjs/common';
import { PlaylistNotFoundError } from '../../../domain/errors.js';
import type { Upload } from '../../../domain/transcript.js';
import { ContinuationRejectedError, type KnownUploads, type PlaylistVideos } from '../../video-platform.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { PLAYLIST_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, parsed, type ParsedResponse } from '../innertube/innertube-client.js';
import { withOptional } from '../optional-work.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import {
  besideUploads,
  hasNews,
  needsShorts,
  readFeedDates,
  UNMET_MIN,
  withKinds,
  withKnown,
} from './list-additions.js';
import { type Continuation, isComplete, type ListProgress, NOTHING_LISTED, withPage } from './list-progress.js';
import { hasContents, type ParsedListPage, readPlaylistPage } from './playlist-page.js';

/** A list, and its metric label: all uploads of a channel, its Shorts, or a playlist that a caller names. */
type ListKind = 'uploads' | 'shorts' | 'playlist';

/** Pages of a playlist have up to 100 entries; a list with fewer per page on average is not followed further. */
const ENTRIES_PER_PAGE_MIN = 20;
const PAGES_EXTRA = 3;

/** How long the dates and kinds of a page that was read may take. */
const DESCRIPTION_MS = 10_000;
/** One page of Shorts is enough for a page of uploads, unless it has few entries or one before could not be read. */
const SHORTS_PAGES_MAX = 3;

/** A list as far as it was read, or one page of it; `next` is the token of the following page. */
export interface ReadList {
  kind: 'list';
  title: string | null;
  uploads: Upload[];
  next: string | null;
  progress: ListProgress;
  /** Of uploads: the Shorts that were read, for the kinds of the next page. */
  shorts?: Continuation['shorts'];
}

type DescribedUploads = Pick<ReadList, 'uploads' | 'shorts'>;
type NoList = Extract<ParsedListPage, { kind: 'none' }>;
/** What is added to uploads; null for what could not be read. */
interface Additions {
  shorts: ReadList | null;
  dates: ReadonlyMap<string, string> | null;
}
const NO_ADDITIONS: Additions = { shorts: null, dates: null };

export interface ReadUploads extends Pick<ReadList, 'uploads' | 'next' | 'progress'> {
  /** Whether the list of Shorts was read or does not exist, so that asking for it again would add nothing. */
  settled: boolean;
}

/**
 * Selects the list that contains deleted and private videos, which is hidden otherwise (recorded in January 2026, and sent
 * by maintained clients for every playlist). Continuation tokens repeat it.
 */
const WITH_UNAVAILABLE_VIDEOS = 'wgYCCAA%3D';

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
    const list = existing(playlistId, await this.read('playlist', playlistId, count, scope));
    const { title, uploads, next } = list;
    return { playlist: { id: playlistId, title }, uploads, complete: next === null };
  }

  /**
   * Lists at least `count` uploads, or all, with kinds as far as the list of Shorts covers them and with the dates in the feed;
   * null when the playlist does not exist.
   *
   * @param known what an earlier read stated: without news since, neither the list of Shorts nor the feed is requested
   * @throws UpstreamError when the uploads themselves cannot be read to that length
   */
  async uploads(
    channelId: string,
    count: number,
    scope: RequestScope,
    known?: KnownUploads,
  ): Promise<ReadUploads | null> {
    const read = () => this.read('uploads', listOf(channelId, 'UU'), count, scope);
    const add = (optionalScope: RequestScope) => this.additions(channelId, count, optionalScope);
    // Concurrently, unless what is known may make them unnecessary.
    const first = known && (await read());
    if (first?.kind === 'none') return null;
    if (first && known?.settled && !hasNews(first.uploads, known.uploads)) {
      // Fewer than before may be those of a list that goes on in the list of Shorts.
      const isShorter = first.next === null && first.uploads.length < Math.min(count, known.uploads.length);
      if (!isShorter) return { ...first, uploads: withKnown(first.uploads, known.uploads), settled: true };
    }
    const [list, added] = await withOptional(scope, () => (first ? Promise.resolve(first) : read()), add);
    if (list.kind === 'none') return null;
    const additions = added ?? NO_ADDITIONS;
    const { uploads, next, progress } = withRestOfShorts(list, additions.shorts);
    const described = withAdditions(withKnown(uploads, known?.uploads ?? []), additions);
    return { uploads: described.uploads, next, progress, settled: additions.shorts !== null };
  }

  /**
   * Reads a page of all uploads of a channel, by one request and with what the list itself states; null when the playlist
   * does not exist. The errors are those of `page`.
   *
   * @param described whether it gets kinds too, and a first page dates, as far as these can be read by further requests
   */
  async uploadsPage(
    channelId: string,
    after: Continuation | null,
    described: boolean,
    scope: RequestScope,
  ): Promise<ReadList | null> {
    const list = await this.page('uploads', listOf(channelId, 'UU'), after, scope);
    if (list.kind === 'none') return null;
    if (!described) return list;
    if (after) return this.withLaterKinds(list, channelId, after, scope);
    const additions = await this.additionsInTime(channelId, scope);
    const whole = withRestOfShorts(list, additions.shorts);
    return { ...whole, ...withAdditions(whole.uploads, additions) };
  }

  /** Adds kinds and dates to the newest uploads of a channel, as far as they can be read. */
  async describe(channelId: string, uploads: readonly Upload[], scope: RequestScope): Promise<DescribedUploads> {
    return withAdditions(uploads, await this.additionsInTime(channelId, scope));
  }

  /** Adds the kinds to a page after `after`; the list of Shorts is read on only as far as they require. */
  private async withLaterKinds(
    list: ReadList,
    channelId: string,
    after: Continuation,
    scope: RequestScope,
  ): Promise<ReadList> {
    let { shorts } = after;
    if (!shorts) return list;
    const readOn = async (optionalScope: RequestScope) => {
      for (let pages = 0; shorts && pages < SHORTS_PAGES_MAX && needsShorts(list.uploads, shorts); pages++) {
        const page = await this.page('shorts', listOf(channelId, 'UUSH'), shorts.next, optionalScope);
        if (page.kind === 'list') shorts = besideUploads(page, shorts);
      }
    };
    const add = (optionalScope: RequestScope) =>
      this.optional('shorts', channelId, optionalScope, () => readOn(optionalScope));
    await withOptional(scope, () => Promise.resolve(), add, DESCRIPTION_MS);
    return { ...list, ...withKinds(list.uploads, shorts, UNMET_MIN) };
  }

  /** Reads a page of a playlist, by one request; throws `PlaylistNotFoundError` and the errors of `page`. */
  async playlistPage(playlistId: string, after: Continuation | null, scope: RequestScope): Promise<ReadList> {
    return existing(playlistId, await this.page('playlist', playlistId, after, scope));
  }

  /**
   * Reads one page of a list, by one request.
   *
   * @param after where the page before ended; null for the first page
   * @throws ContinuationRejectedError when the platform refuses the token or the list does not exist any more
   * @throws UpstreamError when the page cannot be read
   */
  private async page(
    kind: ListKind,
    playlistId: string,
    after: Continuation | null,
    scope: RequestScope,
  ): Promise<ReadList | NoList> {
    const response = await this.request(kind, playlistId, after?.token ?? null, scope);
    // An invalid token gets 400, as any invalid argument.
    if (after !== null && isJsonError(response, 400, 404)) throw new ContinuationRejectedError();
    if (response.kind !== 'parsed') throw upstreamError(response, playlistId);
    const page = response.value;
    if (page.kind === 'none' && after !== null) throw new ContinuationRejectedError();
    if (page.kind === 'none') return page;
    const { title, uploads, next } = page;
    return { kind: 'list', title, uploads, next, progress: withPage(after?.progress ?? NOTHING_LISTED, page) };
  }

  private async additionsInTime(channelId: string, scope: RequestScope): Promise<Additions> {
    const add = (optionalScope: RequestScope) => this.additions(channelId, 1, optionalScope);
    const [, additions] = await withOptional(scope, () => Promise.resolve(), add, DESCRIPTION_MS);
    return additions ?? NO_ADDITIONS;
  }

  /** The Shorts, so far that they cover `count` uploads, and the dates of the newest uploads. Never rejects. */
  private async additions(channelId: string, count: number, scope: RequestScope): Promise<Additions> {
    const [shorts, dates] = await Promise.all([
      this.optional('shorts', channelId, scope, () => this.shorts(channelId, count, scope)),
      this.optional('feed', channelId, scope, () => this.dates(channelId, scope)),
    ]);
    return { shorts, dates };
  }

  private async shorts(channelId: string, count: number, scope: RequestScope): Promise<ReadList> {
    const list = await this.read('shorts', listOf(channelId, 'UUSH'), count, scope);
    // A channel without the list may have Shorts all the same (reported in March 2025), so nothing follows for its uploads.
    const progress = { ...NOTHING_LISTED, unread: true };
    return list.kind === 'list' ? list : { kind: 'list', title: null, uploads: [], next: null, progress };
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
   * Reads at least `count` videos of a playlist, or all, each once: its first page with the videos of further ones.
   *
   * @throws UpstreamError when they cannot be read to that length
   */
  private async read(
    kind: ListKind,
    playlistId: string,
    count: number,
    scope: RequestScope,
  ): Promise<ReadList | NoList> {
    const pagesMax = Math.ceil(count / ENTRIES_PER_PAGE_MIN) + PAGES_EXTRA;
    const uploads = new Map<string, Upload>();
    let title: string | null = null;
    let token: string | null = null;
    let progress = NOTHING_LISTED;
    for (let pages = 1; pages <= pagesMax; pages += 1) {
      const response = await this.request(kind, playlistId, token, scope);
      if (response.kind !== 'parsed') throw upstreamError(response, playlistId);
      const page = response.value;
      if (page.kind === 'none') {
        if (token === null) return page;
        break;
      }
      title ??= page.title;
      progress = withPage(progress, page);
      for (const upload of page.uploads) if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
      // Where a list continues there is an entry that cannot be read: the end is not believed when more is requested.
      const isEnd = page.next === null && (page.unread !== 'end' || isComplete(progress));
      if (isEnd || uploads.size >= count)
        return { kind: 'list', title, uploads: [...uploads.values()], next: page.next, progress };
      if (page.next === null) break;
      token = page.next;
    }
    // Fewer than requested without reaching the end: returning them would silently truncate the result.
    const expected = `${count} uploads or an end within ${pagesMax} pages`;
    throw upstreamError({ kind: 'unparsable', expected }, playlistId);
  }

  /**
   * Requests the first page of a playlist, or a later one by the token on the page before it. Counts page shapes too: a new
   * one announces pages that cannot be read.
   */
  private async request(
    kind: ListKind,
    playlistId: string,
    token: string | null,
    scope: RequestScope,
  ): Promise<ParsedResponse<ParsedListPage>> {
    const named = kind === 'playlist';
    const first = { browseId: `VL${playlistId}`, ...(named && { params: WITH_UNAVAILABLE_VIDEOS }) };
    const payload = token === null ? first : { continuation: token };
    const fields = named ? PLAYLIST_FIELDS : UPLOADS_FIELDS;
    const query = { kind, client: 'WEB', path: 'browse', payload, fields } as const;
    const response = await this.innertube.queryWhole(query, readPlaylistPage, scope, hasContents);
    // As for an unknown channel. The lists of a channel are known to belong to one, whose page decides whether it exists.
    if (named && token === null && isJsonError(response, 404))
      return { kind: 'parsed', value: { kind: 'none', state: 'unknown' } };
    if (response.kind === 'parsed' && response.value.kind === 'page') {
      const page = response.value;
      this.metrics.notice('shape', kind, page.shape);
      // A page that leads to itself leads nowhere.
      if (token !== null && page.next === token)
        return { kind: 'parsed', value: { ...page, next: null, unread: 'end' } };
    }
    if (response.kind === 'unparsable') {
      this.metrics.notice('shape', kind, 'unreadable');
      report('warn', 'youtube_unreadable', { kind, playlistId, expected: response.expected });
    }
    return response;
  }
}

function existing(playlistId: string, list: ReadList | NoList): ReadList {
  if (list.kind === 'list') return list;
  throw new PlaylistNotFoundError(list.state, new Error(`The playlist ${playlistId} is ${list.state}`));
}

function withAdditions(uploads: readonly Upload[], { shorts, dates }: Additions): DescribedUploads {
  const dated = uploads.map((upload) => ({
    ...upload,
    publishedAt: dates?.get(upload.videoId) ?? upload.publishedAt,
  }));
  return shorts ? withKinds(dated, besideUploads(shorts)) : { uploads: dated };
}

/**
 * A list of uploads that may have ended early, of a channel that has Shorts only: the list of Shorts goes on (reported for
 * lists that stop at 100).
 */
function withRestOfShorts(list: ReadList, shorts: ReadList | null): ReadList {
  const ids = new Set(shorts?.uploads.map(({ videoId }) => videoId));
  const isOfShorts = shorts !== null && list.uploads.every(({ videoId }) => ids.has(videoId));
  const isWhole = list.progress.expected !== null && isComplete(list.progress);
  if (!isOfShorts || list.next !== null || isWhole) return list;
  const listed = new Set(list.uploads.map(({ videoId }) => videoId));
  const uploads = [...list.uploads, ...shorts.uploads.filter(({ videoId }) => !listed.has(videoId))];
  return { ...list, uploads, next: shorts.next, progress: { ...list.progress, listed: uploads.length } };
}

/** The ID of a list of a channel: `UU` of its uploads, `UUSH` of its Shorts. */
function listOf(channelId: string, prefix: 'UU' | 'UUSH'): string {
  return `${prefix}${channelId.slice(2)}`;
}
