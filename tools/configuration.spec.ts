import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { PAGE, withVariables } from './configuration.js';

it('docs/configuration.md describes the variables as npm run configuration does', async () => {
  const page = await readFile(PAGE, 'utf8');
  expect(withVariables(page)).toBe(page);
});
