import { QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';

/** The database did not respond before the deadline; a statement that was sent may still be executed. */
export class DatabaseSlowError extends Error {
  constructor(
    waitedMs: number,
    readonly wasSent: boolean,
  ) {
    super(`The database did not respond within ${waitedMs} ms.`);
    this.name = 'DatabaseSlowError';
  }
}

/** The server at DATABASE_URL does not respond or refuses the connection; the message is one line without the password. */
export class DatabaseUnreachableError extends Error {
  /** @param cause of a first connection: a wrong address, name or password, or a server that does not respond */
  constructor(url: string, cause: unknown) {
    const { code, message } = cause as Readonly<Record<string, unknown>>;
    // The error of a name with several addresses has no message.
    const reason = String(message || code).split('\n', 1)[0];
    super(`The database at ${serverOf(url)} cannot be reached: ${reason}.`, { cause });
    this.name = 'DatabaseUnreachableError';
  }
}

/** A pooler at DATABASE_URL gives the transactions of one connection to several backends; the message is one line. */
export class TransactionPoolerError extends Error {
  constructor(url: string) {
    super(
      `The database at ${serverOf(url)} is behind a pooler in transaction mode, which keeps no settings of a connection. ` +
        'Set DATABASE_URL to PostgreSQL itself, or use the session mode of the pooler (pool_mode = session).',
    );
    this.name = 'TransactionPoolerError';
  }
}

function serverOf(url: string): string {
  const { hostname, port, searchParams } = new URL(url);
  return `${searchParams.get('host') ?? hostname}:${searchParams.get('port') ?? (port || 5432)}`;
}

/** Codes of Node.js for a connection that could not be made; ENOENT and EAGAIN of one to a Unix socket. */
const NOT_CONNECTED = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH)$/;
const SOCKET_NOT_CONNECTED = /^(?:ENOENT|EAGAIN)$/;
const BROKEN = /^(?:ECONNRESET|ECONNABORTED|ETIMEDOUT|EPIPE)$/;

/** A code with a digit is the server's: it reports an error after rolling the statement back. */
const SQL_STATE = /^(?=.*[0-9])[0-9A-Z]{5}$/;

/**
 * Connection failed (08), login refused (28), out of resources (53), shut down, starting or session ended (57P01 to 57P05),
 * statement timeout (57014), lock timeout (55P03), read-only standby (25006), idle transaction ended (25P03), no such database
 * (3D000), serialization failure or deadlock (40001, 40P01).
 * Source: https://www.postgresql.org/docs/18/errcodes-appendix.html
 */
const UNAVAILABLE_STATES = /^(?:(?:08|28|53)...|57P0[1-5]|57014|55P03|25006|25P03|3D000|40001|40P01)$/;

/** Messages of pg 8.23 and its pool for errors without a code: before a statement is sent, and after. */
const NEVER_SENT = /^timeout exceeded when trying to connect|^Cannot use a pool after calling end on the pool/;
const INTERRUPTED =
  /^timeout expired$|^Connection terminated|^Query read timeout$|^Client (?:has encountered a connection error|was closed) and is not queryable/;

/** TypeORM releases a broken connection, so the next statement of a transaction fails with one of its two errors. */
const ERROR_CLASSES = [DatabaseSlowError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/**
 * Whether the database is the reason for an error of a database operation, so that it may be retried later: the connection
 * failed, or the server refuses this process for now or does not respond in time; as opposed to an invalid statement or a
 * bug. A FATAL error ended the connection, so it is never caused by the statement.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  const { code, message, severity } = driverFactsOf(error);
  if (wasNeverSent(error) || BROKEN.test(code) || UNAVAILABLE_STATES.test(code)) return true;
  if (SQL_STATE.test(code) && (severity === 'FATAL' || severity === 'PANIC')) return true;
  return INTERRUPTED.test(message) || ERROR_CLASSES.some((errorClass) => error instanceof errorClass);
}

/**
 * Whether a statement may have been executed although it failed: it was sent, and the response timed out or the connection
 * broke. A statement that the server rejected, or that was never sent, was not executed.
 */
export function mayHaveBeenExecuted(error: unknown): boolean {
  return sqlStateOf(error) === undefined && !wasNeverSent(error);
}

/** The SQLSTATE that the server reported for a statement; undefined when it did not respond. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code } = driverFactsOf(error);
  return SQL_STATE.test(code) ? code : undefined;
}

function wasNeverSent(error: unknown): boolean {
  if (error instanceof DatabaseSlowError) return !error.wasSent;
  const { code, message, syscall } = driverFactsOf(error);
  if (NOT_CONNECTED.test(code) || NEVER_SENT.test(message)) return true;
  return syscall === 'connect' && SOCKET_NOT_CONNECTED.test(code);
}

/** The facts of the driver's error, which TypeORM copies to its own; empty texts for those that it lacks. */
function driverFactsOf(error: unknown): Record<'code' | 'message' | 'severity' | 'syscall', string> {
  const facts = Object(error) as Readonly<Record<string, unknown>>;
  const text = (name: string): string => (typeof facts[name] === 'string' ? facts[name] : '');
  return { code: text('code'), message: text('message'), severity: text('severity'), syscall: text('syscall') };
}
