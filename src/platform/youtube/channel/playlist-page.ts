import type { Upload } from '../../../domain/transcript.js';
import {
  alertsOf,
  asArray,
  asString,
  at,
  hasErrorAlert,
  isObject,
  receivedActions,
  textOf,
  UnreadableError,
} from '../response-parsing.js';
import { readListedUpload } from './listed-upload.js';

export type PlaylistPage =
  /**
   * In the order of the list, each upload once. `publishedAt` of each is null (the feed contains it) and `kind` is null unless
   * the list states it. `next` is the token of the next page; `shape` is the form of the entries (`new` since June 2026).
   */
  | { kind: 'page'; title: string | null; uploads: Upload[]; next: string | null; shape: 'old' | 'new' | 'none' }
  /** There is no such playlist, or it is private. That of a channel's uploads is missing when there are none. */
  | { kind: 'none'; state: 'private' | 'unknown' };

const PRIVATE = /is private/;
// "The playlist does not exist.", "This playlist type is unviewable." (both seen), "This playlist is private."
const NO_PLAYLIST = /does(?:n't| not) exist|unviewable|not available|unavailable/;

/**
 * Reads a first page or a continuation page of any playlist (`PL…`, `UU…`, `UUSH…`).
 *
 * @throws UnreadableError for a page without a list, whose entries are all unreadable, or that is empty without stating
 *   so: none of these is an empty channel
 */
export function readPlaylistPage(page: unknown): PlaylistPage {
  const continued = continuedItems(page);
  const items = continued ?? firstItems(page);
  if (items === null) {
    if (hasErrorAlert(page, PRIVATE)) return { kind: 'none', state: 'private' };
    if (hasErrorAlert(page, NO_PLAYLIST)) return { kind: 'none', state: 'unknown' };
    throw new UnreadableError('a list of uploads');
  }
  const uploads = new Map<string, Upload>();
  let next: string | null = null;
  let hasUnreadable = false;
  for (const item of items) {
    const token = readToken(item);
    const upload = readListedUpload(item);
    if (token !== null) next = token;
    else if (upload === null) hasUnreadable ||= !isNotice(item);
    else if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
  }
  if (uploads.size === 0) {
    if (hasUnreadable) throw new UnreadableError('one readable upload in the list');
    // The last continuation page can be empty.
    if (!continued && !isDeclaredEmpty(page, items)) throw new UnreadableError('uploads in the list');
  }
  const header = at(page, 'header', 'playlistHeaderRenderer', 'title');
  const title = asString(at(page, 'metadata', 'playlistMetadataRenderer', 'title')) ?? textOf(header);
  const has = (name: string) => items.some((item) => at(item, name) !== undefined);
  const shape = has('lockupViewModel') ? 'new' : has('playlistVideoRenderer') ? 'old' : 'none';
  return { kind: 'page', title, uploads: [...uploads.values()], next, shape };
}

/** The items of a continuation page; null for any other page. */
function continuedItems(page: unknown): readonly unknown[] | null {
  const lists = receivedActions(page).flatMap((action) => {
    const append = at(action, 'appendContinuationItemsAction');
    const reload = at(action, 'reloadContinuationItemsCommand');
    // A separate command reloads the header.
    if (at(reload, 'slot') === 'RELOAD_CONTINUATION_SLOT_HEADER') return [];
    const items = at(append ?? reload, 'continuationItems');
    // The last page can have no items; an action of another kind does not concern the list.
    return Array.isArray(items) || (isObject(append) && items === undefined) ? [asArray(items)] : [];
  });
  return lists.length === 0 ? null : lists.flat();
}

/** The items of the first section of a first page; later sections contain recommendations. */
function firstItems(page: unknown): readonly unknown[] | null {
  for (const tab of asArray(at(page, 'contents', 'twoColumnBrowseResultsRenderer', 'tabs'))) {
    const content = at(tab, 'tabRenderer', 'content');
    const sections = asArray(at(content, 'sectionListRenderer', 'contents'));
    const section = [
      at(content, 'richGridRenderer', 'contents'),
      ...sections.map((each) => at(each, 'itemSectionRenderer', 'contents')),
    ].find((each) => Array.isArray(each));
    if (section === undefined) continue;
    return asArray(section).flatMap((item) => {
      const list = at(item, 'playlistVideoListRenderer', 'contents') ?? at(item, 'richGridRenderer', 'contents');
      return Array.isArray(list) ? asArray(list) : [item];
    });
  }
  return null;
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
  const texts = [
    textOf(at(page, 'header', 'playlistHeaderRenderer', 'numVideosText')),
    ...items.map((item) => textOf(at(item, 'messageRenderer', 'text'))),
    ...alertsOf(page).map(({ text }) => text),
  ];
  return texts.some((text) =>
    /^(?:no|0) videos|no videos in this playlist|unavailable videos? (?:is|are) hidden/i.test(text ?? ''),
  );
}
