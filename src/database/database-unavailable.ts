import { QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { DatabaseBusyError, DatabaseSlowError } from './database-errors.js';

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

/**
 * Refused at the login (28, 3D000, 57P04: there is no such role, password or database for now), a lock that is not free
 * (55P03), and conflicts with others that were retried in vain (40001, 40P01).
 */
const REFUSED_FOR_NOW = /^(?:28[0-9A-Z]{3}|3D000|57P0[45]|55P03|40001|40P01)$/;

/** The server became a standby, or its database, role or configuration read-only. */
const READ_ONLY = '25006';

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
const KINDS = [
  DatabaseSlowError,
  DatabaseBusyError,
  QueryRunnerAlreadyReleasedError,
  QueryRunnerProviderAlreadyReleasedError,
];

const DEPTH_MAX = 8;

/**
 * Whether an error of a database operation means that the database cannot be reached for now (connection refused, shutting down, out of
 * connections, too slow), as opposed to a mistake in the statement or a bug. Looks through TypeORM's wrapping, causes
 * and aggregates. Ask it about errors of the database only: a refused connection looks the same wherever it led.
 */
export function isDatabaseUnreachable(error: unknown): boolean {
  return someError(error, ({ code, syscall, message }, self) => {
    if (typeof code === 'string' && (SYSTEM_CODES.has(code) || SQL_STATE.test(code))) return true;
    if (typeof code === 'string' && syscall === 'connect' && SOCKET_CODES.has(code)) return true;
    if (typeof message === 'string' && DRIVER_MESSAGE.test(message)) return true;
    return KINDS.some((kind) => self instanceof kind);
  });
}

/**
 * Whether a call may be repeated later: the database cannot be reached, or it refuses this process for now (its login, or a
 * statement that conflicts with others). What is FATAL ended the connection, and so is never a mistake in a statement.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (isDatabaseUnreachable(error)) return true;
  return someError(error, ({ code, severity }) => {
    if (typeof code !== 'string' || !SQL_STATE_FORM.test(code)) return false;
    return severity === 'FATAL' || severity === 'PANIC' || REFUSED_FOR_NOW.test(code);
  });
}

/** Whether a write was refused because the server takes none. */
export function isReadOnlyServer(error: unknown): boolean {
  return sqlStateOf(error) === READ_ONLY;
}

/** The SQLSTATE with which the server refused a statement; undefined when it did not answer. */
export function sqlStateOf(error: unknown): string | undefined {
  let state: string | undefined;
  someError(error, ({ code, severity }) => {
    if (typeof code !== 'string' || typeof severity !== 'string' || !SQL_STATE_FORM.test(code)) return false;
    state = code;
    return true;
  });
  return state;
}

/** Whether the server answered that a statement failed, so that its transaction was rolled back. */
export function wasRolledBack(error: unknown): boolean {
  return someError(error, ({ code, severity }) => {
    return severity === 'ERROR' && typeof code === 'string' && SQL_STATE_FORM.test(code);
  });
}

const SQL_STATE_FORM = /^[0-9A-Z]{5}$/;

type Facts = Readonly<Record<string, unknown>>;

/** Whether it holds for the error or for one that it wraps. */
function someError(error: unknown, holds: (facts: Facts, self: object) => boolean, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > DEPTH_MAX) return false;
  const facts = error as Facts;
  if (holds(facts, error)) return true;
  const { driverError, cause, errors } = facts;
  const inner = [driverError, cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])];
  return inner.some((each) => someError(each, holds, depth + 1));
}
