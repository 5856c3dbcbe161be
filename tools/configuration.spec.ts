import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { PAGE, withTables } from './configuration.js';

it('docs/configuration.md has the tables that npm run configuration generates', async () => {
  const page = await readFile(PAGE, 'utf8');
  expect(await withTables(page)).toBe(page);
});
