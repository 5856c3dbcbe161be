import { describe, expect, it } from '@jest/globals';
import { QueryFailedError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { DatabaseSlowError, isDatabaseUnavailable, mayHaveBeenExecuted, sqlStateOf } from './database-errors.js';

const failed = (facts: object, message = 'failed'): Error => Object.assign(new Error(message), facts);
const wrapped = (error: Error): Error[] => [error, new QueryFailedError('SELECT 1', [], error)];

describe('an unavailable database', () => {
  it.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'ETIMEDOUT',
    'EPIPE',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    '08006',
    '08P01',
    '53100',
    '53300',
    '57P01',
    '57P03',
    '57P05',
    '57014',
    '55P03',
    '25006',
    '25P03',
    '28000',
    '28P01',
    '3D000',
    '40001',
    '40P01',
  ])('has the code %s, plain and wrapped by TypeORM', (code) => {
    for (const error of wrapped(failed({ code }))) expect(isDatabaseUnavailable(error)).toBe(true);
  });

  it.each([
    'timeout exceeded when trying to connect',
    'timeout expired',
    'Connection terminated unexpectedly',
    'Query read timeout',
    'Client has encountered a connection error and is not queryable',
    'Cannot use a pool after calling end on the pool',
  ])('has the message "%s" of the driver', (message) => {
    for (const error of wrapped(new Error(message))) expect(isDatabaseUnavailable(error)).toBe(true);
  });

  it.each([
    ['a missed deadline', new DatabaseSlowError(1_750, true)],
    ['a missed deadline before the statement was sent', new DatabaseSlowError(1_750, false)],
    ['a connection that broke during a transaction', new QueryRunnerAlreadyReleasedError()],
    ['a manager whose connection broke', new QueryRunnerProviderAlreadyReleasedError()],
    ['a missing socket', failed({ code: 'ENOENT', syscall: 'connect' })],
    ['any error that ended the connection', failed({ code: '55000', severity: 'FATAL' })],
  ])('is the reason of %s', (_case, error) => {
    expect(isDatabaseUnavailable(error)).toBe(true);
  });

  it.each([
    ...['23505', '42P01', '22P02', 'ENOENT', 'ERR_INVALID_ARG_TYPE'].map((code) => failed({ code })),
    failed({ code: '55000', severity: 'ERROR' }),
    undefined,
    null,
    'ECONNREFUSED',
    53300,
    {},
    new Error('Connection to the platform terminated'),
  ])('is not the reason of %p', (error) => {
    expect(isDatabaseUnavailable(error)).toBe(false);
  });
});

describe('a failed statement', () => {
  it.each([
    ['the server rejected it', failed({ code: '40P01' }), '40P01'],
    ['the server cancelled it', failed({ code: '57014' }), '57014'],
    ['the connection was refused', failed({ code: 'ECONNREFUSED' }), undefined],
    ['no connection was available', new Error('timeout exceeded when trying to connect'), undefined],
  ])('was not executed when %s', (_why, error, state) => {
    for (const each of wrapped(error)) {
      expect([mayHaveBeenExecuted(each), sqlStateOf(each)]).toEqual([false, state]);
    }
  });

  it('was not executed when it had no turn before its deadline', () => {
    expect(mayHaveBeenExecuted(new DatabaseSlowError(1_750, false))).toBe(false);
  });

  it.each([
    ['the response timed out', new Error('Query read timeout')],
    ['the connection broke', failed({ code: 'ECONNRESET' })],
    ['the connection broke while sending', failed({ code: 'EPIPE' })],
    ['the connection ended', new Error('Connection terminated unexpectedly')],
    ['it was sent and missed its deadline', new DatabaseSlowError(1_750, true)],
    ['the error is unknown', 'odd'],
  ])('may have been executed when %s', (_why, error) => {
    expect([mayHaveBeenExecuted(error), sqlStateOf(error)]).toEqual([true, undefined]);
  });
});
