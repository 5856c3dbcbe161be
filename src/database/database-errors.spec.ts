import { describe, expect, it } from '@jest/globals';
import { QueryFailedError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { DatabaseSlowError, isConnectionFailure, isDatabaseUnavailable } from './database-errors.js';

const withCode = (code: string, message = 'failed'): Error => Object.assign(new Error(message), { code });

describe('isConnectionFailure', () => {
  it.each([
    ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'],
    ...[
      '08000',
      '08006',
      '08P01',
      '53100',
      '53200',
      '53300',
      '57P01',
      '57P02',
      '57P03',
      '57014',
      '55P03',
      '25006',
      '25P03',
    ],
  ])('is true for the code %s: plain, wrapped by TypeORM, as a cause and in an aggregate', (code) => {
    const error = withCode(code);
    expect(isConnectionFailure(error)).toBe(true);
    expect(isConnectionFailure(new QueryFailedError('SELECT 1', [], error))).toBe(true);
    expect(
      isConnectionFailure(new Error('The reservation failed.', { cause: new QueryFailedError('SELECT 1', [], error) })),
    ).toBe(true);
    expect(isConnectionFailure(new AggregateError([new Error('other'), error]))).toBe(true);
  });

  it.each([
    'timeout exceeded when trying to connect',
    'timeout expired',
    'Connection terminated',
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Query read timeout',
    'Client has encountered a connection error and is not queryable',
    'Cannot use a pool after calling end on the pool',
  ])('is true for the driver message "%s"', (message) => {
    expect(isConnectionFailure(new Error(message))).toBe(true);
    expect(isConnectionFailure(new QueryFailedError('SELECT 1', [], new Error(message)))).toBe(true);
  });

  it.each(['ENOENT', 'EAGAIN'])('is true for the code %s only when a connection failed with it', (code) => {
    expect(isConnectionFailure(Object.assign(withCode(code), { syscall: 'connect' }))).toBe(true);
    expect(isConnectionFailure(Object.assign(withCode(code), { syscall: 'open' }))).toBe(false);
  });

  it('is true for a missed deadline', () => {
    expect(isConnectionFailure(new DatabaseSlowError(1_750))).toBe(true);
  });

  it('is true for a connection that broke during a transaction', () => {
    expect(isConnectionFailure(new QueryRunnerAlreadyReleasedError())).toBe(true);
    expect(isConnectionFailure(new QueryRunnerProviderAlreadyReleasedError())).toBe(true);
  });

  it.each(['23505', '42P01', '40001', '22P02', '57P04', '28P01', 'ENOENT', 'ERR_INVALID_ARG_TYPE'])(
    'is false for the code %s',
    (code) => {
      expect(isConnectionFailure(new QueryFailedError('SELECT 1', [], withCode(code)))).toBe(false);
    },
  );

  it.each([undefined, null, 'ECONNREFUSED', 53300, {}, new Error('Connection to the platform terminated')])(
    'is false for %p',
    (error) => {
      expect(isConnectionFailure(error)).toBe(false);
    },
  );

  it('ends for an error that is its own cause', () => {
    const error = new Error('round');
    error.cause = error;
    expect(isConnectionFailure(error)).toBe(false);
  });
});

describe('isDatabaseUnavailable', () => {
  it.each(['28000', '28P01', '3D000', '57P04', '57P05', '55P03', '40001', '40P01', '57P01', 'ECONNREFUSED'])(
    'is true for the code %s',
    (code) => {
      expect(isDatabaseUnavailable(withCode(code))).toBe(true);
      expect(isDatabaseUnavailable(new QueryFailedError('SELECT 1', [], withCode(code)))).toBe(true);
    },
  );

  it('is true for any error that ended the connection', () => {
    expect(isDatabaseUnavailable(Object.assign(withCode('55000'), { severity: 'FATAL' }))).toBe(true);
    expect(isDatabaseUnavailable(Object.assign(withCode('55000'), { severity: 'ERROR' }))).toBe(false);
  });

  it.each(['23505', '42P01', '22P02', 'ENOENT', 'ERR_INVALID_ARG_TYPE'])('is false for the code %s', (code) => {
    expect(isDatabaseUnavailable(new QueryFailedError('SELECT 1', [], withCode(code)))).toBe(false);
  });
});
