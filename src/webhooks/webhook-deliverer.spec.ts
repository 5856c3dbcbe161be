import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ATTEMPTS_MAX, pauseSeconds } from './webhook-deliverer.js';

const DAY_SECONDS = 86_400;
const attempts = Array.from({ length: ATTEMPTS_MAX - 1 }, (_, index) => index + 1);

describe('pauseSeconds', () => {
  it('grows from seconds to hours, over about a day', () => {
    const pauses = attempts.map((attempt) => pauseSeconds(attempt, () => 0.5) ?? 0);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses[0]).toBe(5);
    const total = pauses.reduce((sum, pause) => sum + pause, 0);
    expect(total).toBeGreaterThan(0.9 * DAY_SECONDS);
    expect(total).toBeLessThan(1.1 * DAY_SECONDS);
  });

  it('is at most a tenth shorter or longer', () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...attempts), random, (attempt, value) => {
        const middle = pauseSeconds(attempt, () => 0.5) ?? 0;
        const pause = pauseSeconds(attempt, () => value) ?? 0;
        expect(Math.abs(pause - middle)).toBeLessThanOrEqual(middle * 0.1 + 1e-9);
      }),
    );
  });

  it('ends after the last attempt', () => {
    expect(pauseSeconds(ATTEMPTS_MAX)).toBeUndefined();
  });
});
