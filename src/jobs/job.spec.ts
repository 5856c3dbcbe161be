import { describe, expect, it } from '@jest/globals';
import { checkAgainSeconds } from './job.js';

describe('checkAgainSeconds', () => {
  it('is null for a finished job', () => {
    for (const state of ['completed', 'canceled', 'failed'] as const) expect(checkAgainSeconds(state, null)).toBeNull();
  });

  it('is not null while a slice of a canceled job is running', () => {
    expect(checkAgainSeconds('canceled', 0)).toBe(2);
  });

  it('is the time until the next slice, between 2 seconds and an hour', () => {
    expect([0, 2.1, 600, 21_600].map((due) => checkAgainSeconds('running', due))).toEqual([2, 3, 600, 3_600]);
  });

  it('is an hour for a job that waits for quota or a plan', () => {
    expect(checkAgainSeconds('paused', null)).toBe(3_600);
  });
});
