import { describe, expect, it } from '@jest/globals';
import { facts, table } from './table.js';

describe('a table', () => {
  it('is as wide as its widest cells, counts a character beyond the basic plane once, and shows null as a dash', () => {
    expect(
      table(
        ['ID', 'NAME', 'LIMIT'],
        [
          ['a', '😀😀😀😀😀', null],
          ['long-id', 'x', 5],
        ],
      ),
    ).toBe('ID       NAME   LIMIT\na        😀😀😀😀😀  -\nlong-id  x      5');
  });

  it('without rows is its heading', () => {
    expect(table(['ID', 'NAME'], [])).toBe('ID  NAME');
  });
});

describe('facts', () => {
  it('stand below each other', () => {
    expect(
      facts([
        ['id', 'a'],
        ['limit', 0],
        ['x', null],
      ]),
    ).toBe('id     a\nlimit  0\nx      -');
  });
});
