import { describe, expect, it } from '@jest/globals';
import { isNestedDeeper } from './json-body.js';

describe('the depth of a value', () => {
  it.each<[unknown, number]>([
    ['text', 0],
    [null, 0],
    [{}, 1],
    [[[], {}], 2],
    [{ a: 1, b: [{ c: null }] }, 3],
  ])('%j is %i deep', (value, depth) => {
    expect(isNestedDeeper(value, depth)).toBe(false);
    if (depth > 0) expect(isNestedDeeper(value, depth - 1)).toBe(true);
  });

  it('is computed for a value of any depth', () => {
    expect(isNestedDeeper(JSON.parse('['.repeat(50_000) + ']'.repeat(50_000)), 49_999)).toBe(true);
  });
});
