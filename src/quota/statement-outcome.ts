import { QueryFailedError } from 'typeorm';
import { UnknownReservationError } from './unknown-reservation-error.js';

/** An error that the server itself reported has a SQLSTATE: the statement was rolled back. */
const SQL_STATE = /^(?=.*[0-9])[0-9A-Z]{5}$/;
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
/** What pg 8.23 and its pool say when no connection could be had. */
const NEVER_SENT = /^timeout exceeded when trying to connect|^Cannot use a pool after calling end on the pool/;

/**
 * Whether a single statement that failed may have been carried out all the same: its answer did not come, because it was
 * too slow or the connection broke. A statement that the server refused, or that was never sent, was not.
 */
export function mayHaveBeenCarriedOut(error: unknown): boolean {
  if (error instanceof UnknownReservationError) return false;
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  if (!(cause instanceof Error)) return true;
  const code = 'code' in cause ? cause.code : undefined;
  if (typeof code === 'string' && (SQL_STATE.test(code) || NEVER_CONNECTED.has(code))) return false;
  return !NEVER_SENT.test(cause.message);
}
