import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { BatchedLookups } from './batched-lookups.js';

const INTERVAL_MS = 100;
const hash = (text: string): Buffer => Buffer.from(text);
const id = (text: string): string => hash(text).toString('hex');

/** Queries that are answered by hand. */
class Queries {
  readonly asked: { hashes: string[]; answer: (valid: string[]) => void; fail: (error: Error) => void }[] = [];

  readonly find = (hashes: readonly Buffer[]): Promise<ReadonlyMap<string, string>> =>
    new Promise((resolve, reject) => {
      this.asked.push({
        hashes: hashes.map(String),
        answer: (valid) => resolve(new Map(valid.map((text) => [id(text), text]))),
        fail: reject,
      });
    });
}

let queries: Queries;
let lookups: BatchedLookups<string>;
beforeEach(() => {
  jest.useFakeTimers();
  queries = new Queries();
  lookups = new BatchedLookups(queries.find, INTERVAL_MS);
});
afterEach(() => void jest.useRealTimers());

describe('lookups that come together', () => {
  it('share the next query when one has begun, which is made no earlier than an interval after it', async () => {
    const first = lookups.find(hash('a'));
    const others = ['b', 'c', 'b'].map((text) => lookups.find(hash(text)));
    expect(queries.asked.map(({ hashes }) => hashes)).toEqual([['a']]);
    queries.asked[0]?.answer(['a']);
    expect(await first).toBe('a');
    await jest.advanceTimersByTimeAsync(INTERVAL_MS - 1);
    expect(queries.asked).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(queries.asked[1]?.hashes).toEqual(['b', 'c']);
    queries.asked[1]?.answer(['b']);
    expect(await Promise.all(others)).toEqual(['b', undefined, 'b']);
  });

  it('never join a query that has begun before them, so that what was revoked meanwhile is refused', async () => {
    const before = lookups.find(hash('a'));
    const after = lookups.find(hash('a'));
    queries.asked[0]?.answer(['a']);
    await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    queries.asked[1]?.answer([]);
    expect([await before, await after]).toEqual(['a', undefined]);
  });

  it('fail with the query that they wait for, and those that come later do not', async () => {
    const failing = [lookups.find(hash('a')), lookups.find(hash('b'))].map((found) => found.catch(String));
    queries.asked[0]?.fail(new Error('away'));
    expect(await Promise.all(failing)).toEqual(['Error: away', 'Error: away']);
    const later = lookups.find(hash('b'));
    await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    queries.asked[1]?.answer(['b']);
    expect(await later).toBe('b');
  });

  it('are a thousand in one query at the most', async () => {
    void lookups.find(hash('first'));
    for (let count = 0; count < 1_500; count += 1) void lookups.find(hash(`key ${count}`));
    for (const wanted of [1, 1_000, 500]) {
      const asked = queries.asked.at(-1);
      expect(asked?.hashes).toHaveLength(wanted);
      asked?.answer([]);
      await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    }
    expect(queries.asked).toHaveLength(3);
  });
});
