import { type CountedList, reaches } from './counted-list.js';

/** What was read from the platform, with the time. */
export interface Dated {
  /** Of a list the time of its first page, in milliseconds. */
  readAtMs: number;
}

/** How long what was read last serves calls while the platform refuses to be read. */
export const LAST_READ_SECONDS = 86_400;

export function isYoungerThan(seconds: number, { readAtMs }: Dated): boolean {
  // The clock of another process can be ahead.
  return Math.abs(Date.now() - readAtMs) < seconds * 1000;
}

/** The list that was read last, for a call whose list the platform refuses; undefined when it is too old or too short. */
export function lastList<List extends CountedList & Dated>(
  list: List,
  count: number,
): (List & { listedAt: string }) | undefined {
  if (!isYoungerThan(LAST_READ_SECONDS, list) || !reaches(list, count)) return undefined;
  return { ...list, listedAt: new Date(list.readAtMs).toISOString() };
}
