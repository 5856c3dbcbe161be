import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LocalSliceQueue } from './slice-queue.js';

const DAY_MS = 86_400_000;

describe('the wake-ups of a process', () => {
  let queue: LocalSliceQueue;
  /** Ends each look that runs, in the order of their start. */
  let ends: (() => void)[];
  let looks: number;
  const look = (): Promise<void> => {
    looks += 1;
    return new Promise((resolve) => ends.push(resolve));
  };

  beforeEach(() => {
    jest.useFakeTimers();
    queue = new LocalSliceQueue();
    [ends, looks] = [[], 0];
  });
  afterEach(async () => {
    await queue.close();
    jest.useRealTimers();
  });

  it('cause a look at once, or after their delay', async () => {
    await queue.work(2, look);
    await queue.wake();
    expect(looks).toBe(1);
    await queue.wake(1_000);
    jest.advanceTimersByTime(999);
    expect(looks).toBe(1);
    jest.advanceTimersByTime(1);
    expect(looks).toBe(2);
  });

  it('cause no look at once when their delay exceeds the longest one of a timer', async () => {
    await queue.work(1, look);
    await queue.wake(40 * DAY_MS);
    jest.advanceTimersByTime(20 * DAY_MS);
    expect(looks).toBe(0);
  });

  it('cause as many looks at a time as may run, and one look more when one of them has ended', async () => {
    await queue.work(2, look);
    for (let wakes = 0; wakes < 5; wakes += 1) await queue.wake();
    expect(looks).toBe(2);
    ends.shift()?.();
    await jest.advanceTimersByTimeAsync(0);
    expect(looks).toBe(3);
  });

  it('are ignored by a process that runs no slices', async () => {
    await queue.work(0, look);
    await queue.wake();
    expect(looks).toBe(0);
  });

  it('end when the queue is closed, also those with a delay', async () => {
    await queue.work(1, look);
    await queue.wake();
    await queue.wake();
    await queue.wake(1_000);
    await queue.close();
    await queue.wake(1_000);
    expect(jest.getTimerCount()).toBe(0);
    ends.shift()?.();
    await jest.advanceTimersByTimeAsync(2_000);
    expect([looks, jest.getTimerCount()]).toEqual([1, 0]);
  });
});
