import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const PROJECT = join(import.meta.dirname, '../..');
const named = readFileSync(join(PROJECT, 'SECURITY.md'), 'utf8').matchAll(/`([\w./-]+\.(?:ts|conf))`/g);

it('the threat model names only files that exist', () => {
  const files = [...new Set([...named].map(([, file = '']) => file))];
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((file) => !existsSync(join(PROJECT, file)))).toEqual([]);
});
