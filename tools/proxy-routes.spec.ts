import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { CONFIGURATION, withRoutes } from './proxy-routes.js';

it('deploy/nginx.conf passes on the routes of the service as npm run proxy:routes writes them', async () => {
  const configuration = await readFile(CONFIGURATION, 'utf8');
  expect(await withRoutes(configuration)).toBe(configuration);
});
