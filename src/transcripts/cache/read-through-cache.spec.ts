import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { CacheModule } from '../../cache/cache.module.js';
import { Environment } from '../../config/environment.js';
import { Call } from '../call.js';
import { ReadThroughCache } from './read-through-cache.js';
import { KeyedCodec } from './keyed-codec.js';
import { TranscriptMetrics } from '../transcript-metrics.js';

const schema = z.object({ name: z.string(), sizes: z.array(z.number()) });
const harbour = { name: 'Harbour', sizes: [1, 2] };

let module: TestingModule;
let cache: Cache;
let entries: ReadThroughCache<typeof harbour>;
let loads: number;
let call: Call;

const load =
  (value: typeof harbour = harbour) =>
  () => {
    loads++;
    return Promise.resolve(value);
  };

beforeAll(async () => {
  module = await Test.createTestingModule({ imports: [CacheModule.forRoot(new Environment())] }).compile();
  cache = module.get<Cache>(CACHE_MANAGER);
  call = new Call(60);
});
afterAll(async () => {
  call.finish();
  await module.close();
});
beforeEach(async () => {
  await cache.clear();
  entries = new ReadThroughCache('uploads', 120, schema, cache, new TranscriptMetrics(new Registry()));
  loads = 0;
});

describe('ReadThroughCache', () => {
  it('loads a value once and stores it for its time to live', async () => {
    const beforeMs = Date.now();
    expect(await entries.get('key', call, load())).toEqual(harbour);
    const afterMs = Date.now();
    expect(await entries.get('key', call, load({ name: 'Other', sizes: [] }))).toEqual(harbour);
    expect(loads).toBe(1);
    const endsAtMs = (await cache.ttl('key')) ?? 0;
    expect(endsAtMs).toBeGreaterThanOrEqual(beforeMs + 120_000);
    expect(endsAtMs).toBeLessThanOrEqual(afterMs + 120_000);
  });

  it('loads a value once for concurrent calls', async () => {
    const outcomes = await Promise.all([1, 2, 3].map(() => entries.get('key', call, load())));
    expect(outcomes).toEqual([harbour, harbour, harbour]);
    expect(loads).toBe(1);
  });

  it('replaces a value that does not serve the call', async () => {
    await entries.get('key', call, load());
    const larger = { name: 'Harbour', sizes: [1, 2, 3] };
    const serves = ({ sizes }: typeof harbour): boolean => sizes.length >= 3;
    expect(await entries.get('key', call, load(larger), { serves, purpose: '3' })).toEqual(larger);
    expect(await entries.get('key', call, load(), { serves, purpose: '3' })).toEqual(larger);
    expect(loads).toBe(2);
  });

  it('stores nothing when loading fails', async () => {
    const failing = (): Promise<never> => Promise.reject(new Error('unavailable'));
    await expect(entries.get('key', call, failing)).rejects.toThrow('unavailable');
    expect(await entries.get('key', call, load())).toEqual(harbour);
  });

  it('loads the value when the stored one is unreadable, for any stored value', async () => {
    const stored = new KeyedCodec(schema, () => undefined).write('key', harbour);
    const others = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      fc.json({ maxDepth: 2 }).map((json) => Buffer.from(json)),
      fc.constantFrom(...[...Array(20).keys()].map((end) => stored.subarray(0, end))),
      fc.constantFrom<unknown>('text', 5, { name: 'Harbour', sizes: [] }, [harbour]),
    );
    await fc.assert(
      fc.asyncProperty(others, async (value) => {
        await cache.set('key', value, 60_000);
        expect(await entries.get('key', call, load())).toEqual(harbour);
      }),
    );
  });
});
