import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CompletionOrder } from './transcript-delivery.js';

describe('CompletionOrder', () => {
  it('yields each promise once, in the order in which they settle, awaited or not', async () => {
    const plan = fc
      .integer({ min: 0, max: 12 })
      .chain((count) =>
        fc.record({ order: fc.shuffledSubarray([...Array(count).keys()], { minLength: count }), early: fc.nat(count) }),
      );
    await fc.assert(
      fc.asyncProperty(plan, async ({ order, early }) => {
        const resolvers: ((value: number) => void)[] = [];
        const finishing = new CompletionOrder<number>();
        order.forEach(() => finishing.add(new Promise<number>((resolve) => resolvers.push(resolve))));
        for (const index of order.slice(0, early)) resolvers[index]?.(index);
        await Promise.resolve();
        const given: number[] = [];
        const reading = (async () => {
          for (const next of finishing) given.push(await next);
        })();
        for (const index of order.slice(early)) resolvers[index]?.(index);
        await reading;
        expect(given).toEqual(order);
      }),
    );
  });

  it('yields rejected promises', async () => {
    const finishing = new CompletionOrder<number>();
    finishing.add(Promise.reject(new Error('no')));
    const [first] = finishing;
    await expect(first).rejects.toThrow('no');
  });
});
