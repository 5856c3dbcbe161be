import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RefusalSampler, type NotLogged } from './request-log.js';

let reports: NotLogged[];
let sampler: RefusalSampler;
beforeEach(() => {
  jest.useFakeTimers();
  reports = [];
  sampler = new RefusalSampler((counts) => reports.push(counts));
});
afterEach(() => void jest.useRealTimers());

const allowed = (code: string, count: number): number =>
  Array.from({ length: count }, () => sampler.allows(code)).filter(Boolean).length;

describe('the sample of refusals in the log', () => {
  it('allows 20 lines per code in ten seconds, and then reports the number of the others', () => {
    expect([allowed('invalid_api_key', 70), allowed('not_found', 21), allowed('rate_limited', 3)]).toEqual([20, 20, 3]);
    expect(reports).toEqual([]);
    jest.advanceTimersByTime(10_000);
    expect(reports).toEqual([{ invalid_api_key: 50, not_found: 1 }]);
    jest.advanceTimersByTime(60_000);
    expect(reports).toHaveLength(1);
    expect(allowed('invalid_api_key', 21)).toBe(20);
  });

  it('reports the omitted lines when flushed, and only once', () => {
    allowed('invalid_api_key', 25);
    sampler.flush();
    sampler.flush();
    jest.advanceTimersByTime(10_000);
    expect(reports).toEqual([{ invalid_api_key: 5 }]);
  });
});
