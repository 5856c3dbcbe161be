import { InvalidArgumentError } from 'commander';
import type { Page, PageRequest } from '../../organizations/page.js';

const PAGE_SIZE = 500;

/**
 * Parses decimal digits. `Number` would accept "1e3", " 5" and "0x10" as well.
 *
 * @throws InvalidArgumentError
 */
export function parseWholeNumber(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Reads all pages of a list. */
export async function allItems<T>(list: (page: PageRequest) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = [];
  let after: string | null = null;
  do {
    const { items, next }: Page<T> = await list({ count: PAGE_SIZE, after });
    all.push(...items);
    after = next;
  } while (after !== null);
  return all;
}
