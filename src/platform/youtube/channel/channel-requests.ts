import { type ChannelPage, readChannelPage, readResolvedUrl } from './channel-page.js';
import { readFeedDates } from './feed.js';
import type { InnertubeCall, InnertubeClient, Work } from '../innertube/innertube-client.js';
import { type ListOwner, readListOwner } from './playlist-owner.js';
import { askMasked, tell, type Told } from '../innertube/field-mask-request.js';
import { CHANNEL_FIELDS, UPLOADS_FIELDS } from '../innertube/field-masks.js';
import type { PartialResponses } from '../innertube/field-mask-support.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { readUploadsPage, type UploadsPage } from './uploads-page.js';

/** Asks which channel an address leads to: its ID, or null when it leads elsewhere. 404 when it leads nowhere. */
export async function askResolve(innertube: InnertubeClient, url: string, work: Work): Promise<Told<string | null>> {
  const call: InnertubeCall = {
    ...{ kind: 'resolve', client: 'WEB', path: 'navigation/resolve_url' },
    ...{ payload: { url }, fields: null },
  };
  const answer = await innertube.post(call, work);
  return answer.kind === 'json' ? tell(() => readResolvedUrl(answer.value)) : answer;
}

/** Asks for the channel's own page. */
export function askChannelPage(
  innertube: InnertubeClient,
  partial: PartialResponses,
  channelId: string,
  work: Work,
): Promise<Told<ChannelPage>> {
  const call = browse('channel', { browseId: channelId }, CHANNEL_FIELDS);
  return askMasked(innertube, partial, call, readChannelPage, work);
}

/** Which list of a channel's uploads, as its counters name it: all of them, or the Shorts. */
export type ListKind = 'uploads' | 'shorts';

/**
 * Asks for a page of a playlist.
 *
 * @param from the playlist's ID for its first page, or the token of a later one
 */
export function askPlaylistPage(
  innertube: InnertubeClient,
  partial: PartialResponses,
  kind: ListKind,
  from: { playlistId: string } | { continuation: string },
  work: Work,
): Promise<Told<UploadsPage>> {
  const payload = 'playlistId' in from ? { browseId: `VL${from.playlistId}` } : { continuation: from.continuation };
  return askMasked(innertube, partial, browse(kind, payload, UPLOADS_FIELDS), readUploadsPage, work);
}

/** Asks a channel's uploads whose they are; null when they do not tell. The whole page, as no mask names the owner. */
export async function askListOwner(
  innertube: InnertubeClient,
  channelId: string,
  work: Work,
): Promise<ListOwner | null> {
  const answer = await innertube.post(browse('owner', { browseId: `VLUU${channelId.slice(2)}` }, null), work);
  return answer.kind === 'json' ? readListOwner(answer.value, channelId) : null;
}

/** Asks for the channel's feed, which has the exact dates of the newest 15 uploads. */
export async function askFeed(
  innertube: InnertubeClient,
  channelId: string,
  work: Work,
): Promise<Told<Map<string, string>>> {
  const url = new URL('/feeds/videos.xml', YOUTUBE_ORIGIN);
  url.searchParams.set('channel_id', channelId);
  const answer = await innertube.get('feed', 'WEB', url, work);
  return answer.kind === 'ok' ? tell(() => readFeedDates(answer.body)) : answer;
}

function browse(kind: string, payload: InnertubeCall['payload'], fields: string | null): InnertubeCall {
  return { kind, client: 'WEB', path: 'browse', payload, fields };
}
