import { Injectable } from '@nestjs/common';
import type { Upload } from '../../../domain/transcript.js';
import type { UploadsListPage } from '../../video-platform.js';
import { YOUTUBE_ORIGIN } from '../egress/http-transport.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { withOptional } from '../optional-work.js';
import { asVideoId, UnreadableError } from '../response-parsing.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { listError } from './channel-reader.js';
import { ListReader } from './list-reader.js';
import { readInstant } from './listed-upload.js';

/** How long the dates and kinds of a page may take when nobody waits for them. */
const BACKGROUND_MS = 10_000;

/** What the feed of a channel states about one of its newest uploads. */
export interface FeedEntry {
  /** ISO 8601 in UTC; null when it cannot be read. */
  publishedAt: string | null;
  /** Whether it links the video as a Short. It does not do so for all Shorts. */
  isShort: boolean;
}

/** What was read; null for what could not be. */
export interface Additions {
  /** The first page of the list of Shorts. */
  shorts: UploadsListPage | null;
  /** By video ID. */
  feed: ReadonlyMap<string, FeedEntry> | null;
}

/** Reads what is added to the first page of a list of uploads, through one egress: the Shorts and the feed of the channel. */
@Injectable()
export class ListAdditions {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly lists: ListReader,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /**
   * What can be read of them; a failure is logged. Rejects only when the scope's signal is aborted.
   *
   * @param page the page that they are read for, which is read at the same time: without it they are of no use
   */
  async read(channelId: string, page: Promise<unknown>, scope: RequestScope): Promise<Additions> {
    const add = (optional: RequestScope) =>
      Promise.all([
        this.readOrNull('shorts', channelId, optional, () => this.lists.shorts(channelId, optional)),
        this.readOrNull('feed', channelId, optional, () => this.feed(channelId, optional)),
      ]);
    const graceMs = scope.context.background === true ? BACKGROUND_MS : undefined;
    const [, added] = await withOptional(scope, () => page.catch(() => undefined), add, graceMs);
    return { shorts: added?.[0] ?? null, feed: added?.[1] ?? null };
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
    throw listError(feed, 'feed');
  }

  private async readOrNull<T>(
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

/**
 * Adds dates and kinds to the first page of the uploads. Shorts look like videos there: an upload is a `video` as far as the
 * list of Shorts reaches; beyond its oldest entry the kind stays unknown.
 */
export function withAdditions(page: UploadsListPage, { shorts, feed }: Additions): UploadsListPage {
  const whole = shorts ? withRestOfShorts(page, shorts) : page;
  const shortIds = new Set(shorts?.uploads.map(({ videoId }) => videoId));
  const isListed = new Set(whole.uploads.map(({ videoId }) => videoId));
  const lastShort = whole.uploads.findLastIndex(({ videoId }) => shortIds.has(videoId));
  // Both lists are newest first: a Short that is not among the uploads after all that are is below them.
  const lastRead = shorts?.uploads.at(-1);
  const isCovered = shorts !== null && (isWhole(shorts) || (lastRead && !isListed.has(lastRead.videoId)));
  const uploads = whole.uploads.map((upload, index): Upload => {
    const { publishedAt = null, isShort = false } = feed?.get(upload.videoId) ?? {};
    const dated = { ...upload, publishedAt: publishedAt ?? upload.publishedAt };
    if (upload.kind === 'live' || upload.kind === 'upcoming') return dated;
    if (isShort || shortIds.has(upload.videoId)) return { ...dated, kind: 'short' };
    return isCovered || index < lastShort ? { ...dated, kind: upload.kind ?? 'video' } : dated;
  });
  return { ...whole, uploads };
}

function isWhole({ next, incomplete }: UploadsListPage): boolean {
  return next === null && !incomplete;
}

/** A list of uploads that has ended, of a channel that has Shorts only: the list of Shorts can go on (reported for lists of 100). */
function withRestOfShorts(page: UploadsListPage, shorts: UploadsListPage): UploadsListPage {
  const ids = new Set(shorts.uploads.map(({ videoId }) => videoId));
  const isOfShorts = page.uploads.every(({ videoId }) => ids.has(videoId));
  const hasMore = shorts.next !== null || shorts.uploads.length > page.uploads.length;
  if (page.next !== null || page.uploads.length === 0 || !isOfShorts || !hasMore) return page;
  const listed = new Set(page.uploads.map(({ videoId }) => videoId));
  return { ...shorts, uploads: [...page.uploads, ...shorts.uploads.filter(({ videoId }) => !listed.has(videoId))] };
}

const FEED_VIDEO_ID = /<yt:videoId>([^<]*)<\/yt:videoId>/;
const PUBLISHED = /<published>([^<]*)<\/published>/;
const LINKED_AS_SHORT = /<link\b[^>]*\bhref="[^"]*\/shorts\//;

/**
 * Reads a channel's Atom feed: what it states about each of its videos (the newest 15), by video ID. An entry without a
 * readable ID is skipped.
 *
 * @throws UnreadableError for a body that is not a feed or is truncated
 */
export function readFeed(xml: string): Map<string, FeedEntry> {
  const body = xml.trim();
  if (!/^(?:<\?xml [^<>]*\?>\s*)?<feed[\s>]/.test(body) || !body.endsWith('</feed>'))
    throw new UnreadableError('a whole feed');
  const entries = new Map<string, FeedEntry>();
  for (const opened of body.split('<entry>').slice(1)) {
    const [entry = ''] = opened.split('</entry>', 1);
    const videoId = asVideoId(FEED_VIDEO_ID.exec(entry)?.[1]?.trim());
    const publishedAt = readInstant(PUBLISHED.exec(entry)?.[1]?.trim() ?? '');
    if (videoId !== null) entries.set(videoId, { publishedAt, isShort: LINKED_AS_SHORT.test(entry) });
  }
  return entries;
}
