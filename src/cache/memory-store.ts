import type { KeyvStoreAdapter, StoredData } from 'keyv';
import { LRUCache } from 'lru-cache';
import { Gauge, type Registry } from 'prom-client';

/** The form in which Keyv passes a value to a store without a serializer; `expires` in milliseconds of the epoch. */
interface Stored {
  value: Buffer;
  expires?: number | undefined;
}

/** Approximate overhead of an entry beside its key and value: the list nodes, the map slot, the Buffer object. */
const OVERHEAD_BYTES = 450;

/** A Keyv store in memory, bounded in bytes; evicts the least recently used entry first. */
export class MemoryStore implements KeyvStoreAdapter {
  opts = {};
  namespace?: string;
  private readonly entries: LRUCache<string, Stored>;
  private readonly listeners: (() => void)[] = [];

  constructor(bytesMax: number) {
    this.entries = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ value }, key) => value.byteLength + 2 * key.length + OVERHEAD_BYTES,
    });
  }

  /** Calls the listener after an entry was stored, replaced, evicted or deleted; not when one expires. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Registers the gauges of its size; Redis exports its own. */
  registerMetrics(registry: Registry): void {
    const { entries } = this;
    new Gauge({
      name: 'ct_cache_size_bytes',
      help: 'Size of the cache in memory, keys and overhead included; absent with REDIS_URL.',
      registers: [registry],
      collect() {
        this.set(entries.calculatedSize);
      },
    });
    new Gauge({
      name: 'ct_cache_size_max_bytes',
      help: 'Maximum size of the cache in memory (CACHE_MAX_MEGABYTES); absent with REDIS_URL.',
      registers: [registry],
    }).set(entries.maxSize);
  }

  get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return Promise.resolve(this.entries.get(key) as StoredData<Value> | undefined);
  }

  getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return Promise.resolve(keys.map((key) => this.entries.get(key) as StoredData<Value | undefined>));
  }

  /** @param ttlMs time to live; an expired entry is removed when it is next read, or evicted as the least recently used */
  set(key: string, { value, expires }: Stored, ttlMs?: number): Promise<boolean> {
    this.entries.set(key, { value: detached(value), expires }, ttlMs === undefined ? {} : { ttl: ttlMs });
    this.reportChange();
    return Promise.resolve(true);
  }

  delete(key: string): Promise<boolean> {
    const deleted = this.entries.delete(key);
    this.reportChange();
    return Promise.resolve(deleted);
  }

  clear(): Promise<void> {
    this.entries.clear();
    this.reportChange();
    return Promise.resolve();
  }

  on(): this {
    return this;
  }

  private reportChange(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The bytes in their own allocation: a slice would keep the whole allocation that it belongs to alive. */
export function detached(value: Buffer): Buffer {
  if (value.buffer.byteLength === value.byteLength) return value;
  const copy = Buffer.allocUnsafeSlow(value.byteLength);
  value.copy(copy);
  return copy;
}
