import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { temporaryFolder } from './process/program.js';
import { startService, type TestService } from './service.js';

const CHROMIUM = 'chromium';
const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const installed = spawnSync(CHROMIUM, ['--version']).status === 0;

jest.setTimeout(60_000);

// Where there is no browser the page cannot be looked at; continuous integration installs one.
(installed ? describe : describe.skip)('the page at /docs', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('shows every operation and a way to authorize, once its scripts have run in a browser', async () => {
    const profile = temporaryFolder();
    try {
      const { stdout: page } = await promisify(execFile)(
        CHROMIUM,
        [
          ...QUIET,
          `--user-data-dir=${profile.path}`,
          '--virtual-time-budget=10000',
          '--dump-dom',
          `${service.url}/docs`,
        ],
        { maxBuffer: 20_000_000 },
      );
      const operations = [...page.matchAll(/data-path="([^"]+)"/g)].map(([, path]) => path);
      const { paths } = (await service.request('GET', '/docs-json')).body as { paths: Record<string, object> };
      const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map(() => path));
      expect(operations.sort()).toEqual(described.sort());
      expect(page).toContain('>Authorize<');
    } finally {
      profile.remove();
    }
  });
});
