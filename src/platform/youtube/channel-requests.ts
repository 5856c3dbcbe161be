import type { FailedAnswer } from './answer.js';
import { type ChannelPage, readChannelPage, readResolvedUrl } from './channel-page.js';
import { readFeedDates } from './feed.js';
import type { InnertubeCall, InnertubeClient, Work } from './innertube-client.js';
import { CHANNEL_FIELDS, UPLOADS_FIELDS } from './partial-fields.js';
import type { MaskVerdict, PartialResponses } from './partial-responses.js';
import { YOUTUBE_ORIGIN } from './platform-address.js';
import { UnreadableError } from './unreadable.js';
import { readUploadsPage, type UploadsPage } from './uploads-page.js';

/** A request's end, with what was read from its answer. `misread` is an answer that is not what it should be. */
export type Told<T> = { kind: 'told'; value: T } | { kind: 'misread'; expected: string } | FailedAnswer;

/** Asks which channel an address leads to: its ID, or null when it leads elsewhere. 404 when it leads nowhere. */
export async function askResolve(innertube: InnertubeClient, url: string, work: Work): Promise<Told<string | null>> {
  const call: InnertubeCall = {
    ...{ kind: 'resolve', client: 'WEB', path: 'navigation/resolve_url' },
    ...{ payload: { url }, fields: null },
  };
  const answer = await innertube.post(call, work);
  return answer.kind === 'json' ? told(() => readResolvedUrl(answer.value)) : answer;
}

/** Asks for the channel's own page. */
export function askChannelPage(
  innertube: InnertubeClient,
  partial: PartialResponses,
  channelId: string,
  work: Work,
): Promise<Told<ChannelPage>> {
  const call: InnertubeCall = {
    ...{ kind: 'channel', client: 'WEB', path: 'browse' },
    ...{ payload: { browseId: channelId }, fields: null },
  };
  return browse(innertube, partial, call, CHANNEL_FIELDS, readChannelPage, work);
}

/**
 * Asks for a page of a playlist.
 *
 * @param kind for the counters: which list it is
 * @param from the playlist's ID for its first page, or the token of a later one
 */
export function askPlaylistPage(
  innertube: InnertubeClient,
  partial: PartialResponses,
  kind: string,
  from: { playlistId: string } | { continuation: string },
  work: Work,
  onPage: (page: unknown) => void = () => undefined,
): Promise<Told<UploadsPage>> {
  const payload = 'playlistId' in from ? { browseId: `VL${from.playlistId}` } : { continuation: from.continuation };
  const read = (page: unknown) => {
    onPage(page);
    return readUploadsPage(page);
  };
  return browse(
    innertube,
    partial,
    { kind, client: 'WEB', path: 'browse', payload, fields: null },
    UPLOADS_FIELDS,
    read,
    work,
  );
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
  return answer.kind === 'ok' ? told(() => readFeedDates(answer.body)) : answer;
}

function browse<T>(
  innertube: InnertubeClient,
  partial: PartialResponses,
  call: InnertubeCall,
  fields: string,
  read: (page: unknown) => T,
  work: Work,
): Promise<Told<T>> {
  const ask = async (masked: boolean): Promise<Told<T>> => {
    const answer = await innertube.post({ ...call, fields: masked ? fields : null }, work);
    return answer.kind === 'json' ? told(() => read(answer.value)) : answer;
  };
  return partial.read(`${call.kind} ${call.client}`, ask, judge);
}

/** A mask that is not understood is told by 400, like an ID that is none: the repetition without it tells them apart. */
function judge(answer: Told<unknown>): MaskVerdict {
  if (answer.kind === 'told') return 'proof';
  return answer.kind === 'misread' || (answer.kind === 'http-error' && answer.status === 400) ? 'doubtful' : 'failed';
}

function told<T>(read: () => T): Told<T> {
  try {
    return { kind: 'told', value: read() };
  } catch (error) {
    if (error instanceof UnreadableError) return { kind: 'misread', expected: error.expected };
    throw error;
  }
}
