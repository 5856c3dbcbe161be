import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { replaceFolder } from './replace-folder.mjs';

let parent: string;
let folder: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'replace-folder-'));
  folder = join(parent, 'dist');
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

/** A build that writes these files. */
const writing =
  (files: Record<string, string>) =>
  (aside: string): void => {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(aside, file)), { recursive: true });
      writeFileSync(join(aside, file), text);
    }
  };
/** A program with a chunk that it imports when it is asked to, as a bundle has them: each build names its own. */
const program = (build: string) => ({
  'main.mjs': `process.on('message', async () => process.send((await import('./chunks/${build}.mjs')).default)); process.send('started');`,
  [`chunks/${build}.mjs`]: `export default '${build}';`,
  'print.mjs': `import build from './chunks/${build}.mjs'; console.log(build);`,
});
const isChunk = (file: string): boolean => file.startsWith('chunks/');

describe('a build', () => {
  it('leaves to a running program the chunks that it has not imported yet', async () => {
    await replaceFolder(folder, writing(program('first')), isChunk);
    const running = fork(join(folder, 'main.mjs'), { execArgv: [] });
    try {
      expect((await once(running, 'message'))[0]).toBe('started');
      await replaceFolder(folder, writing(program('second')), isChunk);
      running.send('import');
      expect((await once(running, 'message'))[0]).toBe('first');
    } finally {
      running.kill();
    }
  });

  it('lets programs start at every moment, from the former build or the new one', async () => {
    await replaceFolder(folder, writing(program('first')), isChunk);
    const start = () => promisify(execFile)(process.execPath, [join(folder, 'print.mjs')]);
    let isBuilding = true;
    const printed = new Set<string>();
    const starts = (async () => {
      do printed.add((await start()).stdout.trim());
      while (isBuilding);
    })();
    for (const build of ['second', 'third', 'fourth'])
      await replaceFolder(
        folder,
        async (aside) => {
          writing(program(build))(aside);
          await start();
        },
        isChunk,
      );
    isBuilding = false;
    await starts;
    expect(['first', 'second', 'third', 'fourth']).toEqual(expect.arrayContaining([...printed]));
    expect((await start()).stdout).toBe('fourth\n');
  });

  it('replaces no file with the same content, and removes those that it has no more', async () => {
    await replaceFolder(
      folder,
      writing({ 'same.js': '1', 'changed.js': '1', 'removed.js': '1', 'modules/asset.sql': '1' }),
    );
    const { ino } = statSync(join(folder, 'same.js'));
    await replaceFolder(folder, writing({ 'same.js': '1', 'changed.js': '2' }), (file) => file.endsWith('.sql'));
    expect(statSync(join(folder, 'same.js')).ino).toBe(ino);
    expect(readFileSync(join(folder, 'changed.js'), 'utf8')).toBe('2');
    expect(existsSync(join(folder, 'removed.js'))).toBe(false);
    expect(existsSync(join(folder, 'modules/asset.sql'))).toBe(true);
  });

  it('that fails changes nothing, and what a killed one has left goes with the next', async () => {
    await replaceFolder(folder, writing({ 'main.js': '1' }));
    const failing = replaceFolder(folder, (aside) => {
      writing({ 'main.js': '2' })(aside);
      throw new Error('It does not compile.');
    });
    await expect(failing).rejects.toThrow('It does not compile.');
    // No process has this ID: it is above the largest of Linux.
    const [abandoned, ofRunning] = [`${folder}.4194305`, `${folder}.${process.ppid}`];
    for (const other of [abandoned, ofRunning]) mkdirSync(other);
    await replaceFolder(folder, writing({ 'main.js': '1' }));
    expect(readdirSync(parent).sort()).toEqual(['dist', `dist.${process.ppid}`]);
    expect(readFileSync(join(folder, 'main.js'), 'utf8')).toBe('1');
  });
});
