import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MemoryStore } from './memory-store.js';

const bytes = (length: number): Buffer => Buffer.alloc(length, 0x61);

async function present(store: MemoryStore, keys: readonly string[]): Promise<string[]> {
  const values = await store.getMany<Buffer>([...keys]);
  return keys.filter((_key, index) => values[index] !== undefined);
}

describe('the cache in memory', () => {
  it('never exceeds its maximum size in bytes, whatever is stored', async () => {
    const bytesMax = 4_000;
    const entry = fc.record({
      key: fc.string({ maxLength: 40 }),
      length: fc.integer({ min: 0, max: 5_000 }),
      ttlMs: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 40 }), async (entries) => {
        const store = new MemoryStore(bytesMax);
        const keys = [...new Set(entries.map(({ key }) => key))];
        for (const { key, length, ttlMs } of entries) {
          await store.set(key, { value: bytes(length) }, ttlMs);
          const values = (await store.getMany<{ value: Buffer }>(keys)) as ({ value: Buffer } | undefined)[];
          const total = values.reduce((sum, stored) => sum + (stored ? stored.value.buffer.byteLength : 0), 0);
          expect(total).toBeLessThanOrEqual(bytesMax);
        }
      }),
    );
  });

  it('counts the overhead of empty entries', async () => {
    const store = new MemoryStore(10_000);
    const keys = Array.from({ length: 1_000 }, (_, index) => `key ${index}`);
    for (const key of keys) await store.set(key, { value: bytes(0) });
    expect((await present(store, keys)).length).toBeLessThan(50);
  });

  it('copies a slice, so that it does not keep a larger allocation alive', async () => {
    const store = new MemoryStore(100_000);
    const slice = Buffer.alloc(50_000, 'all').subarray(0, 3);
    await store.set('slice', { value: slice });
    const stored = (await store.get('slice')) as { value: Buffer };
    expect(stored.value.toString()).toBe('all');
    expect(stored.value.buffer.byteLength).toBe(3);
  });

  it('returns many keys in their order, with undefined for missing ones', async () => {
    const store = new MemoryStore(4_000);
    await store.set('a', { value: Buffer.from('A'), expires: 5 });
    await store.set('c', { value: Buffer.from('C') });
    const values = await store.getMany<Buffer>(['c', 'b', 'a']);
    expect(values).toEqual([{ value: Buffer.from('C') }, undefined, { value: Buffer.from('A'), expires: 5 }]);
  });
});
