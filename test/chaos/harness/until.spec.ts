import { describe, expect, it } from '@jest/globals';
import { measureInTime } from '../../until.js';
import { describeRepeats, until } from './until.js';

describe('a measurement that is late', () => {
  it('is repeated, and its text has the worst of the discarded values', async () => {
    const values = [9_000, 12_300, 1_000];
    const late = await measureInTime(
      () => Promise.resolve(values.shift() ?? 0),
      (ms) => ms <= 2_000,
    );
    const inTime = await measureInTime(
      () => Promise.resolve(500),
      (ms) => ms <= 2_000,
    );
    expect(late).toEqual({ all: [9_000, 12_300, 1_000], last: 1_000 });
    expect(describeRepeats([late, inTime], { refused: (ms) => ms, recovered: () => undefined })).toBe(
      'Times are those of the last measurement of each fault; 2 measurements were late and repeated, at worst refused 12.3 s.',
    );
    expect(describeRepeats([inTime], { refused: (ms) => ms })).toBe('No measurement was late and repeated.');
  });

  it('is repeated three times at most', async () => {
    const { all } = await measureInTime(
      () => Promise.resolve(9_000),
      () => false,
    );
    expect(all).toHaveLength(4);
  });
});

describe('a condition that does not become true', () => {
  it('rejects with what was waited for and the last error', async () => {
    const waiting = until('The service responds', () => Promise.reject(new Error('refused')), 1, 1);
    await expect(waiting).rejects.toMatchObject({
      message: 'The service responds: not within 1 ms.',
      cause: { message: 'refused' },
    });
  });
});
