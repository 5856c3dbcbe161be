import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ApiKeyLookup, BatchedLookups } from './api-key-lookup.js';

const INTERVAL_MS = 100;
const hash = (text: string): Buffer => Buffer.from(text);
const id = (text: string): string => hash(text).toString('hex');

/** Queries that the test answers. */
class Queries {
  readonly sent: { hashes: string[]; respond: (valid: string[]) => void; fail: (error: Error) => void }[] = [];

  readonly find = (hashes: readonly Buffer[]): Promise<ReadonlyMap<string, string>> =>
    new Promise((resolve, reject) => {
      this.sent.push({
        hashes: hashes.map(String),
        respond: (valid) => resolve(new Map(valid.map((text) => [id(text), text]))),
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

describe('concurrent lookups', () => {
  it('share one query after the running one, at least an interval after its start', async () => {
    const first = lookups.find(hash('a'));
    const others = ['b', 'c', 'b'].map((text) => lookups.find(hash(text)));
    expect(queries.sent.map(({ hashes }) => hashes)).toEqual([['a']]);
    queries.sent[0]?.respond(['a']);
    expect(await first).toBe('a');
    await jest.advanceTimersByTimeAsync(INTERVAL_MS - 1);
    expect(queries.sent).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(queries.sent[1]?.hashes).toEqual(['b', 'c']);
    queries.sent[1]?.respond(['b']);
    expect(await Promise.all(others)).toEqual(['b', undefined, 'b']);
  });

  it('never join a query that has already started, so that a key revoked meanwhile is refused', async () => {
    const before = lookups.find(hash('a'));
    const after = lookups.find(hash('a'));
    queries.sent[0]?.respond(['a']);
    await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    queries.sent[1]?.respond([]);
    expect([await before, await after]).toEqual(['a', undefined]);
  });

  it('fail with the query that they wait for; later lookups do not', async () => {
    const failing = [lookups.find(hash('a')), lookups.find(hash('b'))].map((found) => found.catch(String));
    queries.sent[0]?.fail(new Error('unavailable'));
    expect(await Promise.all(failing)).toEqual(['Error: unavailable', 'Error: unavailable']);
    const later = lookups.find(hash('b'));
    await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    queries.sent[1]?.respond(['b']);
    expect(await later).toBe('b');
  });

  it('are at most a thousand per query', async () => {
    void lookups.find(hash('first'));
    for (let count = 0; count < 1_500; count += 1) void lookups.find(hash(`key ${count}`));
    for (const wanted of [1, 1_000, 500]) {
      const sent = queries.sent.at(-1);
      expect(sent?.hashes).toHaveLength(wanted);
      sent?.respond([]);
      await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    }
    expect(queries.sent).toHaveLength(3);
  });
});

describe('lookups of keys that were valid before', () => {
  const settled = (): Promise<void> => jest.advanceTimersByTimeAsync(0);

  async function withValid(...texts: string[]): Promise<ApiKeyLookup<string>> {
    const lookup = new ApiKeyLookup(queries.find);
    for (const text of texts) {
      const found = lookup.find(hash(text), false);
      await jest.advanceTimersByTimeAsync(INTERVAL_MS);
      queries.sent.at(-1)?.respond([text]);
      expect(await found).toBe(text);
    }
    queries.sent.length = 0;
    return lookup;
  }

  it('share a query only while another runs, and each has the result of its own key', async () => {
    const lookup = await withValid('a', 'b');
    const first = lookup.find(hash('a'), false);
    await settled();
    const later = Promise.all(['b', 'a', 'b'].map((text) => lookup.find(hash(text), false)));
    expect(queries.sent.map(({ hashes }) => hashes)).toEqual([['a']]);
    queries.sent[0]?.respond(['a']);
    await settled();
    expect(queries.sent[1]?.hashes).toEqual(['b', 'a']);
    queries.sent[1]?.respond(['a', 'b']);
    expect([await first, await later]).toEqual(['a', ['b', 'a', 'b']]);
  });

  it('refuse a key that was revoked while a query for it ran, and batch it from then on', async () => {
    const lookup = await withValid('a');
    const before = lookup.find(hash('a'), false);
    await settled();
    const after = lookup.find(hash('a'), false);
    queries.sent[0]?.respond(['a']);
    expect(await before).toBe('a');
    await settled();
    queries.sent[1]?.respond([]);
    expect(await after).toBeUndefined();
    const batched = [lookup.find(hash('a'), false), lookup.find(hash('c'), false)];
    await settled();
    expect(queries.sent[2]?.hashes).toEqual(['a']);
    queries.sent[2]?.respond([]);
    await jest.advanceTimersByTimeAsync(INTERVAL_MS);
    expect(queries.sent[3]?.hashes).toEqual(['c']);
    queries.sent[3]?.respond([]);
    expect(await Promise.all(batched)).toEqual([undefined, undefined]);
  });
});
