import type { KeyvStoreAdapter, StoredData } from 'keyv';
import { LRUCache } from 'lru-cache';
import type { CacheWrites } from './cache-writes.js';
import { detached } from './memory-store.js';
import type { RedisConnection } from './redis-connection.js';
import type { ValueSigner } from './cache-signatures.js';

/** Returned for an entry whose signature does not verify, so that readers count it as unreadable. */
export const UNREADABLE = Symbol('unreadable');

type Found = Buffer | typeof UNREADABLE | undefined;

/** Precedes the value and is signed with it: the expiry in milliseconds of the epoch. */
const EXPIRY_BYTES = 8;

/**
 * A Keyv store for small entries in Redis or Valkey. Values are stored as signed bytes, without Keyv's envelope, which
 * would wrap and escape them. Redis expires them. A process serves its local copies of entries that Redis refused, and of
 * all entries while Redis is unavailable, so that it does not fetch and charge them again.
 */
export class RedisStore implements KeyvStoreAdapter {
  opts = {};
  namespace?: string;

  constructor(
    private readonly connection: RedisConnection,
    private readonly signer: ValueSigner,
    private readonly writes: CacheWrites,
    private readonly local: LocalEntries,
  ) {}

  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    const [found] = await this.find([key]);
    return asStored<Value>(found);
  }

  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    if (keys.length === 0) return [];
    const found = await this.find(keys);
    return found.map((value) => asStored<Value>(value));
  }

  async set(key: string, { value }: { value: Buffer }, ttlMs?: number): Promise<boolean> {
    const expiresAtMs = Date.now() + (ttlMs ?? Number.POSITIVE_INFINITY);
    const stored = this.signed(key, value, expiresAtMs);
    const options = ttlMs === undefined ? {} : { expiration: { type: 'PX', value: Math.ceil(ttlMs) } as const };
    const accepted = await this.writes.attempt(() => this.connection.run((client) => client.set(key, stored, options)));
    this.local.set(key, stored, stored.length - value.length, expiresAtMs, !accepted);
    return accepted;
  }

  /** Stores an entry for this process only, as if Redis had refused it. */
  setLocally(key: string, value: Buffer, ttlMs: number): void {
    const expiresAtMs = Date.now() + ttlMs;
    const stored = this.signed(key, value, expiresAtMs);
    this.local.set(key, stored, stored.length - value.length, expiresAtMs, true);
  }

  async delete(key: string): Promise<boolean> {
    this.local.delete(key);
    return this.writes.attempt(() => this.connection.run((client) => client.unlink(key)));
  }

  /** Does nothing: the server may be shared with others. */
  clear(): Promise<void> {
    return Promise.resolve();
  }

  on(): this {
    return this;
  }

  /** Does nothing: the connection is shared and closes with the application. */
  disconnect(): Promise<void> {
    return Promise.resolve();
  }

  private async find(keys: string[]): Promise<Found[]> {
    try {
      // Also for one key: for a key of another type MGET returns null, where GET fails.
      const values = await this.connection.run((_client, bytes) => bytes.mGet(keys));
      return keys.map((key, index) => this.read(key, values[index]));
    } catch {
      return keys.map((key) => this.local.last(key));
    }
  }

  private read(key: string, stored: Buffer | null | undefined): Found {
    // Newer than the entry in Redis, which refused to be replaced.
    const own = this.local.localOnly(key);
    if (own) return own;
    if (!stored) {
      this.local.delete(key);
      return undefined;
    }
    const known = this.local.verified(key, stored);
    if (known) return known;
    const signed = this.signer.verify(key, stored);
    if (!signed || signed.length < EXPIRY_BYTES) return UNREADABLE;
    const headBytes = stored.length - signed.length + EXPIRY_BYTES;
    return this.local.set(key, stored, headBytes, signed.readDoubleBE(0), false);
  }

  private signed(key: string, value: Buffer, expiresAtMs: number): Buffer {
    const bytes = Buffer.alloc(EXPIRY_BYTES + value.length);
    bytes.writeDoubleBE(expiresAtMs, 0);
    value.copy(bytes, EXPIRY_BYTES);
    return this.signer.sign(key, bytes);
  }
}

function asStored<Value>(value: Found): StoredData<Value> | undefined {
  return value === undefined ? undefined : ({ value } as StoredData<Value>);
}

/** Approximate overhead of an entry beside its bytes: the list nodes, the map slot, the Buffer objects, the record. */
const OVERHEAD_BYTES = 700;
/** Values that readers derive from an entry, such as parsed JSON, live as long as the entry and are larger. */
const DERIVED_FACTOR = 4;

interface LocalEntry {
  /** As stored in Redis, with the signature. */
  readonly stored: Buffer;
  /** The value within `stored`: the same Buffer as long as the stored bytes do not change, as readers memoize by it. */
  readonly value: Buffer;
  readonly expiresAtMs: number;
  /** True when Redis did not store it. */
  readonly localOnly: boolean;
}

/** Local copies of the small entries that this process last read from Redis or wrote, bounded in bytes. */
export class LocalEntries {
  private readonly entries: LRUCache<string, LocalEntry>;

  constructor(bytesMax: number) {
    this.entries = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ stored }, key) => DERIVED_FACTOR * stored.byteLength + 2 * key.length + OVERHEAD_BYTES,
    });
  }

  /** An unexpired entry that Redis did not store. */
  localOnly(key: string): Buffer | undefined {
    const entry = this.entries.get(key);
    return entry?.localOnly && entry.expiresAtMs > Date.now() ? entry.value : undefined;
  }

  /** The value of these bytes when they were already verified. */
  verified(key: string, stored: Buffer): Buffer | undefined {
    const entry = this.entries.get(key);
    return entry?.stored.equals(stored) ? entry.value : undefined;
  }

  /** The unexpired entry that was last read or written, for when Redis is unavailable. */
  last(key: string): Buffer | undefined {
    const entry = this.entries.get(key);
    return entry && entry.expiresAtMs > Date.now() ? entry.value : undefined;
  }

  /** @param headBytes length of `stored` before the value */
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
