import type { Upload } from '../../../domain/transcript.js';
import {
  alertsOf,
  asArray,
  asCount,
  asString,
  at,
  hasErrorAlert,
  IncompletePageError,
  isObject,
  receivedActions,
  textOf,
  UnreadableError,
} from '../response-parsing.js';
import { isListedList, readListedUpload } from './listed-upload.js';

/**
 * A page of a list. Each upload is there once, in the order of the list; its `publishedAt` is null (the feed contains it) and
 * its `kind` is null unless the list states it.
 */
export interface ListPage {
  kind: 'page';
  title: string | null;
  uploads: Upload[];
  /** The token of the next page. */
  next: string | null;
  /** How many videos the header of a first page states, without those that the page says are hidden; null when it does not. */
  stated: number | null;
  /** What could not be read: nothing, an entry, or the last entry, where a list continues. */
  unread: 'nothing' | 'entry' | 'end';
  /** The form of the entries (`new` since June 2026). */
  shape: 'old' | 'new' | 'none';
}

/** `none`: there is no such playlist, or it is private. That of a channel's uploads is missing when there are none. */
export type ParsedListPage = ListPage | { kind: 'none'; state: 'private' | 'unknown' };

const PRIVATE = /is private/;
// "The playlist does not exist.", "This playlist type is unviewable." (both seen), "This playlist is private."
const NO_PLAYLIST = /does(?:n't| not) exist|unviewable|not available|unavailable/;

/**
 * Reads a first page or a continuation page of any playlist (`PL…`, `UU…`, `UUSH…`).
 *
 * @throws IncompletePageError for a page without a list, or that is empty without stating so: neither is an empty channel
 * @throws UnreadableError for a page whose entries are all unreadable
 */
export function readPlaylistPage(page: unknown): ParsedListPage {
  const continued = continuedItems(page);
  const items = continued ?? firstItems(page);
  if (items === null) {
    if (hasErrorAlert(page, PRIVATE)) return { kind: 'none', state: 'private' };
    if (hasErrorAlert(page, NO_PLAYLIST)) return { kind: 'none', state: 'unknown' };
    throw new IncompletePageError('a list of uploads');
  }
  const uploads = new Map<string, Upload>();
  let next: string | null = null;
  let unread: ListPage['unread'] = 'nothing';
  for (const item of items) {
    const token = readToken(item);
    const upload = readListedUpload(item);
    if (token !== null) next = token;
    else if (upload === null) unread = isNoUpload(item) ? unread : item === items.at(-1) ? 'end' : 'entry';
    else if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
  }
  if (uploads.size === 0) {
    if (unread !== 'nothing') throw new UnreadableError('one readable upload in the list');
    // The last continuation page can be empty.
    if (!continued && next === null && !isDeclaredEmpty(page, items))
      throw new IncompletePageError('uploads in the list');
  }
  const header = at(page, 'header', 'playlistHeaderRenderer', 'title');
  const title = asString(at(page, 'metadata', 'playlistMetadataRenderer', 'title')) ?? textOf(header);
  const has = (name: string) => items.some((item) => at(item, name) !== undefined);
  const shape = has('lockupViewModel') ? 'new' : has('playlistVideoRenderer') ? 'old' : 'none';
  return { kind: 'page', title, uploads: [...uploads.values()], next, stated: statedCount(page), unread, shape };
}

/** Whether a page is no mere continuation, as the platform sends now and then, and also where it hides a page of videos. */
export function hasContents(page: ParsedListPage): boolean {
  return page.kind === 'none' || page.uploads.length > 0 || page.next === null;
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

/**
 * The items of the list of a first page. A section that is not empty and has nothing of a list is a notice and stands before
 * it; later lists, in the same section or others, contain recommendations.
 */
function firstItems(page: unknown): readonly unknown[] | null {
  for (const tab of asArray(at(page, 'contents', 'twoColumnBrowseResultsRenderer', 'tabs'))) {
    const content = at(tab, 'tabRenderer', 'content');
    const sections = asArray(at(content, 'sectionListRenderer', 'contents'));
    const lists = [
      at(content, 'richGridRenderer', 'contents'),
      ...sections.map((each) => at(each, 'itemSectionRenderer', 'contents')),
    ].flatMap((each) => (Array.isArray(each) ? listsIn(each) : []));
    const list = lists.find((items) => items.length === 0 || items.some(isOfList)) ?? lists[0];
    if (list !== undefined) return list;
  }
  return null;
}

/** The lists in a section, of which the later ones are recommendations; without any, the section itself is one. */
function listsIn(section: readonly unknown[]): (readonly unknown[])[] {
  const lists = section.flatMap((item) => {
    const list = at(item, 'playlistVideoListRenderer', 'contents') ?? at(item, 'richGridRenderer', 'contents');
    return Array.isArray(list) ? [asArray(list)] : [];
  });
  return lists.length === 0 ? [section] : lists;
}

function isOfList(item: unknown): boolean {
  return readListedUpload(item) !== null || readToken(item) !== null || isNoUpload(item);
}

/** The token for the next page, which is the last entry of the list. */
function readToken(item: unknown): string | null {
  const command =
    at(item, 'continuationItemRenderer', 'continuationEndpoint') ??
    at(item, 'continuationItemRenderer', 'button', 'buttonRenderer', 'command') ??
    at(item, 'continuationItemViewModel', 'continuationCommand', 'innertubeCommand');
  const commands = [command, ...asArray(at(command, 'commandExecutorCommand', 'commands'))];
  const tokens = commands.map((each) => asString(at(each, 'continuationCommand', 'token')));
  return tokens.find((token) => token !== null) ?? null;
}

/** Whether an item is known to be neither an upload nor a continuation. */
function isNoUpload(item: unknown): boolean {
  return at(item, 'messageRenderer') !== undefined || isListedList(item);
}

/** The places of the number of videos: the header in both shapes, and the sidebar. */
function countTexts(page: unknown): readonly (string | null)[] {
  const rows = at(page, 'header', 'pageHeaderRenderer', 'content', 'pageHeaderViewModel', 'metadata');
  const parts = asArray(at(rows, 'contentMetadataViewModel', 'metadataRows')).flatMap((row) =>
    asArray(at(row, 'metadataParts')).map((part) => at(part, 'text')),
  );
  const stats = asArray(at(page, 'sidebar', 'playlistSidebarRenderer', 'items')).flatMap((item) =>
    asArray(at(item, 'playlistSidebarPrimaryInfoRenderer', 'stats')),
  );
  return [at(page, 'header', 'playlistHeaderRenderer', 'numVideosText'), ...parts, ...stats].map(textOf);
}

/** A notice without a number stands for this share of the videos. */
const HIDDEN_SHARE = 0.1;

function statedCount(page: unknown): number | null {
  const [counted] = countTexts(page).flatMap(
    (text) => /^(\d{1,3}(?:,\d{3})+|\d{1,7}|no) videos?$/i.exec(text ?? '') ?? [],
  );
  if (counted === undefined) return null;
  const videos = countIn(counted) ?? 0;
  const notice = alertsOf(page).find(({ text }) => HIDDEN.test(text ?? ''))?.text ?? null;
  const hidden = notice === null ? 0 : (countIn(notice) ?? Math.ceil(videos * HIDDEN_SHARE));
  return Math.max(0, videos - hidden);
}

function countIn(text: string): number | null {
  return asCount(/^[\d,]+/.exec(text)?.[0].replaceAll(',', ''));
}

const HIDDEN = /unavailable videos? (?:is|are) hidden/i;

/** Whether the page states that the list is empty: a message, a count of zero, or a notice about hidden videos. */
function isDeclaredEmpty(page: unknown, items: readonly unknown[]): boolean {
  const texts = [
    ...countTexts(page),
    ...items.map((item) => textOf(at(item, 'messageRenderer', 'text'))),
    ...alertsOf(page).map(({ text }) => text),
  ];
  return texts.some(
    (text) => /^(?:no|0) videos|no videos in this playlist/i.test(text ?? '') || HIDDEN.test(text ?? ''),
  );
}
