import type { KeyvStoreAdapter, StoredData } from 'keyv';
import type { CacheWrites } from './cache-writes.js';
import type { LocalEntries } from './local-entries.js';
import type { RedisConnection } from './redis-connection.js';
import type { ValueSigner } from './value-signer.js';

/** Returned for an entry whose signature does not verify: it is there, and readers count it as unreadable. */
export const UNREADABLE = Symbol('unreadable');

type Found = Buffer | typeof UNREADABLE | undefined;

/** Before the value, inside of what is signed: when it expires, in milliseconds of the epoch. */
const EXPIRY_BYTES = 8;

/**
 * A Keyv store for the small entries, in Redis or Valkey. Values are stored as bytes, signed; Keyv's own envelope would
 * wrap and escape them once more. Redis expires them. A process serves its own copies of what Redis does not accept,
 * and of everything while Redis is unavailable, so that the same process does not fetch and bill it again.
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

  /** Stores an entry for this process alone, as if Redis had refused it. */
  setLocally(key: string, value: Buffer, ttlMs: number): void {
    const expiresAtMs = Date.now() + ttlMs;
    const stored = this.signed(key, value, expiresAtMs);
    this.local.set(key, stored, stored.length - value.length, expiresAtMs, true);
  }

  async delete(key: string): Promise<boolean> {
    this.local.delete(key);
    return this.writes.attempt(() => this.connection.run((client) => client.unlink(key)));
  }

  /** The server may be shared, so it is never emptied from here. */
  clear(): Promise<void> {
    return Promise.resolve();
  }

  on(): this {
    return this;
  }

  /** The connection has other users, and closes when the application does. */
  disconnect(): Promise<void> {
    return Promise.resolve();
  }

  private async find(keys: string[]): Promise<Found[]> {
    try {
      // Also for one key: MGET finds nothing under a key of another type, where GET is an error.
      const values = await this.connection.run((_client, bytes) => bytes.mGet(keys));
      return keys.map((key, index) => this.read(key, values[index]));
    } catch {
      return keys.map((key) => this.local.last(key));
    }
  }

  private read(key: string, stored: Buffer | null | undefined): Found {
    // Newer than what Redis has: it is what Redis refused to replace that with.
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
