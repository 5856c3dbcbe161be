import { LRUCache } from 'lru-cache';
import { detached } from './memory-store.js';

/** Rough cost of an entry beside its bytes: the list nodes, the map slot, the Buffer objects, the record itself. */
const OVERHEAD_BYTES = 700;
/** What readers derive from a value, such as parsed JSON, lives as long as the value and takes more room than it. */
const DERIVED_FACTOR = 4;

interface LocalEntry {
  /** As it is stored in Redis, signature included. */
  readonly stored: Buffer;
  /** The part of `stored` that readers get: the same Buffer for as long as the stored bytes stay the same. */
  readonly value: Buffer;
  readonly expiresAtMs: number;
  /** True for what Redis did not accept, and so does not have. */
  readonly localOnly: boolean;
}

/** Copies, bounded in bytes, of the small entries that this process read from Redis or wrote last. */
export class LocalEntries {
  private readonly entries: LRUCache<string, LocalEntry>;

  constructor(bytesMax: number) {
    this.entries = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ stored }, key) => DERIVED_FACTOR * stored.byteLength + 2 * key.length + OVERHEAD_BYTES,
    });
  }

  /** The entry that Redis did not accept, while it has not expired. */
  localOnly(key: string): Buffer | undefined {
    const entry = this.entries.get(key);
    return entry?.localOnly && entry.expiresAtMs > Date.now() ? entry.value : undefined;
  }

  /** The verified value of these bytes, when they are the ones that were verified last. */
  verified(key: string, stored: Buffer): Buffer | undefined {
    const entry = this.entries.get(key);
    return entry?.stored.equals(stored) ? entry.value : undefined;
  }

  /** What was stored last, while it has not expired: for when Redis cannot be asked. */
  last(key: string): Buffer | undefined {
    const entry = this.entries.get(key);
    return entry && entry.expiresAtMs > Date.now() ? entry.value : undefined;
  }

  /** @param headBytes how much of `stored` comes before the value */
  set(key: string, stored: Buffer, headBytes: number, expiresAtMs: number, localOnly: boolean): Buffer {
    const own = detached(stored);
    const value = own.subarray(headBytes);
    this.entries.set(key, { stored: own, value, expiresAtMs, localOnly });
    return value;
  }

  delete(key: string): void {
    this.entries.delete(key);
  }
}
