import { type FakeResponse, invalidArgument, jsonResponse } from '../fake-response.js';
import { CHANNELS, channelById } from '../catalogue/catalogue.js';
import type { Channel, Video } from '../catalogue/model.js';
import type { Incoming } from '../incoming-request.js';
import { type JsonObject, stringAt } from '../json.js';
import { channelPage } from './channel-page.js';
import { newList } from './lockup-playlist.js';
import { oldList } from './legacy-playlist.js';
import { type ListPage, type PlaylistShape } from './playlist-page.js';
import { responseContext, visitorDataOf } from './response-context.js';

const PAGE_SIZE = 100;
const LIST_ID = /^UU(SH|LF|LV|MO)?([A-Za-z0-9_-]{22})$/;

const CONTENT_OF_LIST: Record<string, (video: Video) => boolean> = {
  SH: (video) => video.short === true,
  LF: (video) => !video.short && !isLive(video),
  LV: isLive,
  MO: (video) => video.state === 'members-only',
};

/** `POST /youtubei/v1/browse`: a channel's page, one of its lists of uploads, or the next page of a list. */
export function browse(incoming: Incoming, shape: PlaylistShape): FakeResponse {
  const continuation = stringAt(incoming.body, 'continuation');
  if (continuation !== undefined) return nextPage(continuation, shape);
  const browseId = stringAt(incoming.body, 'browseId') ?? '';
  return browseId.startsWith('VL') ? firstPage(browseId.slice(2), shape) : channelPage(browseId);
}

function firstPage(listId: string, shape: PlaylistShape): FakeResponse {
  const list = listOf(listId);
  const key = `list:${listId}:0:${shape}`;
  if (list === undefined) return jsonResponse(() => alert(listId, 'This playlist type is unviewable.'), key);
  if (list === null) return jsonResponse(() => alert(listId, 'The playlist does not exist.'), key);
  return jsonResponse(() => written(pageOf(list, listId, 0), shape), key);
}

function nextPage(token: string, shape: PlaylistShape): FakeResponse {
  const [kind, listId = '', offset = ''] = Buffer.from(token, 'base64url').toString().split(':');
  const list = listOf(listId);
  if (kind !== 'list' && kind !== 'recommended') return invalidArgument();
  if (!list || !/^[0-9]+$/.test(offset)) return invalidArgument();
  // The token for recommendations leads to other channels' videos, as on the platform.
  const page = kind === 'list' ? pageOf(list, listId, Number(offset)) : recommendations(list.channel);
  return jsonResponse(() => written(page, shape), `${token}:${shape}`);
}

function written(page: ListPage, shape: PlaylistShape): JsonObject {
  const context = responseContext('WEB', visitorDataOf('WEB', page.listId));
  return { responseContext: context, ...(shape === 'old' ? oldList(page) : newList(page)) };
}

/** Undefined when the ID is not a list of uploads, null when the platform never created the list. */
function listOf(listId: string): { channel: Channel; videos: readonly Video[] } | null | undefined {
  const [, content, id] = LIST_ID.exec(listId) ?? [];
  if (id === undefined) return undefined;
  const channel = channelById(`UC${id}`);
  if (!channel || channel.uploadsPlaylist === 'missing') return null;
  const isIn = content === undefined ? undefined : CONTENT_OF_LIST[content];
  const videos = isIn ? channel.uploads().filter(isIn) : channel.uploads();
  // The lists of one kind of upload only exist for a channel that has some.
  return isIn && videos.length === 0 ? null : { channel, videos };
}

function pageOf(list: { channel: Channel; videos: readonly Video[] }, listId: string, offset: number): ListPage {
  const end = offset + PAGE_SIZE;
  return {
    listId,
    channel: list.channel,
    offset,
    total: list.videos.length,
    videos: list.videos.slice(offset, end),
    nextToken: end < list.videos.length ? tokenOf('list', listId, end) : null,
    recommendationsToken: tokenOf('recommended', listId, 0),
  };
}

function recommendations(channel: Channel): ListPage {
  const other = CHANNELS.find(({ id, uploads }) => id !== channel.id && uploads().length > 0) ?? channel;
  const page = pageOf({ channel: other, videos: other.uploads() }, `UU${other.id.slice(2)}`, 0);
  return { ...page, offset: PAGE_SIZE };
}

function tokenOf(kind: 'list' | 'recommended', listId: string, offset: number): string {
  return Buffer.from(`${kind}:${listId}:${offset}`).toString('base64url');
}

function isLive(video: Video): boolean {
  return video.pastLive === true || video.state === 'live' || video.state === 'upcoming';
}

function alert(listId: string, text: string): JsonObject {
  return {
    responseContext: responseContext('WEB', visitorDataOf('WEB', listId)),
    alerts: [{ alertRenderer: { type: 'ERROR', text: { runs: [{ text }] } } }],
    microformat: { microformatDataRenderer: { noindex: true } },
  };
}
