import { describe, expect, it } from '@jest/globals';
import { superLinearGrowth } from './linear-time.js';

const SIZE_MAX = 64 * 1024;

describe('measureGrowth', () => {
  it.each([
    ['cheap', 1],
    ['expensive', 200],
  ])('accepts linear work that is %s', (_case, stepsPerUnit) => {
    expect(superLinearGrowth((size) => () => countSteps(size * stepsPerUnit), SIZE_MAX)).toBeUndefined();
  });

  it('reports quadratic work, also where its first measurements are short', () => {
    const growth = superLinearGrowth((size) => () => countSteps((size / 4) ** 2), SIZE_MAX);
    expect(growth).toMatch(/ ms for \d+, more than /);
  });
});

function countSteps(steps: number): number {
  let sum = 0;
  for (let step = 0; step < steps; step++) sum = (sum * 31 + step) | 0;
  return sum;
}
