import { randomUUID } from 'node:crypto';
import type { ValueSigner } from './cache-signatures.js';
import type { CacheWrites } from './cache-writes.js';
import { detached } from './memory-store.js';
import type { RedisConnection } from './redis-connection.js';
import { UNREADABLE, type RedisStore } from './redis-store.js';

/** Interval for reporting the use of local copies to Redis: shorter than entries stay on a busy server, far longer than the time between calls. */
const TOUCH_INTERVAL_MS = 10_000;
/** Per interval; further keys are not reported. */
const TOUCHED_KEYS_MAX = 10_000;
/** Batch size, so that other commands are not delayed behind them. */
const TOUCHES_AT_A_TIME = 500;
/** Evicted texts that are stored again per report. */
const RESTORED_MAX = 100;

/** The key expires in case the server stops before DEL. */
const WRITE_AND_READ = `
  redis.call('SET', KEYS[1], ARGV[1], 'PX', 10000)
  local found = redis.call('GET', KEYS[1])
  redis.call('DEL', KEYS[1])
  return found`;

/** The parts of a shared cache. */
export interface SharedParts {
  readonly connection: RedisConnection;
  readonly store: RedisStore;
  readonly signer: ValueSigner;
  readonly writes: CacheWrites;
}

/**
 * Large values in Redis or Valkey, stored as signed bytes. Readers cache copies in this process, and Redis does not see
 * reads of them; `touch` reports that use, so that Redis does not evict the most used values.
 */
export class SharedCache {
  /** By key, the function that stores the value again after an eviction. */
  private touched = new Map<string, () => Promise<unknown>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly parts: SharedParts | undefined) {}

  /**
   * Writes, reads and deletes a key in a script, as the rate limits do.
   *
   * @throws when Redis cannot be reached, or refuses because it is read-only, full or permits too little
   */
  async checkWritable(): Promise<void> {
    if (!this.parts) return;
    const value = randomUUID();
    const options = { keys: [`ct:health:${value}`], arguments: [value] };
    const found = await this.parts.connection.run((client) => client.eval(WRITE_AND_READ, options));
    if (found !== value) throw new Error('Redis did not return the written value.');
  }

  /** Reads values in one round trip: undefined for a missing one, `UNREADABLE` when the signature does not verify. */
  async read(keys: readonly string[]): Promise<(Buffer | typeof UNREADABLE | undefined)[]> {
    const { parts } = this;
    if (!parts || keys.length === 0) return keys.map(() => undefined);
    try {
      const values = await parts.connection.run((_client, bytes) => bytes.mGet([...keys]));
      return keys.map((key, index) => {
        const stored = values[index];
        return stored ? verified(parts.signer, key, stored) : undefined;
      });
    } catch {
      return keys.map(() => undefined);
    }
  }

  /** Whether each key exists; false when Redis is unavailable. */
  async present(keys: readonly string[]): Promise<boolean[]> {
    const { parts } = this;
    if (!parts || keys.length === 0) return keys.map(() => false);
    try {
      // One command when all of them exist, which is the common case.
      const count = await parts.connection.run((client) => client.exists([...keys]));
      if (count === 0 || count === new Set(keys).size) return keys.map(() => count > 0);
      const counts = await parts.connection.run((client) => Promise.all(keys.map((key) => client.exists(key))));
      return counts.map((present) => present === 1);
    } catch {
      return keys.map(() => false);
    }
  }

  /** Resolves to whether Redis accepted the value. */
  async write(key: string, value: Buffer, ttlSeconds: number): Promise<boolean> {
    const { parts } = this;
    if (!parts) return false;
    const stored = parts.signer.sign(key, value);
    const expiration = { type: 'EX', value: ttlSeconds } as const;
    return parts.writes.attempt(() => parts.connection.run((client) => client.set(key, stored, { expiration })));
  }

  /** Stores a small entry for this process only. */
  setLocally(key: string, value: Buffer, ttlSeconds: number): void {
    this.parts?.store.setLocally(key, value, ttlSeconds * 1000);
  }

  /**
   * Records that a local copy of this value was used. Records are batched, so no call waits for Redis.
   *
   * @param restore stores the value again if Redis has evicted it
   */
  touch(key: string, restore: () => Promise<unknown>): void {
    if (!this.parts || this.touched.size >= TOUCHED_KEYS_MAX) return;
    this.touched.set(key, restore);
    this.timer ??= setTimeout(() => void this.sendTouches(), TOUCH_INTERVAL_MS).unref();
  }

  /** Sends the collected records. */
  async sendTouches(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { touched, parts } = this;
    this.touched = new Map();
    const evicted: (() => Promise<unknown>)[] = [];
    const entries = [...touched];
    for (let start = 0; parts && start < entries.length; start += TOUCHES_AT_A_TIME) {
      const some = entries.slice(start, start + TOUCHES_AT_A_TIME);
      // One pipelined command per key: a single TOUCH returns only how many of its keys exist.
      const sent = parts.connection.run((client) => Promise.all(some.map(([key]) => client.touch(key))));
      const found = await sent.catch(() => undefined);
      // Redis is unavailable or does not permit TOUCH; not retried.
      if (!found) return;
      for (const [index, [, restore]] of some.entries()) if (found[index] === 0) evicted.push(restore);
    }
    for (const restore of evicted.slice(0, RESTORED_MAX)) await restore();
  }
}

function verified(signer: ValueSigner, key: string, stored: Buffer): Buffer | typeof UNREADABLE {
  const value = signer.verify(key, stored);
  if (!value) return UNREADABLE;
  // A short value is a slice of the network chunk that it arrived in, and would keep the whole chunk alive.
  return value.buffer.byteLength > 2 * value.byteLength ? detached(value) : value;
}
