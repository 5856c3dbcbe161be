import { BASE_DATE, type Channel, type Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';

/** How playlist pages are written: the platform changed from `old` to `new` in June 2026. */
export const PLAYLIST_SHAPES = ['old', 'new'] as const;
export type PlaylistShape = (typeof PLAYLIST_SHAPES)[number];

/** A page of a list of uploads, before it is written in either shape. */
export interface ListPage {
  listId: string;
  title: string;
  /** Whose list it is. */
  channel: Channel;
  /** Position of the first video; anything but 0 is written as a continuation. */
  offset: number;
  total: number;
  /** How many deleted and private videos of the playlist are not shown. */
  hidden: number;
  /** Each with its channel. */
  videos: readonly { video: Video; uploader: Channel }[];
  /** Null on the last page. */
  nextToken: string | null;
  /** The token of the recommendations below the list, which is not the token of its next page. */
  recommendationsToken: string;
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

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 24 * HOUR_SECONDS;
/** Relative dates as the platform writes them: whole units, rounded down, weeks only up to a month. */
const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [365 * DAY_SECONDS, 'year'],
  [30 * DAY_SECONDS, 'month'],
  [7 * DAY_SECONDS, 'week'],
  [DAY_SECONDS, 'day'],
  [HOUR_SECONDS, 'hour'],
  [60, 'minute'],
];

/** "4 months ago": of a video of the catalogue relative to its base date and at least an hour, of a new one by the real clock. */
export function ageText({ publishedAt, isNew }: Video): string {
  const [now, leastSeconds] = isNew ? [new Date(), 0] : [BASE_DATE, HOUR_SECONDS];
  const seconds = Math.max(leastSeconds, (now.getTime() - publishedAt.getTime()) / 1_000);
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, 'second'];
  const count = Math.floor(seconds / size);
  return `${count} ${name}${count === 1 ? '' : 's'} ago`;
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact' });

/** "No views", "1 view", "812 views", "45K views", "1.2M views". */
export function viewsText(count: number): string {
  return count === 0 ? 'No views' : count === 1 ? '1 view' : `${COMPACT.format(count)} views`;
}

/** "36:24", "12:00:00". */
export function clockText(durationSeconds: number): string {
  const hours = Math.floor(durationSeconds / 3_600);
  const [minutes, seconds] = [Math.floor(durationSeconds / 60) % 60, durationSeconds % 60];
  const padded = [minutes, seconds].map((part) => String(part).padStart(2, '0')).join(':');
  return hours === 0 ? padded.replace(/^0/, '') : `${hours}:${padded}`;
}
