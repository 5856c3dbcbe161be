import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { LocalRateCounter } from './local-rate-counter.js';

const TTL_MS = 60_000;

let nowMs = 0;
afterEach(() => void jest.restoreAllMocks());

/** A counter whose clock is `nowMs`. */
function countsAt(startMs: number): LocalRateCounter {
  nowMs = startMs;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  return new LocalRateCounter();
}

describe("the process's own counts", () => {
  it('grant no more than the limit in any window, and name the moment at which a refused call will be granted', () => {
    const starts = fc.double({ min: 0, max: 1e9, noNaN: true });
    const pauses = fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(starts, fc.integer({ min: 1, max: 5 }), pauses, (startMs, limit, pausesMs) => {
        const counts = countsAt(startMs);
        let granted: number[] = [];
        for (const pauseMs of pausesMs) {
          nowMs += pauseMs;
          granted = granted.filter((atMs) => atMs > nowMs - TTL_MS);
          const room = limit - granted.length;
          const record = counts.increment('a', TTL_MS, limit);
          expect(record.granted).toBe(room > 0);
          if (record.granted) granted.push(nowMs);
          expect(record.used).toBe(granted.length);
          const firstExpiresMs = Math.min(...granted) - nowMs + TTL_MS;
          expect(record.resetSeconds).toBe(Math.ceil(firstExpiresMs / 1000));
          expect(record.resetSeconds).toBeLessThanOrEqual(TTL_MS / 1000);
        }
      }),
    );
  });

  it('are separate for each key', () => {
    const counts = countsAt(1_000);
    expect(counts.increment('a', TTL_MS, 1).granted).toBe(true);
    expect(counts.increment('b', TTL_MS, 1).granted).toBe(true);
    expect(counts.increment('a', TTL_MS, 1).granted).toBe(false);
  });

  it('evict the least recently used key rather than grow without bound', () => {
    const counts = countsAt(1_000);
    counts.increment('first', TTL_MS, 1);
    for (let key = 0; key < 20_000; key += 1) counts.increment(String(key), TTL_MS, 1);
    expect(counts.increment('first', TTL_MS, 1).granted).toBe(true);
    expect(counts.increment('19999', TTL_MS, 1).granted).toBe(false);
  });
});
