import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryFolder } from '../process/program.js';

const PROJECT = join(import.meta.dirname, '../..');
/** An advisory on a package, in the form in which a registry gives it. */
const advisory = (severity: string): object => ({
  id: 1,
  url: 'https://example.com/advisory',
  title: 'Made for this test',
  severity,
  vulnerable_versions: '*',
  cwe: [],
  cvss: { score: 0, vectorString: null },
});

const ONE_VERSION = {
  name: 'undici',
  'dist-tags': { latest: '7.0.0' },
  versions: { '7.0.0': { name: 'undici', version: '7.0.0' } },
};

/** A project with one dependency. npm audits it in half the time that this project takes. */
const smallProject = temporaryFolder();

beforeAll(() => {
  const manifest = { name: 'small', version: '1.0.0', dependencies: { undici: '7.0.0' } };
  const undici = { version: '7.0.0', resolved: 'https://example.com/undici.tgz', integrity: 'sha512-AA==' };
  const lock = { ...manifest, lockfileVersion: 3, packages: { '': manifest, 'node_modules/undici': undici } };
  writeFileSync(join(smallProject.path, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(smallProject.path, 'package-lock.json'), JSON.stringify(lock));
});
afterAll(() => smallProject.remove());

/** Runs the check against a registry that responds with a status and advisories; returns the requested packages too. */
async function audit(
  project: string,
  status: number,
  advisories: object,
  ...flags: string[]
): Promise<{ code: number; output: string; requested: string[] }> {
  const requestedPackages: string[] = [];
  const registry = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
      if (text !== '') requestedPackages.push(...Object.keys(JSON.parse(text) as object));
      // For a package with an advisory npm requests its versions too.
      const answer = request.method === 'GET' ? ONE_VERSION : advisories;
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
  const { port } = registry.address() as AddressInfo;
  const { PATH = '', HOME = '' } = process.env;
  // npm caches advisories; each test needs its own.
  const cache = temporaryFolder();
  const env = { PATH, HOME, npm_config_registry: `http://127.0.0.1:${port}/`, npm_config_cache: cache.path };
  const end = await new Promise<{ code: number; output: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      [join(PROJECT, '.ci/audit.mjs'), ...flags],
      { cwd: project, env },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, output: stderr + stdout }),
    );
  });
  cache.remove();
  await new Promise((resolve) => registry.close(resolve));
  return { ...end, requested: requestedPackages };
}

describe('the audit of the production dependencies', () => {
  it('passes when there are no advisories, and does not check development dependencies', async () => {
    const { code, output, requested } = await audit(PROJECT, 200, {});
    expect([code, output.trim().split('\n')]).toEqual([0, [expect.stringMatching(/^clean: .* 0 high, 0 critical/)]]);
    expect(requested).toEqual(expect.arrayContaining(['express', 'pg', 'undici']));
    expect(requested).not.toContain('jest');
  });

  it.each([
    ['critical', 1, /^undici \*: critical\nvulnerable: /],
    ['high', 1, /^undici \*: high\nvulnerable: /],
    ['moderate', 0, /^clean: /],
  ])('ends for a %s advisory with %i', async (severity, expected, words) => {
    const { code, output } = await audit(smallProject.path, 200, { undici: [advisory(severity)] });
    expect(code).toBe(expected);
    expect(output).toMatch(words);
  });

  it('passes when the registry is unavailable, and reports in one line that nothing was checked', async () => {
    const { code, output } = await audit(smallProject.path, 405, {});
    expect([code, output.trim().split('\n')]).toEqual([0, [expect.stringMatching(/^not checked: .*\(405\)/)]]);
  });

  it('fails for a release when nothing was checked', async () => {
    expect(await audit(smallProject.path, 405, {}, '--required')).toMatchObject({ code: 2 });
  });
});
