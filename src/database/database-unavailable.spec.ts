import { describe, expect, it } from '@jest/globals';
import { QueryFailedError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { isDatabaseUnreachable, isDatabaseUnavailable, wasRolledBack } from './database-unavailable.js';
import { DatabaseBusyError, DatabaseSlowError } from './database-errors.js';

const withCode = (code: string, message = 'failed'): Error => Object.assign(new Error(message), { code });

describe('isDatabaseUnreachable', () => {
  it.each([
    ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'],
    ...['08000', '08006', '08P01', '53100', '53200', '53300', '57P01', '57P02', '57P03', '57014', '25006', '25P03'],
  ])('the code %s means away, plain, wrapped by TypeORM and as a cause', (code) => {
    const error = withCode(code);
    expect(isDatabaseUnreachable(error)).toBe(true);
    expect(isDatabaseUnreachable(new QueryFailedError('SELECT 1', [], error))).toBe(true);
    expect(
      isDatabaseUnreachable(
        new Error('The reservation failed.', { cause: new QueryFailedError('SELECT 1', [], error) }),
      ),
    ).toBe(true);
    expect(isDatabaseUnreachable(new AggregateError([new Error('other'), error]))).toBe(true);
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
  ])('the driver saying "%s" means away', (message) => {
    expect(isDatabaseUnreachable(new Error(message))).toBe(true);
    expect(isDatabaseUnreachable(new QueryFailedError('SELECT 1', [], new Error(message)))).toBe(true);
  });

  it.each(['ENOENT', 'EAGAIN'])('the code %s of a connection to a Unix socket means away', (code) => {
    expect(isDatabaseUnreachable(Object.assign(withCode(code), { syscall: 'connect' }))).toBe(true);
    expect(isDatabaseUnreachable(Object.assign(withCode(code), { syscall: 'open' }))).toBe(false);
  });

  it('an answer that was not waited for means away', () => {
    expect(isDatabaseUnreachable(new DatabaseSlowError(1_750))).toBe(true);
  });

  it('a connection that broke in the middle of a transaction means away', () => {
    expect(isDatabaseUnreachable(new QueryRunnerAlreadyReleasedError())).toBe(true);
    expect(isDatabaseUnreachable(new QueryRunnerProviderAlreadyReleasedError())).toBe(true);
  });

  it.each(['23505', '42P01', '40001', '22P02', '57P04', '28P01', 'ENOENT', 'ERR_INVALID_ARG_TYPE'])(
    'the code %s is no matter of waiting',
    (code) => {
      expect(isDatabaseUnreachable(new QueryFailedError('SELECT 1', [], withCode(code)))).toBe(false);
    },
  );

  it.each([undefined, null, 'ECONNREFUSED', 53300, {}, new Error('Connection to the platform terminated')])(
    '%p is not taken for a database that is away',
    (error) => {
      expect(isDatabaseUnreachable(error)).toBe(false);
    },
  );

  it('an error that is its own cause is looked at once and left', () => {
    const error = new Error('round');
    error.cause = error;
    expect(isDatabaseUnreachable(error)).toBe(false);
  });
});

describe('isDatabaseUnavailable', () => {
  it.each(['28000', '28P01', '3D000', '57P04', '57P05', '55P03', '40001', '40P01', '57P01', 'ECONNREFUSED'])(
    'the code %s means that the call may be repeated later',
    (code) => {
      expect(isDatabaseUnavailable(withCode(code))).toBe(true);
      expect(isDatabaseUnavailable(new QueryFailedError('SELECT 1', [], withCode(code)))).toBe(true);
    },
  );

  it('whatever ended the connection does, whatever its code', () => {
    const refused = Object.assign(withCode('55000'), { severity: 'FATAL' });
    expect(isDatabaseUnavailable(refused)).toBe(true);
    expect(isDatabaseUnavailable(Object.assign(withCode('55000'), { severity: 'ERROR' }))).toBe(false);
    expect(isDatabaseUnavailable(new DatabaseBusyError())).toBe(true);
  });

  it.each(['23505', '42P01', '22P02', 'ENOENT', 'ERR_INVALID_ARG_TYPE'])('the code %s does not', (code) => {
    expect(isDatabaseUnavailable(new QueryFailedError('SELECT 1', [], withCode(code)))).toBe(false);
  });
});

describe('wasRolledBack', () => {
  it('is certain only when the server answered so and the connection lives', () => {
    const answered = (severity: string): Error => Object.assign(withCode('57014'), { severity });
    expect(wasRolledBack(new QueryFailedError('SELECT 1', [], answered('ERROR')))).toBe(true);
    expect(wasRolledBack(new QueryFailedError('SELECT 1', [], answered('FATAL')))).toBe(false);
    expect(wasRolledBack(withCode('ECONNRESET'))).toBe(false);
    expect(wasRolledBack(new DatabaseSlowError(1))).toBe(false);
  });
});
