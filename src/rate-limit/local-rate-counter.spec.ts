import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { LocalRateCounter } from './local-rate-counter.js';

const TTL_MS = 60_000;

let nowMs = 0;
afterEach(() => void jest.restoreAllMocks());

/** Counts by a clock that only `nowMs` moves. */
function countsAt(startMs: number): LocalRateCounter {
  nowMs = startMs;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  return new LocalRateCounter();
}

describe("the process's own counts", () => {
  it('grant what fits into any window, and each refused call at the moment that they name', async () => {
    const starts = fc.double({ min: 0, max: 1e9, noNaN: true });
    const pauses = fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(starts, fc.integer({ min: 1, max: 5 }), pauses, async (startMs, limit, pausesMs) => {
        const counts = countsAt(startMs);
        let granted: number[] = [];
        for (const pauseMs of pausesMs) {
          nowMs += pauseMs;
          granted = granted.filter((atMs) => atMs > nowMs - TTL_MS);
          const room = limit - granted.length;
          const record = await counts.increment('a', TTL_MS, limit);
          expect(record.isBlocked).toBe(room === 0);
          if (!record.isBlocked) granted.push(nowMs);
          expect(record.totalHits).toBe(granted.length);
          const firstLeavesMs = Math.min(...granted) - nowMs + TTL_MS;
          expect(record.timeToExpire).toBe(Math.ceil(firstLeavesMs / 1000));
          expect(record.timeToExpire).toBeLessThanOrEqual(TTL_MS / 1000);
          expect(record.timeToBlockExpire).toBe(record.isBlocked ? record.timeToExpire : 0);
        }
      }),
    );
  });

  it('are of each caller apart', async () => {
    const counts = countsAt(1_000);
    expect((await counts.increment('a', TTL_MS, 1)).isBlocked).toBe(false);
    expect((await counts.increment('b', TTL_MS, 1)).isBlocked).toBe(false);
    expect((await counts.increment('a', TTL_MS, 1)).isBlocked).toBe(true);
  });

  it('forget the callers seen longest ago rather than grow without end', async () => {
    const counts = countsAt(1_000);
    await counts.increment('first', TTL_MS, 1);
    for (let caller = 0; caller < 20_000; caller += 1) await counts.increment(String(caller), TTL_MS, 1);
    expect((await counts.increment('first', TTL_MS, 1)).isBlocked).toBe(false);
    expect((await counts.increment('19999', TTL_MS, 1)).isBlocked).toBe(true);
  });
});
