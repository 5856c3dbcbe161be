import { z } from 'zod';
import { quoted } from './api-key-text.js';
import { InvalidRequestError } from './errors.js';
import { textOrNull } from './schema-fields.js';

export interface PageRequest {
  limit: number;
  /** The `next` of the previous page; none for the first page. */
  after?: string | null | undefined;
}

/** What the pages of all lists have as responses; the schema of a page adds its entries. */
export const page = z.object({ next: textOrNull('The value of `after` for the next page. Null on the last page.') });

export interface Page<T> {
  items: T[];
  /** The `after` of the next page; null on the last page. */
  next: string | null;
}

/** The cursor of a page is not an item of the list. */
export class UnknownCursorError extends InvalidRequestError {
  constructor(after: string) {
    super([
      { field: 'after', message: `after must be the "next" value of a page of this list, not ${quoted(after)}.` },
    ]);
  }
}

/**
 * @param rows up to `limit + 1` rows, which show whether another page follows
 * @param cursorOf by default the ID of the row
 */
export function toPage<T extends { id: string }>(
  rows: readonly T[],
  limit: number,
  cursorOf: (row: T) => string = ({ id }) => id,
): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: last && rows.length > limit ? cursorOf(last) : null };
}
