import { describe, expect, it } from '@jest/globals';
import { asText } from './output.js';

describe('the text of a result', () => {
  it('of objects is a table with columns as wide as their widest cell on a terminal, and null as a dash', () => {
    const rows = [
      { id: 'a', name: '😀😀😀😀😀', monthlyLimit: null },
      { id: 'long-id', name: 'x', monthlyLimit: 5 },
    ];
    expect(asText(rows)).toBe('ID       NAME        MONTHLY LIMIT\na        😀😀😀😀😀  -\nlong-id  x           5');
    expect(asText([])).toBe('none');
  });

  it('of an object is a labelled value per line, with its objects and lists below', () => {
    const result = {
      id: 'a',
      period: { start: '2026-11', exact: true },
      createdAt: new Date(0),
      absent: undefined,
      scopes: ['read', 'write'],
      entries: [{ after: { plan: 'pro' } }],
    };
    expect(asText(result)).toBe(
      [
        'id          a',
        'created at  1970-01-01T00:00:00.000Z',
        'scopes      read, write',
        '',
        'PERIOD',
        'start  2026-11',
        'exact  true',
        '',
        'ENTRIES',
        'AFTER',
        '{"plan":"pro"}',
      ].join('\n'),
    );
  });
});
