import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

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
