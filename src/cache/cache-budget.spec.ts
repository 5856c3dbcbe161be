import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { waitForCache, withCacheBudget } from './cache-budget.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** A reply of a server that takes so long. */
const reply = (ms: number): Promise<string> => new Promise((resolve) => setTimeout(() => resolve('reply'), ms));

/** The result of each wait, and the time that all of them took. */
async function waits(work: () => Promise<unknown>): Promise<[results: unknown, ms: number]> {
  const startedAtMs = performance.now();
  let endedAtMs = 0;
  const results = withCacheBudget({ REDIS_URL: 'redis://cache' }, work).finally(() => (endedAtMs = performance.now()));
  await jest.runAllTimersAsync();
  return [await results, Math.round(endedAtMs - startedAtMs)];
}

describe('the time that a call waits for the shared cache', () => {
  it('is three seconds in total, in which replies of a slow server are used', async () => {
    const oneAfterTheOther = async (): Promise<unknown[]> => {
      const results: unknown[] = [];
      for (let index = 0; index < 10; index++) results.push(await waitForCache(reply(900)));
      return results;
    };
    const late = Array.from({ length: 7 }, () => undefined);
    expect(await waits(oneAfterTheOther)).toEqual([['reply', 'reply', 'reply', ...late], 3_000]);
  });

  it('counts waits at the same time once', async () => {
    const many = (): Promise<unknown> => Promise.all(Array.from({ length: 20 }, () => waitForCache(reply(1_400))));
    const twice = async (): Promise<unknown> => [await many(), await many()];
    const replies = Array.from({ length: 20 }, () => 'reply');
    expect(await waits(twice)).toEqual([[replies, replies], 2_800]);
  });

  it('is longer by what the entries are worth that are read', async () => {
    const read = async (): Promise<unknown> => [
      await waitForCache(reply(9_000), 100),
      await waitForCache(reply(2_900)),
      await waitForCache(reply(900)),
      await waitForCache(reply(20_000), 100),
    ];
    expect(await waits(read)).toEqual([['reply', 'reply', undefined, undefined], 9_000 + 2_900 + 100 + 10_000]);
  });

  it('has no limit outside of a call', async () => {
    const result = waitForCache(reply(60_000));
    await jest.runAllTimersAsync();
    expect(await result).toBe('reply');
  });
});
