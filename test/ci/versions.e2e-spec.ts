import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { VERSION } from '../../src/config/package.js';

const PROJECT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');

interface Package {
  version: string;
  dependencies?: Record<string, string>;
}

const packageOf = (folder: string): Package => JSON.parse(read(join(folder, 'package.json'))) as Package;
const { workspaces } = JSON.parse(read('package.json')) as { workspaces: string[] };
const FOLDERS = ['', ...workspaces];

describe('the version of package.json', () => {
  it('is that of each package and of its dependencies on the others, also in the lockfile', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Package> };
    for (const folder of FOLDERS) {
      for (const found of [packageOf(folder), packages[folder]]) {
        const others = Object.entries(found?.dependencies ?? {}).filter(([name]) => name.startsWith('@channel-'));
        expect([folder, found?.version, others]).toEqual([folder, VERSION, others.map(([name]) => [name, VERSION])]);
      }
    }
  });

  it('is that of the Python client', () => {
    expect(/^version = "(.+)"$/m.exec(read('clients/python/pyproject.toml'))?.[1]).toBe(VERSION);
  });

  it('is that of the OpenAPI document', () => {
    const { info } = JSON.parse(read('tools/openapi/openapi.json')) as { info: { version: string } };
    expect(info.version).toBe(VERSION);
  });

  it('is that of the image in the example of an overlay', () => {
    const overlay = parse(read('deploy/kubernetes/overlays/example/kustomization.yaml')) as {
      images: { newTag: string }[];
    };
    expect(overlay.images.map(({ newTag }) => newTag)).toEqual([VERSION]);
  });

  it('has the newest entry of the change log', () => {
    const [newest] = [...read('CHANGELOG.md').matchAll(/^## \[(\d[^\]]*)\] - \d{4}-\d{2}-\d{2}$/gm)];
    expect(newest?.[1]).toBe(VERSION);
  });
});
