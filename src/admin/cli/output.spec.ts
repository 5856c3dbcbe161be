import { describe, expect, it } from '@jest/globals';
import { labelled, table } from './output.js';

describe('a table', () => {
  it('has columns as wide as their widest cell on a terminal, and shows null as a dash', () => {
    expect(
      table(
        ['ID', 'NAME', 'LIMIT'],
        [
          ['a', '😀😀😀😀😀', null],
          ['long-id', 'x', 5],
        ],
      ),
    ).toBe('ID       NAME        LIMIT\na        😀😀😀😀😀  -\nlong-id  x           5');
  });

  it('without rows consists of its heading', () => {
    expect(table(['ID', 'NAME'], [])).toBe('ID  NAME');
  });
});

describe('labelled values', () => {
  it('are aligned', () => {
    expect(
      labelled([
        ['id', 'a'],
        ['limit', 0],
        ['x', null],
      ]),
    ).toBe('id     a\nlimit  0\nx      -');
  });
});
