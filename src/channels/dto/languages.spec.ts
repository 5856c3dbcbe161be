import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readLanguages } from './languages.js';

describe('the list of languages', () => {
  it.each([
    ['en', ['en']],
    ['en,de', ['en', 'de']],
    ['de,en', ['de', 'en']],
    ['en-GB,EN-gb,en', ['en-gb', 'en']],
    ['zh-Hans-CN', ['zh-hans-cn']],
    ['es-419', ['es-419']],
    ['fil', ['fil']],
  ])('%j is read in its order, each code once and in lower case', (value, expected) => {
    expect(readLanguages(value)).toEqual(expected);
  });

  it.each([
    '',
    ',',
    'en,',
    ',en',
    'en,,de',
    'e',
    'en de',
    ' en',
    'en, de',
    'en_GB',
    'en-',
    '419',
    'en\n',
    'ＥＮ',
    'en-é',
  ])('%j is refused', (value) => {
    expect(readLanguages(value)).toBeNull();
  });

  it.each([[undefined], [null], [['en', 'de']], [{ en: '' }], [5]])('%j, which is no text, is refused', (value) => {
    expect(readLanguages(value)).toBeNull();
  });

  it('takes 20 codes and no more', () => {
    const codes = Array.from({ length: 21 }, (_, index) => `a${String.fromCharCode(97 + index)}`);
    expect(readLanguages(codes.slice(0, 20).join(','))).toHaveLength(20);
    expect(readLanguages(codes.join(','))).toBeNull();
  });

  it('is either refused or harmless in a cache key, and reading it again changes nothing', () => {
    const code = fc.oneof(fc.constantFrom('en', 'EN', 'en-GB', 'de', 'pt-BR', 'x', ':'), fc.string({ maxLength: 6 }));
    fc.assert(
      fc.property(fc.array(code, { minLength: 1, maxLength: 6 }), (codes) => {
        const languages = readLanguages(codes.join(','));
        if (languages === null) return;
        expect(languages.join(',')).toMatch(/^[a-z0-9-]+(,[a-z0-9-]+)*$/);
        expect(new Set(languages).size).toBe(languages.length);
        expect(readLanguages(languages.join(','))).toEqual(languages);
      }),
    );
  });
});
