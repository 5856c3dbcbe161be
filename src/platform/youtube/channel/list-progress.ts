import type { UploadsListPage } from '../../video-platform.js';
import type { ListPage } from './playlist-page.js';

/** How far a list was read, over its pages: what decides at its end whether it is complete. */
export interface ListProgress {
  pages: number;
  listed: number;
  /** How many videos the list states without those that it hides; null when it does not. */
  expected: number | null;
  /** Whether an entry could not be read: a video, or a continuation. */
  unread: boolean;
}

/** Where a list goes on: how far it was read, and the platform's token of the next page. */
export interface Continuation {
  progress: ListProgress;
  token: string;
}

export const NOTHING_LISTED: ListProgress = { pages: 0, listed: 0, expected: null, unread: false };

/** Far above any channel: a list that is still not at its end repeats itself, and ends there. */
const PAGES_MAX = 5_000;
/** Pages of all lists have up to 100 entries. */
const PAGE_ENTRIES = 100;
/** Hidden videos count in the header, and not always with a notice. */
const UNLISTED_SHARE = 0.02;

/** A page as the caller gets it, after what was read of its list before. */
export function pageAfter(before: ListProgress, page: Omit<ListPage, 'kind' | 'title' | 'shape'>): UploadsListPage {
  const { uploads, next } = page;
  const pages = before.pages + 1;
  const progress: ListProgress = {
    pages,
    listed: before.listed + uploads.length,
    expected: page.stated ?? before.expected,
    unread: before.unread || page.unread !== 'nothing',
  };
  if (next !== null && pages < PAGES_MAX)
    return { uploads, next: writeContinuation({ progress, token: next }), incomplete: false, hidden: null, pages };
  const incomplete = next !== null || !isComplete(progress);
  const isUnread = next !== null || page.unread === 'end';
  const hidden = incomplete && isUnread ? null : Math.max(0, (progress.expected ?? 0) - progress.listed);
  return { uploads, next: null, incomplete, hidden, pages };
}

/** The end of a list whose next page cannot be read. */
export function unreadableAfter({ pages }: ListProgress): UploadsListPage {
  return { uploads: [], next: null, incomplete: true, hidden: null, pages };
}

/**
 * Whether a list that ended is complete: when it has as many videos as it states, or states none and everything was read. A
 * few may be missing, but not where lists are known to stop early: after whole pages.
 */
function isComplete({ listed, expected, unread }: ListProgress): boolean {
  if (expected === null) return !unread;
  const stopsEarly = unread || (listed > 0 && listed % PAGE_ENTRIES === 0);
  return listed >= expected - (stopsEarly ? 0 : Math.max(1, Math.floor(expected * UNLISTED_SHARE)));
}

/**
 * `<number of the next page>:<listed>/<expected>:<the platform's token>`. In jobs of a former version, after the number and a
 * semicolon, there are Shorts that nothing needs any more.
 */
const CONTINUATION = /^(\d{1,6})(?:;[^:]*)?:(\d{1,7})\/(\d{1,7})?(!)?:(.+)$/s;

/** The text by which any process continues a list. */
function writeContinuation({ progress, token }: Continuation): string {
  const { pages, listed, expected, unread } = progress;
  return `${pages + 1}:${listed}/${expected ?? ''}${unread ? '!' : ''}:${token}`;
}

/** Null for a text that is no continuation. */
export function readContinuation(text: string): Continuation | null {
  const [, number, listed, expected, unread, token] = CONTINUATION.exec(text) ?? [];
  if (number === undefined || token === undefined) return null;
  const counted = expected === undefined ? null : Number(expected);
  const progress = { pages: Number(number) - 1, listed: Number(listed), expected: counted, unread: unread === '!' };
  return { progress, token };
}
