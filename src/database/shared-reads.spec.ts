import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { SharedReads } from './shared-reads.js';

/** Queries that the test answers. */
class Queries {
  readonly sent: { ids: string[]; respond: (known?: string[]) => void; fail: () => void }[] = [];

  readonly readAll = (ids: string[]): Promise<ReadonlyMap<string, string>> =>
    new Promise((resolve, reject) => {
      const respond = (known = ids): void => resolve(new Map(known.map((id) => [id, `row ${id}`])));
      this.sent.push({ ids, respond, fail: () => reject(new Error('unavailable')) });
    });
}

let queries: Queries;
let reads: SharedReads<string>;
beforeEach(() => {
  jest.useFakeTimers();
  queries = new Queries();
  reads = new SharedReads(queries.readAll);
});
afterEach(() => void jest.useRealTimers());

const settled = (): Promise<void> => jest.advanceTimersByTimeAsync(0);
const sentIds = (): string[][] => queries.sent.map(({ ids }) => ids);

describe('reads', () => {
  it('of one moment share a query', async () => {
    const rows = Promise.all(['a', 'b', 'a'].map((id) => reads.read(id)));
    await settled();
    expect(sentIds()).toEqual([['a', 'b']]);
    queries.sent[0]?.respond(['b']);
    expect(await rows).toEqual([undefined, 'row b', undefined]);
  });

  it('that are requested while a query runs never join it, and share the next', async () => {
    const before = reads.read('a');
    await settled();
    const after = Promise.all([reads.read('a'), reads.read('b')]);
    await settled();
    expect(sentIds()).toEqual([['a']]);
    queries.sent[0]?.respond();
    expect(await before).toBe('row a');
    await settled();
    expect(sentIds()).toEqual([['a'], ['a', 'b']]);
    queries.sent[1]?.respond();
    expect(await after).toEqual(['row a', 'row b']);
  });

  it('do not wait for a query that hangs', async () => {
    void reads.read('a');
    await settled();
    const other = reads.read('b');
    await jest.advanceTimersByTimeAsync(10);
    queries.sent[1]?.respond();
    expect(await other).toBe('row b');
  });

  it('fail only with their own query', async () => {
    const failing = reads.read('a').catch(String);
    await settled();
    const other = reads.read('b');
    queries.sent[0]?.fail();
    expect(await failing).toBe('Error: unavailable');
    await settled();
    queries.sent[1]?.respond();
    expect(await other).toBe('row b');
  });

  it('are each answered by a query that started after them, in any order of events', async () => {
    const event = fc.oneof(
      fc.constantFrom('a', 'b', 'c').map((id) => ({ kind: 'read' as const, id })),
      fc.record({ kind: fc.constantFrom('respond' as const, 'fail' as const), at: fc.nat(20) }),
      fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(15) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
        let version = 0;
        const open: { ids: string[]; startedAt: number; end: (failed: boolean) => void }[] = [];
        const shared = new SharedReads<number>(
          (ids) =>
            new Promise((resolve, reject) => {
              const startedAt = version;
              const rows = new Map(ids.map((id) => [id, startedAt]));
              open.push({ ids, startedAt, end: (failed) => (failed ? reject(new Error()) : resolve(rows)) });
            }),
        );
        const results: Promise<boolean>[] = [];
        for (const one of events) {
          if (one.kind === 'read') {
            const requestedAt = (version += 1);
            const result = shared.read(one.id);
            results.push(
              result.then((startedAt) => startedAt !== undefined && startedAt >= requestedAt).catch(() => true),
            );
          } else if (one.kind === 'pass') await jest.advanceTimersByTimeAsync(one.ms);
          else open[one.at % Math.max(1, open.length)]?.end(one.kind === 'fail');
        }
        for (let round = 0; round <= events.length; round += 1) {
          for (const { end } of open) end(false);
          await jest.advanceTimersByTimeAsync(10);
        }
        expect(await Promise.all(results)).toEqual(results.map(() => true));
      }),
    );
  });
});
