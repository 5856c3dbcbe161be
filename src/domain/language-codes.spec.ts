import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { canonicalLanguage } from './language-codes.js';

describe('canonicalLanguage', () => {
  it.each([
    ['iw', 'he'],
    ['IW-il', 'he-il'],
    ['in', 'id'],
    ['tl', 'fil'],
    ['no', 'no'],
    ['nb', 'nb'],
    ['zh-Hant', 'zh-hant'],
    ['en_US', 'en_us'],
    ['x', 'x'],
    ['', ''],
  ])('of %j is %j', (code, canonical) => {
    expect(canonicalLanguage(code)).toBe(canonical);
  });

  it('never throws, and is the same for each case and for itself', () => {
    const codes = fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z]{1,3}(?:-[A-Za-z0-9]{1,8}){0,3}$/));
    fc.assert(
      fc.property(codes, (code) => {
        const canonical = canonicalLanguage(code);
        expect(canonicalLanguage(canonical)).toBe(canonical);
        if (/^[ -~]*$/.test(code)) expect(canonicalLanguage(code.toUpperCase())).toBe(canonical);
      }),
      { numRuns: 500 },
    );
  });
});
