import { describe, expect, it } from '@jest/globals';
import { parseName } from './input-rules.js';
import { InvalidNameError } from './organization-errors.js';

describe('a name', () => {
  it.each(['A', '株式会社', 'Crème & Söhne', "O'Neil <x>", '👩‍👩‍👧', '😀'.repeat(100)])('can be %j', (name) => {
    expect(parseName(name)).toBe(name);
  });

  it('is trimmed', () => {
    expect(parseName('  Acme \n')).toBe('Acme');
  });

  it.each(['', '  ', 'a\nb', 'a\0', '\u001b[31mred', 'a\u0085b', 'a\u2028b', '\ud800', '😀'.repeat(101)])(
    'cannot be %j',
    (name) => {
      expect(() => parseName(name)).toThrow(InvalidNameError);
    },
  );
});
