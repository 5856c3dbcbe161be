/** The embedded PostgreSQL cannot be used; the message is one line for the operator, without any password. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }
}

/** Another service runs on the same data directory. */
export class DataDirectoryInUseError extends EmbeddedPostgresError {
  constructor(dataDir: string) {
    super(
      `Another service runs on the data directory ${dataDir}: stop it first, or give this one a DATA_DIR of its own.`,
    );
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'the operation is not permitted',
  // Node.js reports this also for a read-only file system.
  ENOENT: 'it cannot be created',
  EROFS: 'the file system is read-only',
  EEXIST: 'it is not a directory',
  ENOTDIR: 'it is not a directory',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENAMETOOLONG: 'the path is too long',
};

/** Describes a failed file operation in the data directory in one line; an `EmbeddedPostgresError` is returned unchanged. */
export function dataDirectoryFault(dataDir: string, error: unknown): EmbeddedPostgresError {
  if (error instanceof EmbeddedPostgresError) return error;
  const reason =
    REASONS[errorCode(error) ?? ''] ?? (error instanceof Error ? firstLine(error.message) : 'unknown reason');
  return new EmbeddedPostgresError(`The data directory ${dataDir} cannot be used: ${reason}.`, error);
}

/** The line of a PostgreSQL program's output that contains the reason of its failure. */
export function faultLine(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  // The first fatal error causes the others; messages that only end a connection are not the cause.
  const fault =
    lines.find((line) => /\b(FATAL|PANIC):(?!\s+(?:the database system is|terminating connection))/.test(line)) ??
    lines.find((line) => !/\bLOG:/.test(line));
  return (fault ?? lines.at(-1) ?? 'no output').replace(/^.*?\b(?:FATAL|PANIC|initdb: error|postgres):\s*/, '').trim();
}

/** The system's code of an error, e.g. `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
