import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { retryDelayMs } from './retry-delay.js';

describe('the pause before a retry', () => {
  it('doubles from a tenth of a second to five seconds', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 50].map((attempt) => retryDelayMs(attempt, () => 1));
    expect(longest).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  it('is never below half of its longest, so that retries do not become a storm', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_000 }), (attempt) => {
        expect(retryDelayMs(attempt)).toBeGreaterThanOrEqual(retryDelayMs(attempt, () => 1) / 2);
      }),
    );
  });
});
