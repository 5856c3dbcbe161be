import { type FakeResponse, invalidArgument, jsonResponse } from '../rendered-bodies.js';
import type { Channel, Video, VideoState } from '../catalogue/model.js';
import type { Playlist } from '../catalogue/playlists.js';
import type { Incoming } from '../incoming-request.js';
import { type JsonObject, stringAt } from '../json.js';
import { channelPage } from './channel-page.js';
import { newList } from './lockup-playlist.js';
import { oldList } from './legacy-playlist.js';
import type { CurrentCatalogue } from '../publish/current-catalogue.js';
import type { ServerState, Settings } from '../settings.js';
import type { ListPage, PlaylistShape } from './playlist-page.js';
import { responseContext, visitorDataOf } from './response-context.js';

const PAGE_SIZE = 100;
const PLAYLIST_ID = /^(?:PL[A-Za-z0-9_-]{16,32}|(?:OLAK|RDCLAK)5uy_[A-Za-z0-9_-]{33}|(?:FL|PU)[A-Za-z0-9_-]{22})$/;
const LIST_ID = /^UU(SH|LF|LV|MO)?([A-Za-z0-9_-]{22})$/;

const CONTENT_OF_LIST: Record<string, (video: Video) => boolean> = {
  SH: (video) => video.short === true,
  LF: (video) => !video.short && !isLive(video),
  LV: isLive,
  MO: (video) => video.state === 'members-only',
};

/** What a request for the first page of a playlist sends to get the deleted and private videos too. */
const WITH_HIDDEN = /^wgYCCAA(?:=|%3D)$/;
const HIDDEN: ReadonlySet<VideoState> = new Set(['private', 'deleted']);

/** A list as it is shown to one caller. */
interface List {
  channel: Channel;
  title: string;
  videos: readonly Video[];
  /** A playlist can have videos of several channels. */
  uploaderOf: (video: Video) => Channel;
  /** How many videos of the playlist are not shown. */
  hidden: number;
}

/** Why there is no list, in the words of the platform. */
type Refusal = 'The playlist does not exist.' | 'This playlist type is unviewable.' | 'This playlist is private.';

/** `POST /youtubei/v1/browse`: a channel's page, a playlist or a list of uploads, or the next page of a list. */
export function browse(incoming: Incoming, state: ServerState): FakeResponse {
  const continuation = stringAt(incoming.body, 'continuation');
  if (continuation !== undefined) return nextPage(continuation, state);
  const browseId = stringAt(incoming.body, 'browseId') ?? '';
  if (!browseId.startsWith('VL')) return channelPage(browseId, state.catalogue);
  const whole = WITH_HIDDEN.test(stringAt(incoming.body, 'params') ?? '');
  return firstPage(browseId.slice(2), whole, state);
}

/** How lists are written. */
type Written = Pick<Settings, 'playlistShape' | 'listEndsAt'>;

function firstPage(listId: string, whole: boolean, { settings, catalogue }: ServerState): FakeResponse {
  const list = listOf(listId, whole, catalogue);
  const revision = revisionOf(listId, catalogue);
  const key = `list:${listId}:${whole}:0:${settings.playlistShape}:${settings.listEndsAt}:${revision}`;
  if (typeof list === 'string') return jsonResponse(() => alert(listId, list), key);
  return jsonResponse(() => written(pageOf(list, listId, whole, 0, settings), settings.playlistShape), key);
}

function nextPage(token: string, { settings, catalogue }: ServerState): FakeResponse {
  const [kind = '', listId = '', offset = ''] = Buffer.from(token, 'base64url').toString().split(':');
  const list = listOf(listId, kind === 'whole', catalogue);
  // The token for recommendations leads to other channels' videos on the platform, and nowhere here.
  if (typeof list === 'string' || !/^(?:list|whole)$/.test(kind) || !/^[0-9]+$/.test(offset)) return invalidArgument();
  const page = pageOf(list, listId, kind === 'whole', Number(offset), settings);
  const { playlistShape, listEndsAt } = settings;
  const key = `${token}:${playlistShape}:${listEndsAt}:${revisionOf(listId, catalogue)}`;
  return jsonResponse(() => written(page, playlistShape), key);
}

/** A playlist can have videos of any channel. */
function revisionOf(listId: string, catalogue: CurrentCatalogue): string {
  const [, , id] = LIST_ID.exec(listId) ?? [];
  return catalogue.revision(id && `UC${id}`);
}

function written(page: ListPage, shape: PlaylistShape): JsonObject {
  const context = responseContext('WEB', visitorDataOf('WEB', page.listId));
  return { responseContext: context, ...(shape === 'old' ? oldList(page) : newList(page)) };
}

function listOf(listId: string, whole: boolean, catalogue: CurrentCatalogue): List | Refusal {
  const playlist = catalogue.playlistById(listId);
  if (playlist) return playlist.state === 'private' ? 'This playlist is private.' : shown(playlist, whole, catalogue);
  if (PLAYLIST_ID.test(listId)) return 'The playlist does not exist.';
  const [, content, id] = LIST_ID.exec(listId) ?? [];
  if (id === undefined) return 'This playlist type is unviewable.';
  const channel = catalogue.channelById(`UC${id}`);
  // The platform creates the list with the first upload.
  if (!channel || channel.uploadsPlaylist === 'missing') return 'The playlist does not exist.';
  const isIn = content === undefined ? undefined : CONTENT_OF_LIST[content];
  const videos = isIn ? channel.uploads().filter(isIn) : channel.uploads();
  // The lists of one kind of upload only exist for a channel that has some.
  if (isIn && videos.length === 0) return 'The playlist does not exist.';
  return { channel, title: 'Videos', videos, uploaderOf: () => channel, hidden: 0 };
}

function shown({ owner, title, videos }: Playlist, whole: boolean, catalogue: CurrentCatalogue): List {
  const all = videos();
  const visible = whole ? all : all.filter(({ state }) => !HIDDEN.has(state));
  const uploaderOf = ({ id }: Video) => catalogue.videoById(id)?.channel ?? owner;
  return { channel: owner, title, videos: visible, uploaderOf, hidden: all.length - visible.length };
}

function pageOf(list: List, listId: string, whole: boolean, offset: number, { listEndsAt }: Written): ListPage {
  const last = Math.min(list.videos.length, listEndsAt ?? Infinity);
  const end = Math.min(offset + PAGE_SIZE, last);
  return {
    listId,
    title: list.title,
    channel: list.channel,
    offset,
    total: list.videos.length,
    hidden: list.hidden,
    videos: list.videos.slice(offset, end).map((video) => ({ video, uploader: list.uploaderOf(video) })),
    nextToken: end < last ? tokenOf(whole ? 'whole' : 'list', listId, end) : null,
    recommendationsToken: tokenOf('recommended', listId, 0),
  };
}

function tokenOf(kind: 'list' | 'whole' | 'recommended', listId: string, offset: number): string {
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
