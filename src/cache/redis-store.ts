import { Logger } from '@nestjs/common';
import type { KeyvStoreAdapter, StoredData } from 'keyv';
import type { Counter, Registry } from 'prom-client';
import { detached, waitForCache } from './cache-budget.js';
import { createCounter } from '../observability/metrics-registry.js';
import { RepeatedLines } from '../observability/logging/logger.js';
import type { MemoryStore, StoredValue } from './memory-store.js';
import type { RedisConnection } from './redis-connection.js';

/** Entries in one reply: few enough that replies follow each other on a slow line. */
const ENTRIES_PER_READ = 10;
/** Precedes a value: the time of its expiry, in milliseconds of the epoch. */
const EXPIRY_BYTES = 8;
/** By the type byte of strings in Redis' protocol, `$`. */
const STRINGS_AS_BUFFERS = { 36: Buffer } as const;
const LOG_INTERVAL_MS = 60_000;

/** `refused`: the server is read-only, full or permits too little. `unavailable`: it cannot be reached. */
export function countWriteFailures(registry: Registry): Counter<'reason'> {
  const help = 'Entries that the shared cache did not store: it refused them, or was unavailable.';
  return createCounter(registry, 'ct_cache_write_failures_total', help, { reason: ['refused', 'unavailable'] });
}

/**
 * A Keyv store in Redis or Valkey, behind a store in memory that it fills with what it reads. Values are stored as bytes,
 * without Keyv's envelope, which would wrap and escape them. Nothing rejects: an unavailable server has no entries, and what
 * it refuses to store stays in memory only.
 */
export class RedisStore implements KeyvStoreAdapter {
  opts = {};
  private readonly logger = new Logger(RedisStore.name);
  private readonly refusals = new RepeatedLines((line) => this.logger.warn(line), LOG_INTERVAL_MS);

  constructor(
    private readonly connection: RedisConnection,
    private readonly memory: MemoryStore,
    private readonly writeFailures: Counter<'reason'>,
  ) {}

  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    const [found] = await this.getMany<Value>([key]);
    return found as StoredData<Value> | undefined;
  }

  /** Sends all reads at once; those that are not answered in time are misses. */
  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    const found = new Map<string, StoredValue>();
    const reads: Promise<void>[] = [];
    for (let from = 0; from < keys.length; from += ENTRIES_PER_READ)
      reads.push(this.readPart(keys.slice(from, from + ENTRIES_PER_READ), found));
    await waitForCache(Promise.all(reads), keys.length);
    return keys.map((key) => found.get(key) as StoredData<Value | undefined>);
  }

  async set(key: string, { value, expires = Infinity }: StoredValue, ttlMs?: number): Promise<boolean> {
    const head = Buffer.alloc(EXPIRY_BYTES);
    head.writeDoubleBE(expires);
    const stored = Buffer.concat([head, value]);
    return (await waitForCache(this.write(key, stored, ttlMs))) ?? true;
  }

  private async write(key: string, stored: Buffer, ttlMs: number | undefined): Promise<boolean> {
    const options = ttlMs === undefined ? {} : { expiration: { type: 'PX', value: Math.ceil(ttlMs) } as const };
    try {
      await this.connection.run((client) => client.set(key, stored, options));
      return true;
    } catch (error) {
      const refused = this.connection.isRefusal(error);
      this.writeFailures.inc({ reason: refused ? 'refused' : 'unavailable' });
      // The connection itself logs that the server is unavailable.
      if (refused) {
        const message = 'Redis refuses writes: each process caches and limits calls by itself.';
        this.refusals.write('refused', { event: 'cache_writes_refused', message, cause: error.message });
      }
      return false;
    }
  }

  delete(key: string): Promise<boolean> {
    const deleted = this.connection.run((client) => client.unlink(key));
    return deleted.then(Boolean, () => false);
  }

  /** Does nothing: the server may be shared with others. */
  clear(): Promise<void> {
    return Promise.resolve();
  }

  on(): this {
    return this;
  }

  /** Also for one key: for a key of another type MGET returns null, where GET fails. */
  private async readPart(keys: string[], found: Map<string, StoredValue>): Promise<void> {
    const read = this.connection.run((client) => client.withTypeMapping(STRINGS_AS_BUFFERS).mGet(keys));
    const values = await read.catch(() => []);
    for (const [index, key] of keys.entries()) {
      const stored = values[index];
      if (stored) found.set(key, this.read(key, stored));
    }
  }

  private read(key: string, stored: Buffer): StoredValue {
    // Its own allocation: a slice would keep the network chunk alive that it arrived in.
    const value = detached(stored.subarray(EXPIRY_BYTES));
    const expires = stored.length < EXPIRY_BYTES ? NaN : stored.readDoubleBE(0);
    const ttlMs = expires - Date.now();
    // What others wrote is passed on as well, so that its reader counts it as unreadable.
    if (!(ttlMs > 0)) return { value };
    void this.memory.set(key, { value, expires }, ttlMs);
    return { value, expires };
  }
}
