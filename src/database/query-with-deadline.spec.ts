import { describe, expect, it } from '@jest/globals';
import { QueryFailedError } from 'typeorm';
import { retryConflicts } from './query-with-deadline.js';

const failure = (code: string): Error =>
  new QueryFailedError('SELECT 1', [], Object.assign(new Error('failed'), { code, severity: 'ERROR' }));

/** Fails the given number of times, then returns how often it ran. */
function failing(times: number, code: string): () => Promise<number> {
  let runs = 0;
  return () => {
    runs += 1;
    return runs <= times ? Promise.reject(failure(code)) : Promise.resolve(runs);
  };
}

describe('a statement that was rolled back because of a conflict', () => {
  it.each(['40001', '40P01'])('(%s) is retried until it succeeds', async (code) => {
    expect(await retryConflicts(failing(3, code))).toBe(4);
  });

  it('runs five times at most', async () => {
    const work = failing(5, '40001');
    await expect(retryConflicts(work)).rejects.toMatchObject({ code: '40001' });
    expect(await work()).toBe(6);
  });

  it('is not retried after other errors', async () => {
    await expect(retryConflicts(failing(1, '23505'))).rejects.toMatchObject({ code: '23505' });
  });
});
