import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';

/**
 * Builds a folder anew while programs of it run and start: into another folder beside it, whose files then replace those of the former
 * build one by one. A path of both builds exists at every moment, with all of its former or all of its new content.
 *
 * @param folder the absolute path
 * @param build writes everything into the folder whose path it is given
 * @param keeps whether a file stays that the new build does not have, by its path within the folder
 */
export async function replaceFolder(folder, build, keeps = () => false) {
  await removeAbandoned(folder);
  const aside = `${folder}.${process.pid}`;
  await mkdir(aside);
  try {
    await build(aside);
    const built = await filesOf(aside);
    for (const file of built) await replaceFile(join(aside, file), join(folder, file));
    const isBuilt = new Set(built);
    for (const file of await filesOf(folder))
      if (!isBuilt.has(file) && !keeps(file)) await rm(join(folder, file), { force: true });
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

/** A file with the same content stays, so that what watches it sees no change. */
async function replaceFile(from, to) {
  const [content, former] = await Promise.all([readFile(from), readFile(to).catch(() => undefined)]);
  if (former?.equals(content)) return;
  await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
}

/** The paths of all files within a folder, those of its folders first: the programs, which import them, are at the top. */
async function filesOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const depth = (file) => file.split(sep).length;
  return files.map((file) => relative(folder, file)).sort((a, b) => depth(b) - depth(a));
}

/** Removes what builds have left that were killed. */
async function removeAbandoned(folder) {
  for (const name of await readdir(dirname(folder))) {
    const [, pid] = name.startsWith(`${basename(folder)}.`) ? (/\.(\d+)$/.exec(name) ?? []) : [];
    if (pid && !isRunning(Number(pid))) await rm(join(dirname(folder), name), { recursive: true, force: true });
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
