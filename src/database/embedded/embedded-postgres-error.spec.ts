import { describe, expect, it } from '@jest/globals';
import {
  DataDirectoryInUseError,
  dataDirectoryFault,
  EmbeddedPostgresError,
  faultLine,
} from './embedded-postgres-error.js';

describe('dataDirectoryFault', () => {
  it.each([
    ['EACCES', 'permission denied'],
    ['EROFS', 'the file system is read-only'],
    ['EEXIST', 'it is not a directory'],
    ['ENOTDIR', 'it is not a directory'],
    ['ENOSPC', 'the disk is full'],
  ])('%s is reported as "%s"', (code, reason) => {
    const cause = Object.assign(new Error(`${code}: something, mkdir '/data'`), { code });
    const fault = dataDirectoryFault('/data', cause);
    expect(fault.message).toBe(`The data directory /data cannot be used: ${reason}.`);
    expect(fault.cause).toBe(cause);
  });

  it('any other error is reported by its first line', () => {
    expect(dataDirectoryFault('/data', new Error('odd\nsecond line')).message).toBe(
      'The data directory /data cannot be used: odd.',
    );
  });

  it('an EmbeddedPostgresError is returned unchanged', () => {
    const error = new DataDirectoryInUseError('/data');
    expect(dataDirectoryFault('/data', error)).toBe(error);
    expect(error).toBeInstanceOf(EmbeddedPostgresError);
    expect(error.name).toBe('DataDirectoryInUseError');
  });
});

describe('faultLine', () => {
  const log = (level: string, text: string): string => `2026-01-02 03:04:05.678 UTC [42] ${level}:  ${text}`;

  it('returns the first fatal line, not lines that only report it or follow from it', () => {
    const output = [
      log('LOG', 'starting'),
      log('FATAL', 'the database system is starting up'),
      log('FATAL', 'could not write lock file: No space left on device'),
      log('PANIC', 'cannot abort transaction 1'),
      log('LOG', 'shut down'),
    ];
    expect(faultLine(`${output.join('\n')}\n`)).toBe('could not write lock file: No space left on device');
  });

  it('returns the error of initdb', () => {
    const output =
      'initdb: error: could not create directory "/data/pg_wal": Permission denied\ninitdb: removing contents';
    expect(faultLine(output)).toBe('could not create directory "/data/pg_wal": Permission denied');
  });

  it('reports an empty output', () => {
    expect(faultLine('\n')).toBe('no output');
  });
});
