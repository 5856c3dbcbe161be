import { InvalidArgumentError } from 'commander';
import { parseWholeNumber } from '../../config/variables.js';
import type { Page, PageRequest } from '../../organizations/page.js';

const PAGE_SIZE = 500;

/** @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  const number = parseWholeNumber(text);
  if (number === undefined) throw new InvalidArgumentError('It must be a whole number.');
  return number;
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
