import type { ObjectLiteral, Repository } from 'typeorm';
import { toPage, UnknownCursorError, type Page, type PageRequest } from '../domain/page.js';

/**
 * Lists the rows that meet a condition, oldest first. The cursor may be any row of the table: one that has meanwhile been
 * deleted as well. Times are compared in the database, because they are more exact than a `Date`.
 *
 * @throws UnknownCursorError
 */
export async function readPage<T extends { id: string; createdAt: Date }>(
  repository: Repository<T>,
  condition: ObjectLiteral,
  { limit, after = null }: PageRequest,
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
    .limit(limit + 1);
  return toPage(await query.getMany(), limit);
}
