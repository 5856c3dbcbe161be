import type { ChannelReference } from '../../../domain/channel-reference.js';
import { type ChannelPage, readChannelPage, readResolvedUrl } from './channel-page.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import {
  parsed,
  type InnertubeCall,
  type InnertubeClient,
  type ParsedResponse,
} from '../innertube/innertube-client.js';
import { type PlaylistOwner, readPlaylistOwner } from './playlist-owner.js';
import { CHANNEL_FIELDS, PLAYLIST_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { readPlaylistPage, type PlaylistPage } from './uploads-page.js';
import { readInstant } from './displayed-values.js';
import { asVideoId, UnreadableError } from '../response-parsing.js';
import { nextTag } from '../captions/xml-tags.js';

/** Requests the channel of a URL: null for a URL that is not a channel's, HTTP 404 for an unknown one. */
export function requestResolvedUrl(
  innertube: InnertubeClient,
  url: string,
  scope: RequestScope,
): Promise<ParsedResponse<ChannelReference | null>> {
  const call: InnertubeCall = {
    ...{ kind: 'resolve', client: 'WEB', path: 'navigation/resolve_url' },
    ...{ payload: { url }, fields: null },
  };
  return innertube.query(call, readResolvedUrl, scope);
}

/** Requests the channel's page. */
export function requestChannelPage(
  innertube: InnertubeClient,
  channelId: string,
  scope: RequestScope,
): Promise<ParsedResponse<ChannelPage>> {
  const call = browse('channel', { browseId: channelId }, CHANNEL_FIELDS);
  return innertube.query(call, readChannelPage, scope);
}

/** A list, and its metric label: all uploads of a channel, its Shorts, or a playlist that a caller names. */
export type ListKind = 'uploads' | 'shorts' | 'playlist';

/** The first page of a playlist, or a later one by the token on the page before it. */
export type PlaylistPosition = { playlistId: string } | { continuation: string };

/**
 * Selects the list that contains deleted and private videos, which is hidden otherwise (recorded in January 2026, and sent
 * by maintained clients for every playlist). Continuation tokens repeat it.
 */
const WITH_UNAVAILABLE_VIDEOS = 'wgYCCAA%3D';

/** Requests a page of a playlist. */
export function requestPlaylistPage(
  innertube: InnertubeClient,
  kind: ListKind,
  from: PlaylistPosition,
  scope: RequestScope,
): Promise<ParsedResponse<PlaylistPage>> {
  const named = kind === 'playlist';
  const payload =
    'playlistId' in from
      ? { browseId: `VL${from.playlistId}`, ...(named && { params: WITH_UNAVAILABLE_VIDEOS }) }
      : { continuation: from.continuation };
  return innertube.query(browse(kind, payload, named ? PLAYLIST_FIELDS : UPLOADS_FIELDS), readPlaylistPage, scope);
}

/** Requests the owner named by the uploads playlist; null when it names none. Without a field mask, because none selects the owner. */
export async function requestPlaylistOwner(
  innertube: InnertubeClient,
  channelId: string,
  scope: RequestScope,
): Promise<PlaylistOwner | null> {
  const call = browse('owner', { browseId: `VLUU${channelId.slice(2)}` }, null);
  const owner = await innertube.query(call, (response) => readPlaylistOwner(response, channelId), scope);
  return owner.kind === 'parsed' ? owner.value : null;
}

/**
 * Requests the channel's feed, which contains the exact dates of the newest 15 uploads. The platform answers 404 for every
 * channel for days at a time (reported for February, April and September 2026): then there are no dates.
 */
export async function requestFeed(
  innertube: InnertubeClient,
  channelId: string,
  scope: RequestScope,
): Promise<ParsedResponse<Map<string, string>>> {
  const url = new URL('/feeds/videos.xml', YOUTUBE_ORIGIN);
  url.searchParams.set('channel_id', channelId);
  const response = await innertube.fetchText('feed', 'WEB', url, scope);
  if (response.kind === 'http-error' && response.status === 404) return { kind: 'parsed', value: new Map() };
  return response.kind === 'ok' ? parsed(() => readFeedDates(response.body)) : response;
}

function browse(kind: string, payload: InnertubeCall['payload'], fields: string | null): InnertubeCall {
  return { kind, client: 'WEB', path: 'browse', payload, fields };
}

/**
 * Reads a channel's Atom feed: the publish date of each of its videos (the newest 15) as video ID -> ISO 8601 in UTC.
 * An entry without a readable ID or time is skipped.
 *
 * @throws UnreadableError for a body that is not a feed or is truncated
 */
export function readFeedDates(xml: string): Map<string, string> {
  const dates = new Map<string, string>();
  let entry: { videoId?: string | undefined; published?: string | undefined } | undefined;
  let rooted = false;
  let ended = false;
  let position = 0;
  for (let tag = nextTag(xml, 0); tag !== null; tag = nextTag(xml, position)) {
    const text = xml.slice(position, tag.start).trim();
    position = tag.end;
    if (tag.kind === 'other') continue;
    if (!rooted && tag.name !== 'feed') break;
    rooted = true;
    if (tag.name === 'entry') {
      if (tag.kind === 'close' && entry?.videoId !== undefined && entry.published !== undefined) {
        dates.set(entry.videoId, entry.published);
      }
      entry = tag.kind === 'open' ? {} : undefined;
    }
    if (tag.kind !== 'close') continue;
    ended = tag.name === 'feed';
    if (entry && tag.name === 'yt:videoId') entry.videoId = asVideoId(text) ?? entry.videoId;
    if (entry && tag.name === 'published') entry.published = readInstant(text) ?? undefined;
  }
  if (!ended) throw new UnreadableError('a whole feed');
  return dates;
}
