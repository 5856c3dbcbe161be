import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { QueryFailedError } from 'typeorm';
import { mayHaveBeenExecuted, retryDelayMs, UnknownReservationError } from './quota.service.js';

const driverError = (message: string, code?: string): QueryFailedError =>
  new QueryFailedError('SELECT', [], Object.assign(new Error(message), code !== undefined && { code }));

describe('the delay before a retry', () => {
  it('doubles from 100 ms up to 5 s', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 50].map((attempt) => retryDelayMs(attempt, () => 1));
    expect(longest).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  it('is at least half of its maximum, so that retries do not pile up', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_000 }), (attempt) => {
        expect(retryDelayMs(attempt)).toBeGreaterThanOrEqual(retryDelayMs(attempt, () => 1) / 2);
      }),
    );
  });
});

describe('a failed statement', () => {
  it.each([
    ['the server rejected it', driverError('deadlock detected', '40P01')],
    ['the server cancelled it', driverError('canceling statement due to statement timeout', '57014')],
    ['the connection was refused', driverError('connect ECONNREFUSED 127.0.0.1:5432', 'ECONNREFUSED')],
    ['no connection was available', driverError('timeout exceeded when trying to connect')],
    ['the reservation does not exist', new UnknownReservationError('id')],
  ])('was not executed when %s', (_why, error) => {
    expect(mayHaveBeenExecuted(error)).toBe(false);
  });

  it.each([
    ['the response timed out', driverError('Query read timeout')],
    ['the connection broke', driverError('read ECONNRESET', 'ECONNRESET')],
    ['the connection broke while sending', driverError('write EPIPE', 'EPIPE')],
    ['the connection ended', driverError('Connection terminated unexpectedly')],
    ['the error is unknown', 'odd'],
  ])('may have been executed when %s', (_why, error) => {
    expect(mayHaveBeenExecuted(error)).toBe(true);
  });
});
