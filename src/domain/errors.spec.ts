import { describe, expect, it } from '@jest/globals';
import { PlanLimitExceededError } from './errors.js';

function message({ used = 40, reserved = 0, limit = 50 }, fitting: number, parameter: 'limit' | 'videos' = 'limit') {
  const at = new Date('2026-12-01T00:00:00Z');
  const quota = { limit, used, reserved, resetAt: at, asOf: at };
  return new PlanLimitExceededError(quota, 25, fitting, parameter).message;
}

describe('the message of an exceeded quota', () => {
  it('states what the request needs, what remains, and the number of videos that fits', () => {
    const counts = 'This request may use up to 25 transcripts of the monthly quota, and 10 of 50 remain.';
    expect(message({}, 10)).toBe(`${counts} Retry with limit=10 or lower.`);
    expect(message({}, 10, 'videos')).toBe(`${counts} Retry with the first 10 videos or fewer.`);
    expect(message({}, 1, 'videos')).toBe(`${counts} Retry with the first video only.`);
  });

  it('advises to wait for running requests, or for the next month when those hold nothing that can be used', () => {
    const counts = 'This request may use up to 25 transcripts of the monthly quota, and 0 of 50 remain.';
    const reset = `${counts} The quota resets at 2026-12-01T00:00:00.000Z.`;
    expect(message({ reserved: 10 }, 0)).toBe(
      `${counts} Running requests have reserved 10. Retry when they have ended.`,
    );
    expect(message({ used: 50 }, 0)).toBe(reset);
    expect(message({ used: 60, reserved: 10 }, 0, 'videos')).toBe(reset);
  });
});
