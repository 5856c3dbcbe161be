import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../../domain/errors.js';
import { readInput } from '../../http/routes/validation.js';
import { LanguageFields, TranscriptsQueryDto } from './transcripts-query.dto.js';

function read(query: unknown): unknown {
  try {
    return readInput(TranscriptsQueryDto, query, 'text');
  } catch (error) {
    return error;
  }
}

/** The languages of a query or a body; null when they are refused. */
function readLanguages(languages: unknown, form: 'text' | 'json' = 'text'): readonly string[] | null {
  try {
    return readInput(LanguageFields, { languages }, form).languages ?? null;
  } catch (error) {
    if (error instanceof InvalidRequestError) return null;
    throw error;
  }
}

/** A parsed query as Express provides it: an object without a prototype, with single or repeated values. */
function asQuery(entries: readonly (readonly [string, string | string[]])[]): object {
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of entries) query[name] = value;
  return query;
}

describe('the query parameters of the operation', () => {
  it('default to a limit of 25 and no languages', () => {
    expect({ ...(read({}) as object) }).toEqual({ limit: 25, match: 'all', tracks: 'any' });
  });

  it('are parsed as a whole, or refused with only names that were sent', () => {
    const name = fc.constantFrom('limit', 'languages', 'limit[]', 'cursor', '__proto__', 'constructor', 'Limit', '');
    const value = fc.oneof(
      fc.constantFrom('1', '007', '100', '101', '0', '-1', '1.5', '1e1', ' 1', '', 'en', 'en,de', '٣'),
      fc.string({ maxLength: 5 }),
      fc.array(fc.constantFrom('1', 'en'), { maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 4 }), (entries) => {
        const given = new Map(entries);
        const response = read(asQuery(entries));
        const limit = given.get('limit');
        const fine =
          [...given.keys()].every((key) => key === 'limit' || key === 'languages') &&
          (limit === undefined || (typeof limit === 'string' && /^0*[1-9][0-9]*$/.test(limit))) &&
          (!given.has('languages') ||
            /^[a-z]{2,3}(-[a-z0-9]{1,8})*(,[a-z]{2,8})*$/i.test(String(given.get('languages')))) &&
          !Array.isArray(given.get('languages'));
        if (!fine) {
          expect(response).toBeInstanceOf(InvalidRequestError);
          const fields = (response as InvalidRequestError).details.map(({ field }) => field);
          expect(fields.length).toBeGreaterThan(0);
          // Text that cannot be a parameter name is not echoed.
          const named = fields.filter((field) => field !== 'query');
          expect(named.filter((field) => ![...given.keys()].some((key) => key.startsWith(field)))).toEqual([]);
          return;
        }
        expect(response).toBeInstanceOf(TranscriptsQueryDto);
        expect((response as TranscriptsQueryDto).limit).toBe(limit === undefined ? 25 : Math.min(Number(limit), 100));
      }),
    );
  });
});

describe('a list of languages', () => {
  it.each([
    ['en,de', ['en', 'de']],
    ['en-GB,EN-gb,en', ['en-gb', 'en']],
    ['zh-Hans-CN', ['zh-hans-cn']],
    ['es-419', ['es-419']],
    ['de,*', ['de', '*']],
    ['*', ['*']],
  ])('%j is parsed in its order, without duplicates and in lower case', (value, expected) => {
    expect(readLanguages(value)).toEqual(expected);
  });

  it.each(['', ',en', 'en,,de', 'e', 'en de', 'en, de', 'en_GB', 'en-', '419', 'ＥＮ', 'any', 'de,original', '*,de'])(
    '%j is refused',
    (value) => {
      expect(readLanguages(value)).toBeNull();
    },
  );

  it.each([[null], [['en', 'de']], [{ en: '' }], [5]])('%j, which is not a string, is refused', (value) => {
    expect(readLanguages(value)).toBeNull();
  });

  it('has at most 20 codes', () => {
    const codes = Array.from({ length: 21 }, (_, index) => `a${String.fromCharCode(97 + index)}`);
    expect(readLanguages(codes.slice(0, 20).join(','))).toHaveLength(20);
    expect(readLanguages(codes.join(','))).toBeNull();
  });

  it('is either refused or safe in a cache key, and parsing it again changes nothing', () => {
    const code = fc.oneof(fc.constantFrom('en', 'EN', 'en-GB', 'de', 'pt-BR', 'x', ':'), fc.string({ maxLength: 6 }));
    fc.assert(
      fc.property(fc.array(code, { minLength: 1, maxLength: 6 }), (codes) => {
        const languages = readLanguages(codes.join(','));
        if (languages === null) return;
        expect(languages.join(',')).toMatch(/^(?:\*|[a-z0-9-]+(,[a-z0-9-]+)*(,\*)?)$/);
        expect(new Set(languages).size).toBe(languages.length);
        expect(readLanguages(languages.join(','))).toEqual(languages);
      }),
    );
  });
});

describe('publishedAfter', () => {
  const given = (publishedAfter: string) => {
    const response = read({ publishedAfter });
    return response instanceof InvalidRequestError
      ? response.details[0]?.message
      : (response as TranscriptsQueryDto).publishedAfter;
  };

  it.each([
    ['2026-09-01', '2026-09-01T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2026-09-01T09:30:00+02:00', '2026-09-01T07:30:00.000Z'],
    ['2026-09-01T07:30:00.5Z', '2026-09-01T07:30:00.500Z'],
  ])('%s is %s', (text, time) => {
    expect(given(text)).toBe(time);
    // What is stored is read again.
    expect(given(time)).toBe(time);
  });

  it.each([
    ...['2026-02-30', '2025-02-29', '2026-13-01', '2026-9-1', 'yesterday', '', '2026', '1788220800'],
    ...['2026-09-01T09:30:00', '2026-09-01T25:00:00Z', '2026-09-01T09:30:00 02:00', '2026-02-30T00:00:00Z'],
    ...['0000-01-01T00:00:00+05:00', '9999-12-31T23:59:59-05:00', '+010000-01-01T00:00:00Z'],
  ])('%j is refused', (text) => {
    expect(given(text)).toBe(
      'publishedAfter must be a date that exists, such as 2026-09-01, or a time with its zone, such as 2026-09-01T07:30:00Z or 2026-09-01T09:30:00%2B02:00.',
    );
  });
});
