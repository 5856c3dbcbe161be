import { mkdir, readFile, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

const LOCK = '.lock';
const RENEWED_EVERY_MS = 10_000;
/** A lock that was not renewed for so long is of a process that has died, on another machine or in a container. */
const STALE_MS = 60_000;

/**
 * Does some work while no other run uses its directory, which is created unless it exists. One that stays empty is removed.
 *
 * @throws Error when another run uses it
 */
export async function withDirectoryLock<T>(directory: string, work: () => Promise<T>): Promise<T> {
  const created = await mkdir(directory, { recursive: true });
  const path = join(directory, LOCK);
  await take(path, directory);
  const renewal = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), RENEWED_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await rm(path, { force: true });
    if (created !== undefined) await rmdir(directory).catch(() => undefined);
  }
}

async function take(path: string, directory: string): Promise<void> {
  const owner = `${process.pid} on ${hostname()}`;
  const take = (): Promise<void> => writeFile(path, owner, { flag: 'wx' });
  try {
    await take();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const other = await readFile(path, 'utf8').catch(() => '');
    if (await isHeld(path, other))
      throw new Error(`Another run uses ${directory} (process ${other}). Wait until it has ended.`, { cause: error });
    await rm(path, { force: true });
    await take();
  }
}

async function isHeld(path: string, owner: string): Promise<boolean> {
  const [, pid, host] = /^(\d+) on (.*)$/.exec(owner) ?? [];
  if (host === hostname() && !isOtherProcess(Number(pid))) return false;
  const { mtimeMs } = await stat(path);
  return Date.now() - mtimeMs < STALE_MS;
}

function isOtherProcess(pid: number): boolean {
  // In containers each run can have the same ID.
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
