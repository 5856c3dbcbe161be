import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { temporaryFolder } from '../process/program.js';

const PROJECT = join(import.meta.dirname, '../..');
const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies'] as const;
const EXACT = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;

type Manifest = Partial<Record<(typeof KINDS)[number], Record<string, string>>>;

const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
const namedIn = (manifest: Manifest | undefined): [string, string][] =>
  KINDS.flatMap((kind) => Object.entries(manifest?.[kind] ?? {}));

/** Every package.json of the project's own, at most two folders deep. */
function manifestsIn(folder: string, depth: number): string[] {
  const entries = readdirSync(join(PROJECT, folder), { withFileTypes: true });
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return entry.name === 'package.json' ? [path] : [];
    const skipped = depth === 0 || entry.name.startsWith('.') || /^(?:node_modules|dist.*|data)$/.test(entry.name);
    return skipped ? [] : manifestsIn(path, depth - 1);
  });
}

describe('the dependencies', () => {
  it.each(manifestsIn('', 2))('of %s are pinned to exact versions', (file) => {
    const ranges = namedIn(JSON.parse(read(file)) as Manifest).filter(([, version]) => !EXACT.test(version));
    expect(ranges).toEqual([]);
  });

  it('of the service match the versions in the lockfile', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, Manifest & { version: string }>;
    };
    const named = namedIn(JSON.parse(read('package.json')) as Manifest);
    expect(named.length).toBeGreaterThan(40);
    expect(namedIn(packages['']).sort()).toEqual([...named].sort());
    expect(named.filter(([name, version]) => packages[`node_modules/${name}`]?.version !== version)).toEqual([]);
  });

  it('run no install scripts', () => {
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m);
  });
});

describe('the check of container images', () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());
  const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

  /** Runs the check where the project's two files are, with what `.env` contains. */
  function check(env: string, nodeImage?: string): { status: number | null; warnings: string[]; last: string } {
    const dockerfile = read('Dockerfile');
    writeFileSync(join(folder.path, 'docker-compose.yml'), read('docker-compose.yml'));
    writeFileSync(
      join(folder.path, 'Dockerfile'),
      nodeImage === undefined ? dockerfile : dockerfile.replace(/^ARG NODE_IMAGE=.*$/m, `ARG NODE_IMAGE=${nodeImage}`),
    );
    writeFileSync(join(folder.path, '.env'), env);
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(PROJECT, '.ci/images.mjs')], {
      ...{ cwd: folder.path, encoding: 'utf8' },
    });
    return { status, warnings: [...stderr.matchAll(/^warning: (\S+)/gm)].map(([, image = '']) => image), last: stdout };
  }

  it('warns about each image that is named by a tag, and passes', () => {
    const { status, warnings, last } = check('');
    expect(warnings.map((image) => image.split(':')[0])).toEqual(['nginx', 'postgres', 'valkey/valkey', 'node']);
    expect([status, last]).toEqual([0, '0 of 4 images are named by digest.\n']);
  });

  it('passes without a warning for images named by digest', () => {
    const env = ['nginx:1', 'postgres:1', 'valkey/valkey:1']
      .map((image, index) => `${['NGINX', 'POSTGRES', 'VALKEY'][index]}_IMAGE=${image}@${digest}\n`)
      .join('');
    expect(check(env, `node:26-trixie-slim@${digest}`)).toEqual({
      ...{ status: 0, warnings: [], last: '4 of 4 images are named by digest.\n' },
    });
    expect(check(env.replace(digest, 'sha256:short')).warnings).toHaveLength(2);
  });
});
