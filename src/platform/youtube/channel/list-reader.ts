import { Injectable } from '@nestjs/common';
import { PlaylistNotFoundError } from '../../../domain/errors.js';
import { ContinuationRejectedError, type PlaylistPage, type UploadsListPage } from '../../video-platform.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { PLAYLIST_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, parsed, type ParsedResponse } from '../innertube/innertube-client.js';
import { withOptional } from '../optional-work.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import { ChannelReader } from './channel-reader.js';
import { type Additions, type FeedEntry, readFeed } from './list-additions.js';
import { NOTHING_LISTED, pageAfter, readContinuation, unreadableAfter } from './list-progress.js';
import { hasContents, type ParsedListPage, readPlaylistPage } from './playlist-page.js';

/** A list, and its metric label: all uploads of a channel, its Shorts, or a playlist that a caller names. */
type ListKind = 'uploads' | 'shorts' | 'playlist';

type NoList = Extract<ParsedListPage, { kind: 'none' }>;
type ReadPage = { kind: 'page'; title: string | null; page: UploadsListPage } | NoList;

const NO_UPLOADS: UploadsListPage = { uploads: [], next: null, incomplete: false, hidden: 0, pages: 1 };

/** How long the dates and kinds of a page may take when nobody waits for them. */
const BACKGROUND_MS = 10_000;

/**
 * Selects the list that contains deleted and private videos, which is hidden otherwise (recorded in January 2026, and sent
 * by maintained clients for every playlist). Continuation tokens repeat it.
 */
const WITH_UNAVAILABLE_VIDEOS = 'wgYCCAA%3D';

