import type { Upload } from '../../../domain/transcript.js';
import {
  asArray,
  asString,
  at,
  isObject,
  textOf,
  alertsOf,
  hasErrorAlert,
  receivedActions,
  UnreadableError,
} from '../response-parsing.js';
import { readListedUpload } from './listed-upload.js';

/**
 * One page of an uploads playlist, newest first, without duplicates within the page. `publishedAt` of each upload is
 * null (the feed contains it) and `kind` is null unless the list states it. `unreadableItems` counts entries without a
 * video ID; `shape` is the form of the entries (`new` since June 2026).
 */
export type UploadsPage =
  | { kind: 'page'; uploads: Upload[]; continuation: string | null; unreadableItems: number; shape: PlaylistShape }
  /** The playlist does not exist: the channel has no uploads, or does not exist. */
  | { kind: 'no-playlist' };

/** What the first page of a playlist states about it; `title` is null where it states none. */
export interface PlaylistHeader {
  title: string | null;
  /** The platform refuses the playlist as private, rather than as one that does not exist. */
  isPrivate: boolean;
}

export interface PlaylistPage {
  header: PlaylistHeader;
  list: UploadsPage;
}

export type PlaylistShape = 'old' | 'new' | 'none';

/**
 * Reads a page of any playlist with its header.
 *
 * @throws UnreadableError as `readUploadsPage` does
 */
export function readPlaylistPage(page: unknown): PlaylistPage {
  const header = at(page, 'header', 'playlistHeaderRenderer', 'title');
  const title = asString(at(page, 'metadata', 'playlistMetadataRenderer', 'title')) ?? textOf(header);
  return { header: { title, isPrivate: hasErrorAlert(page, PRIVATE) }, list: readUploadsPage(page) };
}

/**
 * Reads a first page or a continuation page of a playlist (`UU…`, `UUSH…`).
 *
 * @throws UnreadableError for a page without a list, whose entries are all unreadable, or that is empty without stating
 *   so: none of these is an empty channel
 */
export function readUploadsPage(page: unknown): UploadsPage {
  const continued = continuedItems(page);
  if (continued !== null) return readItems(continued);
  const items = firstItems(page);
  if (items === null) {
    if (hasErrorAlert(page, NO_PLAYLIST)) return { kind: 'no-playlist' };
    throw new UnreadableError('a list of uploads');
  }
  const read = readItems(items);
  if (read.uploads.length === 0 && !isDeclaredEmpty(page, items)) throw new UnreadableError('uploads in the list');
  return read;
}

/** The entries of a first page or of a continuation page; empty when it has no list. */
export function listItems(page: unknown): readonly unknown[] {
  return continuedItems(page) ?? firstItems(page) ?? [];
}

const PRIVATE = /is private/;
// "The playlist does not exist.", "This playlist type is unviewable." (both seen), "This playlist is private."
const NO_PLAYLIST = /does(?:n't| not) exist|unviewable|is private|not available|unavailable/;

/** The items of a continuation page; null for any other page. */
function continuedItems(page: unknown): readonly unknown[] | null {
  let lists: (readonly unknown[])[] | null = null;
  for (const action of receivedActions(page)) {
    const append = at(action, 'appendContinuationItemsAction');
    const reload = at(action, 'reloadContinuationItemsCommand');
    // A separate command reloads the header.
    if (at(reload, 'slot') === 'RELOAD_CONTINUATION_SLOT_HEADER') continue;
    const found = at(append, 'continuationItems') ?? at(reload, 'continuationItems');
    if (Array.isArray(found)) (lists ??= []).push(found as readonly unknown[]);
    // The last page can have no items; an action of another kind does not concern the list.
    else if (isObject(append) && found === undefined) lists ??= [];
  }
  return lists?.flat() ?? null;
}

/** The items of the first section of a first page; later sections contain recommendations. */
function firstItems(page: unknown): readonly unknown[] | null {
  for (const tab of asArray(at(page, 'contents', 'twoColumnBrowseResultsRenderer', 'tabs'))) {
    const content = at(tab, 'tabRenderer', 'content');
    const grid = at(content, 'richGridRenderer', 'contents');
    if (Array.isArray(grid)) return grid as readonly unknown[];
    const sections = asArray(at(content, 'sectionListRenderer', 'contents'));
    const section = sections
      .map((each) => at(each, 'itemSectionRenderer', 'contents'))
      .find((each): each is unknown[] => Array.isArray(each));
    if (section === undefined) continue;
    return section.flatMap((item) => {
      const list = at(item, 'playlistVideoListRenderer', 'contents') ?? at(item, 'richGridRenderer', 'contents');
      return Array.isArray(list) ? (list as readonly unknown[]) : [item];
    });
  }
  return null;
}

function readItems(items: readonly unknown[]): UploadsPage & { kind: 'page' } {
  const uploads = new Map<string, Upload>();
  let continuation: string | null = null;
  let unreadableItems = 0;
  for (const item of items) {
    const token = readToken(item);
    const upload = readListedUpload(item);
    if (token !== null) continuation = token;
    else if (upload === null) unreadableItems += isNotice(item) ? 0 : 1;
    else if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
  }
  if (uploads.size === 0 && unreadableItems > 0) throw new UnreadableError('one readable upload in the list');
  return { kind: 'page', uploads: [...uploads.values()], continuation, unreadableItems, shape: shapeOf(items) };
}

function shapeOf(items: readonly unknown[]): PlaylistShape {
  if (items.some((item) => at(item, 'lockupViewModel') !== undefined)) return 'new';
  return items.some((item) => at(item, 'playlistVideoRenderer') !== undefined) ? 'old' : 'none';
}

/** The token for the next page, which is the last entry of the list. */
function readToken(item: unknown): string | null {
  const command =
    at(item, 'continuationItemRenderer', 'continuationEndpoint') ??
    at(item, 'continuationItemViewModel', 'continuationCommand', 'innertubeCommand');
  const commands = [command, ...asArray(at(command, 'commandExecutorCommand', 'commands'))];
  const tokens = commands.map((each) => asString(at(each, 'continuationCommand', 'token')));
  return tokens.find((token) => token !== null) ?? null;
}

function isNotice(item: unknown): boolean {
  return ['messageRenderer', 'continuationItemRenderer', 'continuationItemViewModel'].some(
    (name) => at(item, name) !== undefined,
  );
}

/** Whether the page states that the list is empty: a message, a count of zero, or a notice about hidden videos. */
function isDeclaredEmpty(page: unknown, items: readonly unknown[]): boolean {
  const header = at(page, 'header', 'playlistHeaderRenderer', 'numVideosText');
  const texts = [
    textOf(header),
    ...items.map((item) => textOf(at(item, 'messageRenderer', 'text'))),
    ...alertsOf(page).map(({ text }) => text),
  ];
  return texts.some(
    (text) =>
      text !== null && /^(?:no|0) videos|no videos in this playlist|unavailable videos? (?:is|are) hidden/i.test(text),
  );
}
