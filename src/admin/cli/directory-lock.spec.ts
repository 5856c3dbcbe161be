import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { temporaryFolder } from '../../../test/process/program.js';
import { withDirectoryLock } from './directory-lock.js';

const folder = temporaryFolder();
afterAll(() => folder.remove());

let directories = 0;
/** A directory with the lock of another process. */
function lockedBy(owner: string): string {
  const directory = join(folder.path, `directory-${(directories += 1)}`);
  mkdirSync(directory);
  writeFileSync(join(directory, '.lock'), owner);
  return directory;
}
const ownerIn = (directory: string) => () => Promise.resolve(readFileSync(join(directory, '.lock'), 'utf8'));

/** This process's parent runs as long as the test. */
const RUNNING = process.ppid;
const NOT_RUNNING = 2 ** 22 + 1;

describe('the lock of a directory', () => {
  it('refuses a second run, also one in a container or on another machine, and leaves the directory to the first', async () => {
    for (const owner of [`${RUNNING} on ${hostname()}`, '1 on elsewhere', '']) {
      const directory = lockedBy(owner);
      await expect(withDirectoryLock(directory, ownerIn(directory))).rejects.toThrow(
        `Another run uses ${directory} (process ${owner}). Wait until it has ended.`,
      );
      expect(readFileSync(join(directory, '.lock'), 'utf8')).toBe(owner);
    }
  });

  it('is taken from a process that was killed, or that has not renewed it', async () => {
    const killed = lockedBy(`${NOT_RUNNING} on ${hostname()}`);
    const old = lockedBy('1 on elsewhere');
    utimesSync(join(old, '.lock'), 0, Date.now() / 1000 - 61);
    for (const directory of [killed, old, lockedBy(`${process.pid} on ${hostname()}`)]) {
      expect(await withDirectoryLock(directory, ownerIn(directory))).toBe(`${process.pid} on ${hostname()}`);
      expect(readdirSync(directory)).toEqual([]);
    }
  });

  it('ends with the work, also when that fails, and leaves no directory that it has created for nothing', async () => {
    const directory = join(folder.path, 'created');
    await expect(withDirectoryLock(directory, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(existsSync(directory)).toBe(false);
    await withDirectoryLock(directory, () => writeFile(join(directory, 'file'), ''));
    expect(readdirSync(directory)).toEqual(['file']);
  });
});
