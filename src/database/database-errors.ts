// Imported by file: a process that only runs the embedded PostgreSQL imports this module, and need not load all of TypeORM.
import { QueryRunnerAlreadyReleasedError } from 'typeorm/error/QueryRunnerAlreadyReleasedError.js';
import { QueryRunnerProviderAlreadyReleasedError } from 'typeorm/error/QueryRunnerProviderAlreadyReleasedError.js';

/** The database did not respond before the deadline; a statement that was sent may still be executed. */
export class DatabaseSlowError extends Error {
  constructor(waitedMs: number) {
    super(`The database did not respond within ${waitedMs} ms.`);
    this.name = 'DatabaseSlowError';
  }
}

/** The server at DATABASE_URL does not respond or refuses the connection; the message is one line without the password. */
export class DatabaseUnreachableError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'DatabaseUnreachableError';
  }
}

/** The error of a first connection that failed: a wrong address, name or password, or a server that does not respond. */
export function unreachableError(url: string, error: unknown): DatabaseUnreachableError {
  const { hostname, port, searchParams } = new URL(url);
  const server = `${searchParams.get('host') ?? hostname}:${searchParams.get('port') ?? (port || 5432)}`;
  return new DatabaseUnreachableError(`The database at ${server} cannot be reached: ${reasonOf(error)}.`, error);
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  ENOTFOUND: 'the host does not exist',
  EAI_AGAIN: 'the host could not be looked up',
  ETIMEDOUT: 'it does not respond',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the host',
};

function reasonOf(error: unknown): string {
  const { errors, code, message } = error as Readonly<Record<string, unknown>>;
  // A name with several addresses fails with one error per address.
  if (Array.isArray(errors) && errors.length > 0) return reasonOf(errors[0]);
  const known = typeof code === 'string' ? REASONS[code] : undefined;
  if (known !== undefined) return known;
  if (typeof message !== 'string' || message.includes('timeout')) return 'it does not respond';
  return message.split('\n', 1)[0] ?? '';
}

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

/** Of a connection to a Unix socket, as the embedded database has: it does not exist while the server is down, or its queue is full. */
const SOCKET_CODES = new Set(['ENOENT', 'EAGAIN']);

/**
 * Connection failed (08), out of resources (53), shut down or starting (57P01 to 57P03), statement timeout (57014), lock
 * timeout (55P03), read-only standby (25006), idle transaction terminated (25P03).
 * Source: https://www.postgresql.org/docs/18/errcodes-appendix.html
 */
const CONNECTION_STATES = /^(?:08[0-9A-Z]{3}|53[0-9A-Z]{3}|57P0[123]|57014|55P03|25006|25P03)$/;

/**
 * Login refused (28, 3D000), database dropped or session idle (57P04, 57P05), serialization failure or deadlock after all
 * retries (40001, 40P01).
 */
const REFUSED_STATES = /^(?:28[0-9A-Z]{3}|3D000|57P0[45]|40001|40P01)$/;

const SQL_STATE = /^[0-9A-Z]{5}$/;

/** Messages of pg 8.23 and its pool for errors without a code. */
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

/** TypeORM releases a broken connection, so the next statement of a transaction fails with one of its two errors. */
const ERROR_CLASSES = [DatabaseSlowError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

const DEPTH_MAX = 8;

/**
 * Whether there is no working connection to the server: it refuses connections, is starting or shutting down, is out of
 * resources, or does not respond in time. Looks through TypeORM's wrapping, causes and aggregates. Only for errors of
 * database operations: a refused connection to another server looks the same.
 */
export function isConnectionFailure(error: unknown): boolean {
  return someError(error, ({ code, syscall, message }, self) => {
    if (typeof code === 'string') {
      if (SYSTEM_CODES.has(code) || CONNECTION_STATES.test(code)) return true;
      if (syscall === 'connect' && SOCKET_CODES.has(code)) return true;
    }
    if (typeof message === 'string' && DRIVER_MESSAGE.test(message)) return true;
    return ERROR_CLASSES.some((errorClass) => self instanceof errorClass);
  });
}

/**
 * Whether a call may be retried later: the connection failed, or the server refuses this process for now (its login, or a
 * statement that conflicts with others); as opposed to an invalid statement or a bug. A FATAL error ended the connection,
 * so it is never caused by the statement.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (isConnectionFailure(error)) return true;
  return someError(error, ({ code, severity }) => {
    if (typeof code !== 'string' || !SQL_STATE.test(code)) return false;
    return severity === 'FATAL' || severity === 'PANIC' || REFUSED_STATES.test(code);
  });
}

/** The SQLSTATE that the server reported for a statement; undefined when it did not respond. */
export function sqlStateOf(error: unknown): string | undefined {
  let state: string | undefined;
  someError(error, ({ code, severity }) => {
    if (typeof code !== 'string' || typeof severity !== 'string' || !SQL_STATE.test(code)) return false;
    state = code;
    return true;
  });
  return state;
}

type Properties = Readonly<Record<string, unknown>>;

/** Whether the predicate is true for the error or for one that it wraps. */
function someError(error: unknown, predicate: (properties: Properties, self: object) => boolean, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > DEPTH_MAX) return false;
  const properties = error as Properties;
  if (predicate(properties, error)) return true;
  const { driverError, cause, errors } = properties;
  const inner = [driverError, cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])];
  return inner.some((each) => someError(each, predicate, depth + 1));
}
