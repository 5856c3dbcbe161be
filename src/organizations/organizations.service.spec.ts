import { describe, expect, it } from '@jest/globals';
import { InvalidRequestError } from '../domain/errors.js';
import { parseDisplayName } from './organizations.service.js';

describe('a name', () => {
  it.each(['A', '株式会社', 'Crème & Söhne', "O'Neil <x>", '👩‍👩‍👧', '😀'.repeat(100)])(
    'can be %j, and is trimmed',
    (name) => {
      expect(parseDisplayName(`  ${name} \n`)).toBe(name);
    },
  );

  it.each(['', '  ', 'a\nb', 'a\0', '\u001b[31mred', 'a\u0085b', 'a\u2028b', '\ud800', '😀'.repeat(101)])(
    'cannot be %j',
    (name) => {
      expect(() => parseDisplayName(name)).toThrow(InvalidRequestError);
    },
  );
});
