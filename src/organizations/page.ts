import type { ObjectLiteral, Repository } from 'typeorm';
import { UnknownCursorError } from './organization-errors.js';

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

/**
 * Lists the rows that meet a condition, oldest first. The cursor may be any row of the table: one that has meanwhile been
 * deleted as well. Times are compared in the database, because they are more exact than a `Date`.
 *
 * @throws UnknownCursorError
 */
export async function readPage<T extends { id: string; createdAt: Date }>(
  repository: Repository<T>,
  condition: ObjectLiteral,
  { count, after = null }: PageRequest,
): Promise<Page<T>> {
  const query = repository.createQueryBuilder('item').where(condition);
  if (after !== null) {
    const cursor = repository.createQueryBuilder('item').where({ id: after });
    if (after.includes('\0') || !(await cursor.getExists())) throw new UnknownCursorError(after);
    const position = `SELECT created_at, id FROM ${repository.metadata.tableName} WHERE id = :after`;
    query.andWhere(`(item.createdAt, item.id) > (${position})`, { after });
  }
  query
    .orderBy('item.createdAt')
    .addOrderBy('item.id')
    .limit(count + 1);
  return toPage(await query.getMany(), count);
}
