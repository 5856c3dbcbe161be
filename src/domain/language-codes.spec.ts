import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readElement, areLanguages, canonicalLanguage, LANGUAGE_MATCHES, languageChoice } from './language-codes.js';

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

  it('is the same for each case of every code of two letters', () => {
    const letters = [...'abcdefghijklmnopqrstuvwxyz'];
    const codes = letters.flatMap((first) => letters.map((second) => first + second));
    const differing = codes.filter((code) => canonicalLanguage(code) !== canonicalLanguage(code.toUpperCase()));
    expect(differing).toEqual([]);
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

describe('a list of languages', () => {
  it.each([[['de', 'en-GB']], [['iw', 'es-419', '*']], [['*']], [['mni-Mtei']], [['en-US-x-auto']]])(
    'is accepted: %j',
    (codes) => expect(areLanguages(codes)).toBe(true),
  );

  it.each([
    [['original']],
    [['any']],
    [['ALL']],
    [['*', 'de']],
    [['de', '**']],
    [['auto']],
    [['']],
    [['en_US']],
    [['de|en']],
  ])('is refused: %j', (codes) => expect(areLanguages(codes)).toBe(false));

  it('is chosen from as a whole, or for its first', () => {
    expect(languageChoice({ languages: ['de', 'en', '*'] })).toEqual(['de', 'en', '*']);
    expect(languageChoice({ languages: ['de', 'en', '*'], match: 'first' }).map(readElement)).toEqual([
      { tracks: 'any', codes: ['de', 'en', '*'] },
    ]);
    // What is the same is cached under the same key.
    expect(languageChoice({ languages: ['de'], match: 'first' })).toEqual(languageChoice({ languages: ['de'] }));
    for (const match of LANGUAGE_MATCHES)
      expect(languageChoice({ languages: ['*'], match })).toEqual(languageChoice({ match }));
  });

  it('states the origin of the tracks with each element, and without one is as before there was a choice', () => {
    const asked = { languages: ['de', 'en'] };
    expect(languageChoice({ ...asked, tracks: 'any' })).toEqual(['de', 'en']);
    expect(languageChoice({ ...asked, tracks: 'manual' }).map(readElement)).toEqual([
      { tracks: 'manual', codes: ['de'] },
      { tracks: 'manual', codes: ['en'] },
    ]);
    for (const languages of [[], ['*']])
      expect(languageChoice({ languages, tracks: 'generated' }).map(readElement)).toEqual([
        { tracks: 'generated', codes: ['*'] },
      ]);
  });
});
