import { describe, expect, it } from '@jest/globals';
import { retryDelayMs } from './settlement-retries.js';

describe('the delay before a retry', () => {
  it('doubles from 100 ms up to 5 s, and is at least half of that, so that retries do not pile up', () => {
    const [shortest, longest] = [() => 0, () => 1].map((random) =>
      [1, 2, 3, 4, 5, 6, 7, 50, 2_000].map((attempt) => retryDelayMs(attempt, random)),
    );
    expect(longest).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
    expect(shortest).toEqual(longest?.map((delayMs) => delayMs / 2));
  });
});
