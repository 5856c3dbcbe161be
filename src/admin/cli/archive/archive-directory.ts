import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { archivedVideoId, type ArchiveFormat } from './file-name.js';

const INDEX = 'index.json';
/** A file that is being written, by the ID of its process. */
const UNFINISHED = /^\.([0-9]+)-.*\.part$/;

/** The archive cannot be read or written. The message names the directory and what to do. */
export class ArchiveDirectoryError extends Error {
  constructor(path: string, cause: unknown) {
    super(faultOf(path, codeOf(cause)), { cause });
    this.name = 'ArchiveDirectoryError';
  }
}

/** The directory of an archive. A file is complete as soon as it has its name. */
export class ArchiveDirectory {
  private written = 0;

  private constructor(
    private readonly path: string,
    /** The files of the directory, by video ID. */
    readonly files: Map<string, string>,
    /** The content of the index; undefined in a new archive. */
    readonly index: Buffer | undefined,
  ) {}

  /**
   * Reads the directory, which need not exist.
   *
   * @throws ArchiveDirectoryError
   */
  static async open(path: string, format: ArchiveFormat): Promise<ArchiveDirectory> {
    try {
      const names = await namesIn(path);
      const files = names.flatMap((name) => {
        const videoId = archivedVideoId(name, format);
        return videoId === undefined ? [] : [[videoId, name] as const];
      });
      const index = names.includes(INDEX) ? await readFile(join(path, INDEX)) : undefined;
      return new ArchiveDirectory(path, new Map(files), index);
    } catch (error) {
      throw new ArchiveDirectoryError(path, error);
    }
  }

  /** Creates the directory unless it exists, and removes files that an earlier process left unfinished. @throws ArchiveDirectoryError */
  async prepare(): Promise<void> {
    try {
      await mkdir(this.path, { recursive: true });
      for (const name of await readdir(this.path))
        if (isAbandoned(name)) await rm(join(this.path, name), { force: true });
    } catch (error) {
      throw new ArchiveDirectoryError(this.path, error);
    }
  }

  get indexPath(): string {
    return join(this.path, INDEX);
  }

  /** Writes a file, which appears under its name when it is complete. @throws ArchiveDirectoryError */
  async write(name: string, pieces: AsyncIterable<string | Buffer> | Iterable<string | Buffer>): Promise<void> {
    await this.writeUnfinished('file', pieces, (unfinished) => rename(unfinished, join(this.path, name)));
  }

  /** @throws ArchiveDirectoryError */
  async writeIndex(text: string): Promise<void> {
    await this.writeUnfinished('index', [text], (unfinished) => rename(unfinished, this.indexPath));
  }

  /** Writes a file under a temporary name, and removes it when that fails. */
  private async writeUnfinished(
    purpose: string,
    pieces: AsyncIterable<string | Buffer> | Iterable<string | Buffer>,
    finish: (unfinished: string) => Promise<void>,
  ): Promise<void> {
    const unfinished = join(this.path, `.${process.pid}-${purpose}-${++this.written}.part`);
    try {
      const file = await open(unfinished, 'wx');
      try {
        for await (const piece of pieces) await file.appendFile(piece);
        // Otherwise a file can be empty after a power failure although it has its name.
        await file.sync();
      } finally {
        await file.close();
      }
      await finish(unfinished);
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined);
      // Errors of the pieces have no code of the system.
      throw codeOf(error) === undefined ? error : new ArchiveDirectoryError(this.path, error);
    }
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Whether a file was left unfinished by a process that has ended. */
function isAbandoned(name: string): boolean {
  const [, pid] = UNFINISHED.exec(name) ?? [];
  if (pid === undefined) return false;
  if (Number(pid) === process.pid) return true;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

const PERMISSION = 'cannot be written: permission denied.';
const FULL = 'is on a full disk. Free some space, then run the same command again to continue.';
const NO_DIRECTORY = 'is not a directory.';

/** By the error codes of the system. */
const FAULTS: Readonly<Record<string, string>> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EACCES: PERMISSION,
  EPERM: PERMISSION,
  EROFS: 'cannot be written: the file system is read-only.',
  ENOTDIR: NO_DIRECTORY,
  EEXIST: NO_DIRECTORY,
};

function faultOf(path: string, code = 'unknown error'): string {
  return `${path} ${FAULTS[code] ?? `cannot be used (${code}).`}`;
}
