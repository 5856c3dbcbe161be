import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { CompleteLookups } from './complete-lookups.js';

beforeEach(() => {
  jest.useFakeTimers();
  // lru-cache takes a time of 0 for none.
  jest.advanceTimersByTime(1);
});
afterEach(() => void jest.useRealTimers());

/** A store whose keys are 0 and 1, and lookups of some of them; `looked` counts those that reached the store. */
class Store {
  readonly lookups = new CompleteLookups<number>();
  readonly values: (number | undefined)[] = [1, 2];
  looked = 0;
  private written = 2;

  write(key: number): void {
    this.values[key] = ++this.written;
    this.lookups.invalidate();
  }

  delete(key: number): void {
    this.values[key] = undefined;
    this.lookups.invalidate();
  }

  find(keys: readonly number[]): Promise<readonly (number | undefined)[]> {
    return this.lookups.find(keys.join(), async () => {
      this.looked++;
      const found = this.read(keys);
      // Time passes between the lookup and its result, in which others write.
      await Promise.resolve();
      return found;
    });
  }

  read(keys: readonly number[]): (number | undefined)[] {
    return keys.map((key) => this.values[key]);
  }
}

describe('CompleteLookups', () => {
  it('never returns what was replaced or deleted before the call, also while lookups run', async () => {
    const key = fc.integer({ min: 0, max: 1 });
    const step = fc.oneof(
      { weight: 2, arbitrary: fc.record({ find: fc.constantFrom([0], [0, 1]) }) },
      { weight: 1, arbitrary: fc.record({ write: key }) },
      { weight: 1, arbitrary: fc.record({ delete: key }) },
    );
    // A lookup takes some turns of the microtask queue.
    const pause = fc.constantFrom(0, 1, 2, 10);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(step, pause), { maxLength: 30 }), async (steps) => {
        const store = new Store();
        const running: Promise<void>[] = [];
        for (const [action, turns] of steps) {
          if ('find' in action) {
            const current = store.read(action.find);
            running.push(store.find(action.find).then((found) => expect(found).toEqual(current)));
          } else if ('write' in action) store.write(action.write);
          else store.delete(action.delete);
          for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        }
        await Promise.all(running);
      }),
      { numRuns: 500 },
    );
  });

  it('looks up once a second while nothing changes', async () => {
    const store = new Store();
    const first = await store.find([0, 1]);
    await jest.advanceTimersByTimeAsync(900);
    expect(await store.find([0, 1])).toBe(first);
    expect(store.looked).toBe(1);
    // It expired, which nobody reports.
    store.values[1] = undefined;
    await jest.advanceTimersByTimeAsync(101);
    expect(await store.find([0, 1])).toEqual([1, undefined]);
    expect(store.looked).toBe(2);
  });

  it('looks up again what was not complete', async () => {
    const store = new Store();
    store.delete(1);
    for (let calls = 0; calls < 3; calls++) expect(await store.find([0, 1])).toEqual([1, undefined]);
    expect(store.looked).toBe(3);
  });

  it('distinguishes lookups by key', async () => {
    const store = new Store();
    for (const keys of [[0], [1], [0, 1], [1, 0], [0]]) expect(await store.find(keys)).toEqual(store.read(keys));
    expect(store.looked).toBe(4);
  });

  it('keeps the results of the last hundred lookups', async () => {
    const lookups = new CompleteLookups<number>();
    let looked = 0;
    const find = (key: number): Promise<unknown> => lookups.find(`key ${key}`, () => Promise.resolve([++looked]));
    for (let key = 0; key <= 100; key++) await find(key);
    await find(1);
    expect(looked).toBe(101);
    await find(0);
    expect(looked).toBe(102);
  });

  it('does not keep a lookup that failed', async () => {
    const lookups = new CompleteLookups<number>();
    await expect(lookups.find('key', () => Promise.reject(new Error('closed')))).rejects.toThrow('closed');
    expect(await lookups.find('key', () => Promise.resolve([]))).toEqual([]);
  });
});
