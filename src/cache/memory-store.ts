import type { KeyvStoreAdapter, StoredData } from 'keyv';
import { LRUCache } from 'lru-cache';

/** What Keyv hands to a store without a serializer: the value and when it expires, in milliseconds of the epoch. */
interface Stored {
  value: Buffer;
  expires?: number | undefined;
}

/** Rough cost of an entry beside its key and value: the list nodes, the map slot, the Buffer object. */
const OVERHEAD_BYTES = 450;

/** A Keyv store in the process's memory, bounded by the bytes of what it holds; the least recently used goes first. */
export class MemoryStore implements KeyvStoreAdapter {
  opts = {};
  namespace?: string;
  private readonly entries: LRUCache<string, Stored>;

  constructor(bytesMax: number) {
    this.entries = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ value }, key) => value.byteLength + 2 * key.length + OVERHEAD_BYTES,
    });
  }

  /** What the entries take, keys and bookkeeping included. */
  get usedBytes(): number {
    return this.entries.calculatedSize;
  }

  get bytesMax(): number {
    return this.entries.maxSize;
  }

  get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return Promise.resolve(this.entries.get(key) as StoredData<Value> | undefined);
  }

  getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return Promise.resolve(keys.map((key) => this.entries.get(key) as StoredData<Value | undefined>));
  }

  /** @param ttlMs time to live; afterwards the entry is not found; its room is freed when it is asked for or its turn comes */
  set(key: string, { value, expires }: Stored, ttlMs?: number): Promise<boolean> {
    this.entries.set(key, { value: detached(value), expires }, ttlMs === undefined ? {} : { ttl: ttlMs });
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

/** The bytes in memory of their own: a slice of a larger allocation would keep all of that alive. */
export function detached(value: Buffer): Buffer {
  if (value.buffer.byteLength === value.byteLength) return value;
  const copy = Buffer.allocUnsafeSlow(value.byteLength);
  value.copy(copy);
  return copy;
}
