import { QueryFailedError } from 'typeorm';

const RETRY_DELAY_FIRST_MS = 100;
const RETRY_DELAY_MAX_MS = 5_000;

/** PostgreSQL reports an error with a SQLSTATE after rolling the statement back. */
const SQL_STATE = /^(?=.*[0-9])[0-9A-Z]{5}$/;
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
/** Messages of pg 8.23 and its pool when no connection was available. */
const NEVER_SENT = /^timeout exceeded when trying to connect|^Cannot use a pool after calling end on the pool/;

/** The reservation to settle does not exist. A bug of the caller, so a retry cannot succeed. */
export class UnknownReservationError extends Error {
  constructor(reservationId: string) {
    super(`Reservation ${reservationId} does not exist.`);
    this.name = 'UnknownReservationError';
  }
}

/**
 * The delay before the next attempt, in milliseconds: exponential backoff up to 5 seconds, half of it random.
 *
 * @param attempt the number of attempts so far, from 1
 */
export function retryDelayMs(attempt: number, random: () => number = Math.random): number {
  const fullMs = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_FIRST_MS * 2 ** (attempt - 1));
  return Math.round(fullMs / 2 + (fullMs / 2) * random());
}

/**
 * Whether a statement may have been executed although it failed: it was sent, and the response timed out or the connection
 * broke. A statement that the server rejected, or that was never sent, was not executed.
 */
export function mayHaveBeenExecuted(error: unknown): boolean {
  if (error instanceof UnknownReservationError) return false;
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  if (!(cause instanceof Error)) return true;
  const code = 'code' in cause ? cause.code : undefined;
  if (typeof code === 'string' && (SQL_STATE.test(code) || NEVER_CONNECTED.has(code))) return false;
  return !NEVER_SENT.test(cause.message);
}
