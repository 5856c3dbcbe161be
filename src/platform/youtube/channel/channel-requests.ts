import { type ChannelPage, readChannelPage, readResolvedUrl } from './channel-page.js';
import { readFeedDates } from './feed.js';
import type { InnertubeCall, InnertubeClient, RequestScope } from '../innertube/innertube-client.js';
import { type PlaylistOwner, readPlaylistOwner } from './playlist-owner.js';
import { postWithFieldMask, parse, type ParsedResponse } from '../innertube/field-mask-request.js';
import { CHANNEL_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import type { FieldMaskSupport } from '../innertube/field-mask-support.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { readUploadsPage, type UploadsPage } from './uploads-page.js';

/** Asks which channel an address leads to: its ID, or null when it leads elsewhere. 404 when it leads nowhere. */
export async function requestChannelId(
  innertube: InnertubeClient,
  url: string,
  scope: RequestScope,
): Promise<ParsedResponse<string | null>> {
  const call: InnertubeCall = {
    ...{ kind: 'resolve', client: 'WEB', path: 'navigation/resolve_url' },
    ...{ payload: { url }, fields: null },
  };
  const response = await innertube.post(call, scope);
  return response.kind === 'json' ? parse(() => readResolvedUrl(response.value)) : response;
}

/** Asks for the channel's own page. */
export function requestChannelPage(
  innertube: InnertubeClient,
  fieldMasks: FieldMaskSupport,
  channelId: string,
  scope: RequestScope,
): Promise<ParsedResponse<ChannelPage>> {
  const call = browse('channel', { browseId: channelId }, CHANNEL_FIELDS);
  return postWithFieldMask(innertube, fieldMasks, call, readChannelPage, scope);
}

/** Which list of a channel's uploads, as its counters name it: all of them, or the Shorts. */
export type ListKind = 'uploads' | 'shorts';

/**
 * Asks for a page of a playlist.
 *
 * @param from the playlist's ID for its first page, or the token of a later one
 */
export function requestPlaylistPage(
  innertube: InnertubeClient,
  fieldMasks: FieldMaskSupport,
  kind: ListKind,
  from: { playlistId: string } | { continuation: string },
  scope: RequestScope,
): Promise<ParsedResponse<UploadsPage>> {
  const payload = 'playlistId' in from ? { browseId: `VL${from.playlistId}` } : { continuation: from.continuation };
  return postWithFieldMask(innertube, fieldMasks, browse(kind, payload, UPLOADS_FIELDS), readUploadsPage, scope);
}

/** Asks a channel's uploads whose they are; null when they do not tell. The whole page, as no mask names the owner. */
export async function requestPlaylistOwner(
  innertube: InnertubeClient,
  channelId: string,
  scope: RequestScope,
): Promise<PlaylistOwner | null> {
  const response = await innertube.post(browse('owner', { browseId: `VLUU${channelId.slice(2)}` }, null), scope);
  return response.kind === 'json' ? readPlaylistOwner(response.value, channelId) : null;
}

/** Asks for the channel's feed, which has the exact dates of the newest 15 uploads. */
export async function requestFeed(
  innertube: InnertubeClient,
  channelId: string,
  scope: RequestScope,
): Promise<ParsedResponse<Map<string, string>>> {
  const url = new URL('/feeds/videos.xml', YOUTUBE_ORIGIN);
  url.searchParams.set('channel_id', channelId);
  const response = await innertube.get('feed', 'WEB', url, scope);
  return response.kind === 'ok' ? parse(() => readFeedDates(response.body)) : response;
}

function browse(kind: string, payload: InnertubeCall['payload'], fields: string | null): InnertubeCall {
  return { kind, client: 'WEB', path: 'browse', payload, fields };
}
