import { describe, expect, it } from '@jest/globals';
import { QueryFailedError } from 'typeorm';
import { mayHaveBeenCarriedOut } from './statement-outcome.js';
import { UnknownReservationError } from './unknown-reservation-error.js';

const driverError = (message: string, code?: string): QueryFailedError =>
  new QueryFailedError('SELECT', [], Object.assign(new Error(message), code !== undefined && { code }));

describe('a statement that failed', () => {
  it.each([
    ['the server refused it', driverError('deadlock detected', '40P01')],
    ['the server cancelled it', driverError('canceling statement due to statement timeout', '57014')],
    ['nobody listened', driverError('connect ECONNREFUSED 127.0.0.1:5432', 'ECONNREFUSED')],
    ['no connection could be had', driverError('timeout exceeded when trying to connect')],
    ['its reservation does not exist', new UnknownReservationError('id')],
  ])('was not carried out when %s', (_why, error) => {
    expect(mayHaveBeenCarriedOut(error)).toBe(false);
  });

  it.each([
    ['its answer was too slow', driverError('Query read timeout')],
    ['the connection broke', driverError('read ECONNRESET', 'ECONNRESET')],
    ['the connection broke while it was sent', driverError('write EPIPE', 'EPIPE')],
    ['the connection ended', driverError('Connection terminated unexpectedly')],
    ['nothing is known of it', 'odd'],
  ])('may have been carried out when %s', (_why, error) => {
    expect(mayHaveBeenCarriedOut(error)).toBe(true);
  });
});
