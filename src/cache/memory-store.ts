import type { KeyvStoreAdapter, StoredData } from 'keyv';
import { LRUCache } from 'lru-cache';
import type { Registry } from 'prom-client';
import { detached } from './cache-budget.js';
import { createGauge } from '../observability/metrics-registry.js';

/** The form in which Keyv passes a value to a store without a serializer; `expires` in milliseconds of the epoch. */
export interface StoredValue {
  value: Buffer;
  expires?: number | undefined;
}

/** Approximate overhead of an entry beside its key and value: the list nodes, the map slot, the Buffer object. */
const OVERHEAD_BYTES = 450;

/** A Keyv store in memory, bounded in bytes; evicts the least recently used entry first. */
export class MemoryStore implements KeyvStoreAdapter {
  opts = {};
  private readonly entries: LRUCache<string, StoredValue>;

  constructor(bytesMax: number) {
    this.entries = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ value }, key) => value.byteLength + 2 * key.length + OVERHEAD_BYTES,
    });
  }

  registerMetrics(registry: Registry): void {
    const { entries } = this;
    const size = 'Size of the cache in memory, keys and overhead included.';
    createGauge(registry, 'ct_cache_size_bytes', size, () => entries.calculatedSize);
    const maxSize = 'Maximum size of the cache in memory (CACHE_MAX_MEGABYTES).';
    createGauge(registry, 'ct_cache_size_max_bytes', maxSize, () => entries.maxSize);
  }

  get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return Promise.resolve(this.entries.get(key) as StoredData<Value> | undefined);
  }

  getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return Promise.resolve(keys.map((key) => this.entries.get(key) as StoredData<Value | undefined>));
  }

  /** @param ttlMs time to live; an expired entry is removed when it is next read, or evicted as the least recently used */
  set(key: string, { value, expires }: StoredValue, ttlMs?: number): Promise<boolean> {
    this.entries.set(key, { value: detached(value), expires }, ttlMs === undefined ? {} : { ttl: Math.ceil(ttlMs) });
    return Promise.resolve(true);
  }

  delete(key: string): Promise<boolean> {
    return Promise.resolve(this.entries.delete(key));
  }

  clear(): Promise<void> {
    this.entries.clear();
    return Promise.resolve();
  }

  on(): this {
    return this;
  }
}
