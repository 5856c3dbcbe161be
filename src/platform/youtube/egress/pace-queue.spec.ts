import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { ReadingContext } from '../../video-platform.js';
import { PaceQueue, type Turn } from './pace-queue.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A token bucket that is full at the start, and the queue for it. */
function open({ ratePerSecond = 1, burst = 8, reserve = 2 } = {}) {
  let [available, atMs] = [burst, performance.now()];
  const level = () => {
    const nowMs = performance.now();
    available = Math.min(burst, available + ((nowMs - atMs) * ratePerSecond) / 1_000);
    atMs = nowMs;
    return available;
  };
  const budget = {
    waitMs: (count: number) => Math.max(0, ((count - level()) / ratePerSecond) * 1_000),
    reserve: () => reserve,
    spend: () => void (available = level() - 1),
  };
  return { queue: new PaceQueue(budget), level };
}

function context(choices: Partial<ReadingContext> = {}): ReadingContext {
  return { signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {}, ...choices };
}

/** A queue that records what it serves, in order, by name. */
function recorded(options: Parameters<typeof open>[0] = {}) {
  const { queue, level } = open(options);
  const served: string[] = [];
  const ask = (name: string, of: ReadingContext, count = 1) => {
    for (let request = 0; request < count; request += 1) void queue.wait(of).then(() => served.push(name));
  };
  return { queue, level, served, ask, after: (ms: number) => jest.advanceTimersByTimeAsync(ms) };
}

describe('PaceQueue', () => {
  it('serves the waiting requests of calls before background ones that came first', async () => {
    const { ask, served, after } = recorded({ burst: 1, reserve: 0 });
    ask('job', context({ background: true }), 4);
    ask('call', context(), 2);
    ask('other call', context());
    await after(3_500);
    expect(served).toEqual(['job', 'call', 'other call', 'call']);
    await after(3_000);
    expect(served.slice(4)).toEqual(['job', 'job', 'job']);
  });

  it('leaves the reserve to calls, and serves background requests at the full pace above it', async () => {
    const { ask, served, after } = recorded({ burst: 8, reserve: 2 });
    ask('job', context({ background: true }), 60);
    await after(0);
    expect(served).toHaveLength(6);
    await after(20_000);
    expect(served).toHaveLength(26);
    ask('call', context(), 2);
    await after(0);
    expect(served.slice(26)).toEqual(['call', 'call']);
  });

  it('lets background requests of different jobs take turns', async () => {
    const { ask, served, after } = recorded({ burst: 3, reserve: 2 });
    const [one, other] = [context({ background: true }), context({ background: true })];
    ask('one', one, 4);
    ask('other', other, 2);
    await after(4_000);
    expect(served).toEqual(['one', 'one', 'other', 'one', 'other']);
  });

  it('estimates the turn of a call without the background requests that wait', async () => {
    const { queue, ask } = recorded({ burst: 1, reserve: 0 });
    ask('job', context({ background: true }), 50);
    await jest.advanceTimersByTimeAsync(0);
    expect(Math.round(queue.estimateMs(context()))).toBe(1_000);
    expect(queue.lengthFor(context())).toBe(0);
    expect(Math.round(queue.estimateMs(context({ background: true })))).toBe(2_000);
    expect(queue.lengthFor(context({ background: true }))).toBe(49);
    // A call is not refused because of them, a job is.
    const soon = performance.now() + 3_000;
    ask('call', context({ deadlineAtMs: soon }));
    await expect(queue.wait(context({ background: true, deadlineAtMs: soon }))).resolves.toMatchObject({
      kind: 'busy',
    });
    expect(queue.lengthFor(context())).toBe(1);
  });

  it('serves a background request that a call waits for too as a request of a call', async () => {
    const { ask, served, after } = recorded({ burst: 4, reserve: 3, ratePerSecond: 0.001 });
    const listeners = new Set<() => void>();
    const onForeground = (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    const flight = { ...context(), background: true, onForeground };
    ask('job', context({ background: true }), 3);
    ask('flight', flight);
    await after(10_000);
    expect(served).toEqual(['job']);
    flight.background = false;
    listeners.forEach((listener) => listener());
    await after(0);
    expect(served).toEqual(['job', 'flight']);
    expect(listeners.size).toBe(0);
  });

  it('ends the waiting of background requests too when the egress is refused, or their job ends', async () => {
    const { queue } = open({ burst: 2, reserve: 1 });
    const leaving = new AbortController();
    await queue.wait(context({ background: true }));
    const left = queue.wait(context({ background: true, signal: leaving.signal }));
    const released = queue.wait(context({ background: true }));
    leaving.abort(new Error('canceled'));
    await expect(left).rejects.toThrow('canceled');
    queue.releaseAll();
    await expect(released).resolves.toEqual({ kind: 'paused' });
    expect([queue.length, jest.getTimerCount()]).toEqual([0, 0]);
  });

  it('never serves a background request while a call waits or out of the reserve, keeps the pace, and serves all', async () => {
    const arrival = fc.record({
      afterMs: fc.integer({ min: 0, max: 3_000 }),
      key: fc.nat(3),
      count: fc.integer({ min: 1, max: 6 }),
    });
    const bucket = fc.record({ burst: fc.integer({ min: 1, max: 8 }), ratePerSecond: fc.constantFrom(0.5, 1, 4) });
    await fc.assert(
      fc.asyncProperty(bucket, fc.array(arrival, { minLength: 1, maxLength: 15 }), async (options, arrivals) => {
        const reserve = (options.burst - 1) / 2;
        const { queue, level } = open({ ...options, reserve });
        // Two calls and two jobs.
        const keys = [false, false, true, true].map((background) => context({ background }));
        const startMs = performance.now();
        let [callsWaiting, sent, asked] = [0, 0, 0];
        const serve =
          ({ background }: ReadingContext) =>
          (turn: Turn) => {
            expect(turn.kind).toBe('go');
            sent += 1;
            const capacity = options.burst + ((performance.now() - startMs) * options.ratePerSecond) / 1_000;
            expect(sent).toBeLessThanOrEqual(capacity + 1e-6);
            if (!background) return void (callsWaiting -= 1);
            expect(callsWaiting).toBe(0);
            expect(level()).toBeGreaterThanOrEqual(reserve - 1e-6);
          };
        const served: Promise<void>[] = [];
        for (const { afterMs, key, count } of arrivals) {
          await jest.advanceTimersByTimeAsync(afterMs);
          const of = keys[key] ?? context();
          for (let request = 0; request < count; request += 1) {
            if (of.background !== true) callsWaiting += 1;
            asked += 1;
            served.push(queue.wait(of).then(serve(of)));
          }
        }
        await jest.advanceTimersByTimeAsync(((asked + options.burst) / options.ratePerSecond) * 1_000 + 1_000);
        await Promise.all(served);
        expect([sent, queue.length]).toEqual([asked, 0]);
      }),
    );
  });
});
