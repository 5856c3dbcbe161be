import { Injectable } from '@nestjs/common';
import { PlaylistNotFoundError } from '../../../domain/errors.js';
import { ContinuationRejectedError, type PlaylistPage, type UploadsListPage } from '../../video-platform.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { isJsonError } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { PLAYLIST_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ChannelReader, listError } from './channel-reader.js';
import { hasContents, type ListPage, type ParsedListPage, readPlaylistPage } from './playlist-page.js';

/** A list, and its metric label: all uploads of a channel, its Shorts, or a playlist that a caller names. */
type ListKind = 'uploads' | 'shorts' | 'playlist';

type NoList = Extract<ParsedListPage, { kind: 'none' }>;
type ReadPage = { kind: 'page'; title: string | null; stated: number | null; page: UploadsListPage } | NoList;

const NO_UPLOADS: UploadsListPage = { uploads: [], next: null, incomplete: false, hidden: 0, pages: 1 };

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
    return { ...read.page, playlist: after === undefined ? { id, title: read.title } : null, stated: read.stated };
  }

  /** Reads the first page of the Shorts of a channel. One without the list may have Shorts all the same (reported in March 2025). */
  async shorts(channelId: string, scope: RequestScope): Promise<UploadsListPage> {
    const read = await this.page('shorts', listOf(channelId, 'UUSH'), undefined, scope);
    return read.kind === 'page' ? read.page : unreadableAfter(NOTHING_LISTED);
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
      return { kind: 'page', title: null, stated: null, page: reported(listId, unreadableAfter(progress)) };
    if (response.kind !== 'parsed') throw listError(response, listId);
    const read = response.value;
    if (read.kind === 'none' && after !== null) throw new ContinuationRejectedError();
    if (read.kind === 'none') return read;
    this.metrics.notice('shape', kind, read.shape);
    // A page that leads to itself leads nowhere.
    const leads = after !== null && read.next === after.token;
    const page = pageAfter(progress, leads ? { ...read, next: null, unread: 'end' } : read);
    const { title, stated } = read;
    return { kind: 'page', title, stated, page: kind === 'shorts' ? page : reported(listId, page) };
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

/** How far a list was read, over its pages: what decides at its end whether it is complete. */
export interface ListProgress {
  pages: number;
  listed: number;
  /** How many videos the list states without those that it hides; null when it does not. */
  expected: number | null;
  /** Whether an entry could not be read: a video, or a continuation. */
  unread: boolean;
}

/** Where a list goes on: how far it was read, and the platform's token of the next page. */
export interface Continuation {
  progress: ListProgress;
  token: string;
}

export const NOTHING_LISTED: ListProgress = { pages: 0, listed: 0, expected: null, unread: false };

/** Far above any channel: a list that is still not at its end repeats itself, and ends there. */
const PAGES_MAX = 5_000;
const PAGE_ENTRIES = 100;
/** Hidden videos count in the header, and not always with a notice. */
const UNLISTED_SHARE = 0.02;

/** A page as the caller gets it, after what was read of its list before. */
export function pageAfter(before: ListProgress, page: Omit<ListPage, 'kind' | 'title' | 'shape'>): UploadsListPage {
  const { uploads, next } = page;
  const pages = before.pages + 1;
  const progress: ListProgress = {
    pages,
    listed: before.listed + uploads.length,
    expected: page.stated ?? before.expected,
    unread: before.unread || page.unread !== 'nothing',
  };
  if (next !== null && pages < PAGES_MAX)
    return { uploads, next: writeContinuation({ progress, token: next }), incomplete: false, hidden: null, pages };
  const incomplete = next !== null || !isComplete(progress);
  const isUnread = next !== null || page.unread === 'end';
  const hidden = incomplete && isUnread ? null : Math.max(0, (progress.expected ?? 0) - progress.listed);
  return { uploads, next: null, incomplete, hidden, pages };
}

/** The end of a list whose next page cannot be read. */
export function unreadableAfter({ pages }: ListProgress): UploadsListPage {
  return { uploads: [], next: null, incomplete: true, hidden: null, pages };
}

/**
 * Whether a list that ended is complete: when it has as many videos as it states, or states none and everything was read. A
 * few may be missing, but not where lists are known to stop early: after whole pages.
 */
function isComplete({ listed, expected, unread }: ListProgress): boolean {
  if (expected === null) return !unread;
  const stopsEarly = unread || (listed > 0 && listed % PAGE_ENTRIES === 0);
  return listed >= expected - (stopsEarly ? 0 : Math.max(1, Math.floor(expected * UNLISTED_SHARE)));
}

/**
 * `<number of the next page>:<listed>/<expected>:<the platform's token>`. In jobs of a former version, after the number and a
 * semicolon, there are Shorts that nothing needs any more.
 */
const CONTINUATION = /^(\d{1,6})(?:;[^:]*)?:(\d{1,7})\/(\d{1,7})?(!)?:(.+)$/s;

/** The text by which any process continues a list. */
function writeContinuation({ progress, token }: Continuation): string {
  const { pages, listed, expected, unread } = progress;
  return `${pages + 1}:${listed}/${expected ?? ''}${unread ? '!' : ''}:${token}`;
}

/** Null for a text that is no continuation. */
export function readContinuation(text: string): Continuation | null {
  const [, number, listed, expected, unread, token] = CONTINUATION.exec(text) ?? [];
  if (number === undefined || token === undefined) return null;
  const counted = expected === undefined ? null : Number(expected);
  const progress = { pages: Number(number) - 1, listed: Number(listed), expected: counted, unread: unread === '!' };
  return { progress, token };
}
