/** Which part of a list to return. */
export interface PageRequest {
  count: number;
  /** The `next` of the previous page; none for the first page. */
  after?: string | null | undefined;
}

/** A part of a list, oldest item first. */
export interface Page<T> {
  items: T[];
  /** The `after` of the next page; null on the last page. */
  next: string | null;
}

/** @param rows up to `count + 1` rows, which show whether another page follows */
export function toPage<T extends { id: string }>(rows: readonly T[], count: number): Page<T> {
  const items = rows.slice(0, count);
  return { items, next: rows.length > count ? (items.at(-1)?.id ?? null) : null };
}
