import { describe, expect, it } from '@jest/globals';
import { until } from '../../test/until.js';
import { LocalSliceQueue } from './slice-queue.js';

/** A queue whose looks end when the test lets them. */
async function heldLooks(concurrency: number) {
  const queue = new LocalSliceQueue();
  const held: (() => void)[] = [];
  let started = 0;
  await queue.work(concurrency, () => {
    started++;
    return new Promise((resolve) => held.push(resolve));
  });
  return { queue, started: () => started, end: () => held.shift()?.() };
}

describe('LocalSliceQueue', () => {
  it('runs no more looks at a time than it may, and another for a wake-up meanwhile', async () => {
    const { queue, started, end } = await heldLooks(2);
    for (let wake = 0; wake < 5; wake++) await queue.wake();
    expect(started()).toBe(2);
    end();
    await until(() => started() === 3);
    end();
    await until(() => started() === 4);
    end();
    end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(started()).toBe(4);
  });

  it('wakes after a delay', async () => {
    const { queue, started } = await heldLooks(1);
    await queue.wake(10);
    expect(started()).toBe(0);
    await until(() => started() === 1);
  });

  it('looks no more after it was closed', async () => {
    const { queue, started } = await heldLooks(1);
    await queue.wake(1);
    await queue.close();
    await queue.wake();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(started()).toBe(0);
  });
});