/** Reads lists through one egress, page by page: playlists, of which the uploads and the Shorts of a channel are two. */
@Injectable()
export class ListReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly channels: ChannelReader,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Reads a page of the uploads of a channel; see `VideoPlatform.uploads`. */
  async uploads(channelId: string, after: string | undefined, scope: RequestScope): Promise<UploadsListPage> {
    const read = await this.page('uploads', listOf(channelId, 'UU'), after, scope);
    if (read.kind === 'page') return read.page;
    // Without the playlist the channel has no uploads, has moved to another ID or does not exist.
    const currentId = await this.channels.currentId(channelId, scope);
    return currentId === channelId ? NO_UPLOADS : this.uploads(currentId, after, scope);
  }

  /** Reads a page of a playlist; see `VideoPlatform.playlist`. */
  async playlist(id: string, after: string | undefined, scope: RequestScope): Promise<PlaylistPage> {
    const read = await this.page('playlist', id, after, scope);
    if (read.kind === 'none')
      throw new PlaylistNotFoundError(read.state, new Error(`The playlist ${id} is ${read.state}`));
    return { ...read.page, playlist: after === undefined ? { id, title: read.title } : null };
  }

  /**
   * The Shorts and the feed of a channel, as far as they can be read; a failure is logged.
   *
   * @param page the page that they are read for, which is read at the same time: without it they are of no use
   */
  async additions(channelId: string, page: Promise<unknown>, scope: RequestScope): Promise<Additions> {
    const add = (optionalScope: RequestScope) =>
      Promise.all([
        this.optional('shorts', channelId, optionalScope, () => this.shorts(channelId, optionalScope)),
        this.optional('feed', channelId, optionalScope, () => this.feed(channelId, optionalScope)),
      ]);
    const graceMs = scope.context.background === true ? BACKGROUND_MS : undefined;
    const [, added] = await withOptional(scope, () => page.catch(() => undefined), add, graceMs);
    const [shorts, feed] = added ?? [null, null];
    return { shorts, feed };
  }

  private async shorts(channelId: string, scope: RequestScope): Promise<UploadsListPage> {
    const read = await this.page('shorts', listOf(channelId, 'UUSH'), undefined, scope);
    // A channel without the list may have Shorts all the same (reported in March 2025), so nothing follows for its uploads.
    return read.kind === 'page' ? read.page : unreadableAfter(NOTHING_LISTED);
  }

  /**
   * What the channel's feed states about the newest 15 uploads. The platform answers 404 for every channel for days at a time
   * (reported for February, April and September 2026): then it states nothing.
   */
  private async feed(channelId: string, scope: RequestScope): Promise<Map<string, FeedEntry>> {
    const url = new URL('/feeds/videos.xml', YOUTUBE_ORIGIN);
    url.searchParams.set('channel_id', channelId);
    const response = await this.innertube.fetchText('feed', 'WEB', url, scope);
    if (response.kind === 'http-error' && response.status === 404) return new Map();
    const feed = response.kind === 'ok' ? parsed(() => readFeed(response.body)) : response;
    if (feed.kind === 'parsed') return feed.value;
    throw upstreamError(feed, 'feed');
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
   * Reads one page of a list, by one request. A page that cannot be read is an incomplete end.
   *
   * @throws ContinuationRejectedError when the platform refuses the continuation or the list does not exist any more
   * @throws UpstreamError when the page is refused or does not arrive
   */
  private async page(
    kind: ListKind,
    listId: string,
    continuation: string | undefined,
    scope: RequestScope,
  ): Promise<ReadPage> {
    const after = continuation === undefined ? null : readContinuation(continuation);
    if (continuation !== undefined && after === null) throw new ContinuationRejectedError();
    const progress = after?.progress ?? NOTHING_LISTED;
    const response = await this.request(kind, listId, after?.token ?? null, scope);
    // An invalid token gets 400, as any invalid argument.
    if (after !== null && isJsonError(response, 400, 404)) throw new ContinuationRejectedError();
    // As for an unknown channel. The lists of a channel are known to belong to one, whose page decides whether it exists.
    if (kind === 'playlist' && isJsonError(response, 404)) return { kind: 'none', state: 'unknown' };
    if (response.kind === 'unparsable' && kind !== 'shorts')
      return { kind: 'page', title: null, page: reported(listId, unreadableAfter(progress)) };
    if (response.kind !== 'parsed') throw upstreamError(response, listId);
    const read = response.value;
    if (read.kind === 'none' && after !== null) throw new ContinuationRejectedError();
    if (read.kind === 'none') return read;
    this.metrics.notice('shape', kind, read.shape);
    // A page that leads to itself leads nowhere.
    const leads = after !== null && read.next === after.token;
    const page = pageAfter(progress, leads ? { ...read, next: null, unread: 'end' } : read);
    return { kind: 'page', title: read.title, page: kind === 'shorts' ? page : reported(listId, page) };
  }

  /** Requests the first page of a list, or a later one by the token on the page before it. */
  private async request(
    kind: ListKind,
    listId: string,
    token: string | null,
    scope: RequestScope,
  ): Promise<ParsedResponse<ParsedListPage>> {
    const named = kind === 'playlist';
    const first = { browseId: `VL${listId}`, ...(named && { params: WITH_UNAVAILABLE_VIDEOS }) };
    const payload = token === null ? first : { continuation: token };
    const fields = named ? PLAYLIST_FIELDS : UPLOADS_FIELDS;
    const query = { kind, client: 'WEB', path: 'browse', payload, fields } as const;
    const response = await this.innertube.queryWhole(query, readPlaylistPage, scope, hasContents);
    if (response.kind !== 'unparsable') return response;
    this.metrics.notice('shape', kind, 'unreadable');
    report('warn', 'youtube_unreadable', { kind, listId, expected: response.expected });
    return response;
  }
}

function reported(listId: string, page: UploadsListPage): UploadsListPage {
  const { pages, hidden } = page;
  if (page.incomplete) report('log', 'youtube_list_incomplete', { listId, pages, hidden });
  return page;
}

/** The ID of a list of a channel: `UU` of its uploads, `UUSH` of its Shorts. */
function listOf(channelId: string, prefix: 'UU' | 'UUSH'): string {
  return `${prefix}${channelId.slice(2)}`;
}
