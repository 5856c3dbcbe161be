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

export const NOTHING_LISTED: ListProgress = { pages: 0, listed: 0, expected: null, unread: false };

/** Pages of all lists have up to 100 entries. */
const PAGE_ENTRIES = 100;
/** Hidden videos count in the header, and not always with a notice. */
const UNLISTED_SHARE = 0.02;

/** The progress after one more page. */
export function withPage(
  { pages, listed, expected, unread }: ListProgress,
  page: Pick<ListPage, 'uploads' | 'stated' | 'unread'>,
): ListProgress {
  return {
    pages: pages + 1,
    listed: listed + page.uploads.length,
    expected: page.stated ?? expected,
    unread: unread || page.unread !== 'nothing',
  };
}

/**
 * Whether a list that ended is complete: when it has as many videos as it states, or states none and everything was read. A
 * few may be missing, but not where lists are known to stop early: after whole pages.
 */
export function isComplete({ listed, expected, unread }: ListProgress): boolean {
  if (expected === null) return !unread;
  const stopsEarly = unread || (listed > 0 && listed % PAGE_ENTRIES === 0);
  return listed >= expected - (stopsEarly ? 0 : Math.max(1, Math.floor(expected * UNLISTED_SHARE)));
}

/** Where a list goes on: how far it was read, and the platform's token of the next page. */
export interface Continuation {
  progress: ListProgress;
  token: string;
}

/** `<number of the next page>:<listed>/<expected>:<the platform's token>`, the second part since November 2026. */
const CONTINUATION = /^(\d{1,6}):(?:(\d{1,7})\/(\d{1,7})?(!)?:)?(.+)$/s;

/** The text by which any process continues a list. */
export function writeContinuation({ pages, listed, expected, unread }: ListProgress, token: string): string {
  return `${pages + 1}:${listed}/${expected ?? ''}${unread ? '!' : ''}:${token}`;
}

/** Null for a text that is no continuation. */
export function readContinuation(text: string): Continuation | null {
  const [, number, listed = '0', expected, unread, token] = CONTINUATION.exec(text) ?? [];
  if (number === undefined || token === undefined) return null;
  const counted = expected === undefined ? null : Number(expected);
  const progress = { pages: Number(number) - 1, listed: Number(listed), expected: counted, unread: unread === '!' };
  return { progress, token };
}
