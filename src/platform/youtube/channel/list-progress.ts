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

/** A channel's Shorts as far as they were read, newest first as its uploads are, and where in the uploads they stand. */
export interface ShortsBeside {
  /** The IDs of the last ones that were met: uploads that are new shift the list, whose next page repeats some then. */
  above: readonly string[];
  /** The IDs of those that were not met yet. */
  below: readonly string[];
  /** Where the list of Shorts goes on; null at its end. */
  next: Continuation | null;
  /** At the end: whether these are all. */
  complete: boolean;
  /** False after uploads that can be Shorts of which the list was not read: some of `below` can stand above then. */
  inStep: boolean;
}

/** Where a list goes on: how far it was read, and the platform's token of the next page. */
export interface Continuation {
  progress: ListProgress;
  token: string;
  /** Of uploads: the Shorts that were read by then, if the list of Shorts was read. */
  shorts?: ShortsBeside | undefined;
}

/**
 * `<number of the next page>:<listed>/<expected>:<the platform's token>`; the first part can have Shorts:
 * `;<IDs above>;<IDs below>;<continuation in base64url>`.
 */
const CONTINUATION = /^(\d{1,6})(?:;([\w-]*);([\w-]*);(!)?([\w-]*))?:(\d{1,7})\/(\d{1,7})?(!)?:(.+)$/s;

/** The text by which any process continues a list. */
export function writeContinuation({ progress, token, shorts }: Continuation): string {
  const { pages, listed, expected, unread } = progress;
  const beside = shorts && (shorts.next ?? shorts.complete) ? writeShorts(shorts) : '';
  return `${pages + 1}${beside}:${listed}/${expected ?? ''}${unread ? '!' : ''}:${token}`;
}

function writeShorts({ above, below, next, inStep }: ShortsBeside): string {
  const continuation = next === null ? '' : Buffer.from(writeContinuation(next)).toString('base64url');
  return `;${above.join('')};${below.join('')};${inStep ? '' : '!'}${continuation}`;
}

/** Null for a text that is no continuation. */
export function readContinuation(text: string): Continuation | null {
  const [, number, above, below, outOfStep, encoded, listed, expected, unread, token] = CONTINUATION.exec(text) ?? [];
  if (number === undefined || token === undefined) return null;
  const counted = expected === undefined ? null : Number(expected);
  const progress = { pages: Number(number) - 1, listed: Number(listed), expected: counted, unread: unread === '!' };
  if (encoded === undefined) return { progress, token };
  const next = readContinuation(Buffer.from(encoded, 'base64url').toString());
  const [aboveIds, belowIds] = [above, below].map((ids) => ids?.match(/.{11}/g) ?? []);
  const ids = { above: aboveIds ?? [], below: belowIds ?? [] };
  return { progress, token, shorts: { ...ids, next, complete: encoded === '', inStep: outOfStep === undefined } };
}
