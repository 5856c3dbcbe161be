import { QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { DatabaseSlowError } from './prompt-query.js';

const SYSTEM_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
]);

/** Of a connection to a Unix socket, as the embedded database has: not there while it is down, or its queue is full. */
const SOCKET_CODES = new Set(['ENOENT', 'EAGAIN']);

/**
 * Connection lost (08), out of resources (53), shut down or starting (57P01 to 57P03), cancelled by the statement
 * timeout (57014), a read-only standby (25006), an idle transaction cut (25P03).
 * Source: https://www.postgresql.org/docs/18/errcodes-appendix.html
 */
const SQL_STATE = /^(?:08[0-9A-Z]{3}|53[0-9A-Z]{3}|57P0[123]|57014|25006|25P03)$/;

/** What pg 8.23 and its pool say without a code. */
const DRIVER_MESSAGE = new RegExp(
  [
    '^timeout exceeded when trying to connect',
    '^timeout expired$',
    '^Connection terminated',
    '^Query read timeout$',
    '^Client has encountered a connection error and is not queryable',
    '^Client was closed and is not queryable',
    '^Cannot use a pool after calling end on the pool',
  ].join('|'),
);

/**
 * An answer that was not waited for; and TypeORM gives a connection back when it breaks, so that the next statement of a
 * transaction finds it gone.
 */
const KINDS = [DatabaseSlowError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

const DEPTH_MAX = 8;

/**
 * Whether an error of a database operation means that the database is away for now (unreachable, shutting down, out of
 * connections, too slow), as opposed to a mistake in the statement or a bug. Looks through TypeORM's wrapping, causes
 * and aggregates. Ask it about errors of the database only: a refused connection looks the same wherever it led.
 */
export function isDatabaseAway(error: unknown): boolean {
  return isAway(error, 0);
}

function isAway(error: unknown, depth: number): boolean {
  if (typeof error !== 'object' || error === null || depth > DEPTH_MAX) return false;
  const { code, syscall, message, driverError, cause, errors } = error as Readonly<Record<string, unknown>>;
  if (typeof code === 'string' && (SYSTEM_CODES.has(code) || SQL_STATE.test(code))) return true;
  if (typeof code === 'string' && syscall === 'connect' && SOCKET_CODES.has(code)) return true;
  if (typeof message === 'string' && DRIVER_MESSAGE.test(message)) return true;
  if (KINDS.some((kind) => error instanceof kind)) return true;
  const inner = [driverError, cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])];
  return inner.some((each) => isAway(each, depth + 1));
}
