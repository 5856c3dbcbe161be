import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { asArray, asCount, asNumber, asString, at, isObject, textOf } from './response-parsing.js';

describe('at', () => {
  it('follows names and indices to a value', () => {
    expect(at({ a: [{ b: 0 }] }, 'a', 0, 'b')).toBe(0);
  });

  it.each([
    ['a missing name', { a: 1 }, ['b']],
    ['a path through null', { a: null }, ['a', 'b']],
    ['a path through text', { a: 'text' }, ['a', 'length']],
    ['an inherited name', {}, ['constructor', 'name']],
    ['the prototype', JSON.parse('{"a":{}}') as unknown, ['a', '__proto__', 'toString']],
    ['an index past the end', [1], [1]],
  ])('finds nothing at %s', (_, value, path) => {
    expect(at(value, ...path)).toBeUndefined();
  });

  it('follows a very deep value', () => {
    let deep: unknown = 'end';
    for (let depth = 0; depth < 100_000; depth++) deep = { a: deep };
    expect(at(deep, ...new Array<string>(100_000).fill('a'))).toBe('end');
  });
});

describe('the typed readers', () => {
  it('take a number also from a decimal string', () => {
    expect(['12', '1.5', -3, '007'].map(asNumber)).toEqual([12, 1.5, -3, 7]);
    expect(['', ' 1', '1e3', '0x1', 'NaN', Number.NaN, Infinity, null, [1], true].map(asNumber)).toEqual(
      new Array(10).fill(null),
    );
  });

  it('take a count only from a whole number from 0', () => {
    expect(['12', 0, 1.5, -1, 2 ** 60, '1.0'].map(asCount)).toEqual([12, 0, null, null, null, 1]);
  });

  it('take text only when something is in it', () => {
    expect(['a ', ' ', '', 1, null].map(asString)).toEqual(['a ', null, null, null, null]);
  });

  it('read the text of each of the three shapes', () => {
    expect(textOf({ simpleText: 'a' })).toBe('a');
    expect(textOf({ runs: [{ text: 'a' }, {}, { text: 1 }, { text: ' b' }] })).toBe('a b');
    expect(textOf({ content: 'a', styleRuns: [] })).toBe('a');
    expect([{}, { runs: [] }, { simpleText: '' }, 'a', null].map(textOf)).toEqual([null, null, null, null, null]);
  });

  it('never throw', () => {
    fc.assert(
      fc.property(fc.anything(), fc.array(fc.oneof(fc.string(), fc.nat())), (value, path) => {
        const found = at(value, ...path);
        expect(Array.isArray(asArray(found))).toBe(true);
        for (const read of [asString, textOf, asNumber, asCount]) expect(() => read(value)).not.toThrow();
        expect(isObject(value)).toBe(Object(value) === value && typeof value === 'object' && !Array.isArray(value));
      }),
    );
  });
});
