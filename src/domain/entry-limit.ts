/**
 * Options of an `LRUCache` of at most `max` entries. With its own option `max`, lru-cache allocates arrays of that length at the
 * start, which takes milliseconds.
 */
export function entryLimit(max: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: max, sizeCalculation: () => 1 };
}
