import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const PROJECT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');

const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
const lowest = engines.node.split(' || ').map((range) => range.replace(/^\^/, ''));
const claimed = lowest.map((release) => Number(release.split('.')[0]));
const image = Number(/^ARG NODE_IMAGE=node:(\d+)\b/m.exec(read('Dockerfile'))?.[1]);

describe('the supported release lines of Node', () => {
  it('in package.json equal those that continuous integration runs, on the lowest release of each', () => {
    const run = execFileSync(process.execPath, ['.ci/node-lines.mjs'], { cwd: PROJECT, encoding: 'utf8' });
    expect(run.trim().split(' ')).toEqual(lowest);
    expect(read('.ci/each-node.sh')).toContain('node .ci/node-lines.mjs');
    expect(read('.ci/run')).toMatch(/^counted \.ci\/each-node\.sh$/m);
  });

  it('include the Node of the image and the Node that runs these tests', () => {
    expect(claimed).toContain(image);
    expect(claimed).toContain(Number(process.versions.node.split('.')[0]));
  });

  it('are the same in the lockfile and in the README', () => {
    const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, { engines?: { node?: string } }> };
    expect(lock.packages['']?.engines?.node).toBe(engines.node);
    const named = /Requires Node ([^:]+) and the npm registry/.exec(read('README.md'))?.[1] ?? '';
    const lines = named.replace(/\([^)]*\)/g, '').match(/\d+/g) ?? [];
    expect(lines.map(Number)).toEqual(claimed);
    const exceptions = [...named.matchAll(/\((\d+\.\d+) or later\)/g)].map(([, release]) => `${release}.0`);
    expect(exceptions).toEqual(lowest.filter((release) => !release.endsWith('.0.0')));
  });
});

describe('the suites that a step of continuous integration or the order of the tests names', () => {
  const files = ['src', 'test'].flatMap((folder) =>
    readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const specs = files.filter((file) => file.endsWith('spec.ts'));

  it.each(['.ci/busy.sh', '.ci/each-node.sh'])('exist: %s', (step) => {
    const patterns = [...read(step).matchAll(/^ {2}'((?:src|test)\/[^']+)'$/gm)].flatMap(([, pattern = '']) => {
      const [whole, choices] = /\(([^)]+)\)/.exec(pattern) ?? [];
      return whole && choices ? choices.split('|').map((choice) => pattern.replace(whole, choice)) : [pattern];
    });
    expect(patterns).not.toEqual([]);
    expect(patterns.filter((pattern) => !specs.some((file) => new RegExp(pattern).test(file)))).toEqual([]);
  });

  it('exist: the longest', () => {
    const [, list = ''] = /LONGEST = new Set\(([^]*?)\.map/.exec(read('test/jest/sequencer.mjs')) ?? [];
    const names = [...list.matchAll(/'([\w/-]+)'/g)].map(([, name]) => `test/${name}.e2e-spec.ts`);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !specs.includes(name))).toEqual([]);
  });
});
