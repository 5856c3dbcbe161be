import { videoById } from '../catalogue/catalogue.js';
import type { Channel, Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';

/** How playlist pages are written: the platform changed from `old` to `new` in June 2026. */
export const PLAYLIST_SHAPES = ['old', 'new'] as const;
export type PlaylistShape = (typeof PLAYLIST_SHAPES)[number];

/** A page of a list of uploads, before it is written in either shape. */
export interface ListPage {
  listId: string;
  title: string;
  channel: Channel;
  /** Position of the first video; anything but 0 is written as a continuation. */
  offset: number;
  total: number;
  /** How many deleted and private videos of the playlist are not shown. */
  hidden: number;
  videos: readonly Video[];
  /** Null on the last page. */
  nextToken: string | null;
  /** The token of the recommendations below the list, which is not the token of its next page. */
  recommendationsToken: string;
}

/** The channel of a listed video: a playlist can have videos of several. */
export function uploaderOf({ listId, channel }: Pick<ListPage, 'listId' | 'channel'>, { id }: Video): Channel {
  return listId.startsWith('UU') ? channel : (videoById(id)?.channel ?? channel);
}

/** The start of every announced event. */
export const EVENT_START = new Date('2030-03-14T18:00:00Z');
export const EVENT_TEXT = '3/14/30, 6:00 PM';

export function thumbnails(videoId: string): JsonObject[] {
  return [168, 336].map((width) => ({
    url: `https://i.ytimg.com/vi/${videoId}/hqdefault.jpg?w=${width}`,
    width,
    height: Math.round(width * 0.56),
  }));
}

export function browseContinuation(token: string): JsonObject {
  return {
    commandMetadata: { webCommandMetadata: { sendPost: true, apiUrl: '/youtubei/v1/browse' } },
    continuationCommand: { token, request: 'CONTINUATION_REQUEST_TYPE_BROWSE' },
  };
}

function recommendationsItem(page: ListPage): JsonObject {
  return {
    continuationItemRenderer: {
      trigger: 'CONTINUATION_TRIGGER_ON_ITEM_SHOWN',
      continuationEndpoint: browseContinuation(page.recommendationsToken),
    },
  };
}

/** What surrounds the list on its first page. */
export function firstPageFrame(page: ListPage, contents: readonly JsonObject[]): JsonObject {
  const sections = [{ itemSectionRenderer: { contents } }, recommendationsItem(page)];
  const content = { sectionListRenderer: { contents: sections } };
  return {
    contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { selected: true, content } }] } },
    header: {
      playlistHeaderRenderer: {
        playlistId: page.listId,
        title: { simpleText: page.title },
        numVideosText: { runs: [{ text: String(page.total) }, { text: ' videos' }] },
        ownerText: { runs: [{ text: page.channel.name }] },
      },
    },
    metadata: { playlistMetadataRenderer: { title: page.title } },
    ...(page.hidden > 0 && { alerts: [hiddenNotice(page.hidden)] }),
  };
}

function hiddenNotice(count: number): JsonObject {
  const text = count === 1 ? '1 unavailable video is hidden' : `${count} unavailable videos are hidden`;
  return { alertWithButtonRenderer: { type: 'INFO', text: { simpleText: text } } };
}

/** What surrounds the list on every later page. */
export function nextPageFrame(page: ListPage, continuationItems: readonly JsonObject[]): JsonObject {
  return {
    contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { selected: true } }] } },
    onResponseReceivedActions: [{ appendContinuationItemsAction: { continuationItems, targetId: page.listId } }],
  };
}

export function emptyListMessage(): JsonObject {
  return { messageRenderer: { text: { simpleText: 'No videos in this playlist yet' } } };
}
