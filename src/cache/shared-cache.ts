import { randomUUID } from 'node:crypto';
import type { CacheWrites } from './cache-writes.js';
import { detached } from './memory-store.js';
import type { RedisConnection } from './redis-connection.js';
import { UNREADABLE, type RedisStore } from './redis-store.js';
import type { ValueSigner } from './value-signer.js';

/** How often the use of copies is reported to Redis: far more often than a busy server evicts, far less than calls come. */
const TOUCH_INTERVAL_MS = 10_000;
/** Of one interval; more than these are not reported. */
const TOUCHED_KEYS_MAX = 10_000;
/** Sent at a time, so that other commands are not held up behind them. */
const TOUCHES_AT_A_TIME = 500;
/** Evicted texts that are stored again after one report. */
const RESTORED_MAX = 100;

/** The key expires by itself in case that the server stops half-way. */
const WRITE_AND_READ = `
  redis.call('SET', KEYS[1], ARGV[1], 'PX', 10000)
  local found = redis.call('GET', KEYS[1])
  redis.call('DEL', KEYS[1])
  return found`;

/** What a shared cache consists of; undefined where the cache is in this process's memory. */
export interface SharedParts {
  readonly connection: RedisConnection;
  readonly store: RedisStore;
  readonly signer: ValueSigner;
  readonly writes: CacheWrites;
}

/**
 * The large values in Redis or Valkey: stored as bytes, signed, and never copied by this class. Their readers keep copies
 * in this process, whose use Redis cannot see; it is reported here, so that Redis does not evict what is used most.
 */
export class SharedCache {
  /** By key, what stores the value again when Redis has evicted it. */
  private touched = new Map<string, () => Promise<unknown>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly parts: SharedParts | undefined) {}

  /** Whether the cache is shared with other processes. */
  get configured(): boolean {
    return this.parts !== undefined;
  }

  /**
   * Writes a key, reads it back and deletes it, in a script as the limits run them.
   *
   * @throws when Redis cannot be reached, or refuses: it is read-only, full, or permits too little
   */
  async checkWritable(): Promise<void> {
    if (!this.parts) return;
    const value = randomUUID();
    const options = { keys: [`ct:health:${value}`], arguments: [value] };
    const found = await this.parts.connection.run((client) => client.eval(WRITE_AND_READ, options));
    if (found !== value) throw new Error('Redis does not return what was written.');
  }

  /** Values in one round trip: undefined where there is none, `UNREADABLE` where a signature does not verify. */
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

  /** Whether each key exists, without its value; false when Redis cannot be asked. */
  async present(keys: readonly string[]): Promise<boolean[]> {
    const { parts } = this;
    if (!parts || keys.length === 0) return keys.map(() => false);
    try {
      // One command when all of them exist, which is the usual case.
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

  /** Stores a small entry for this process alone: other processes could not use it. */
  setLocally(key: string, value: Buffer, ttlSeconds: number): void {
    this.parts?.store.setLocally(key, value, ttlSeconds * 1000);
  }

  /**
   * Reports that a copy of this value was used. Costs the call nothing: reports are collected and sent together.
   *
   * @param restore stores the value again, in case that Redis has evicted it
   */
  touch(key: string, restore: () => Promise<unknown>): void {
    if (!this.parts || this.touched.size >= TOUCHED_KEYS_MAX) return;
    this.touched.set(key, restore);
    this.timer ??= setTimeout(() => void this.sendTouches(), TOUCH_INTERVAL_MS).unref();
  }

  /** Sends what `touch` has collected. */
  async sendTouches(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { touched, parts } = this;
    this.touched = new Map();
    const evicted: (() => Promise<unknown>)[] = [];
    const entries = [...touched];
    for (let start = 0; parts && start < entries.length; start += TOUCHES_AT_A_TIME) {
      const some = entries.slice(start, start + TOUCHES_AT_A_TIME);
      // One command each, sent together: a command for all of them would only count those that it found.
      const sent = parts.connection.run((client) => Promise.all(some.map(([key]) => client.touch(key))));
      const found = await sent.catch(() => undefined);
      // Redis is unavailable, or does not permit it; these are not worth sending twice.
      if (!found) return;
      for (const [index, [, restore]] of some.entries()) if (found[index] === 0) evicted.push(restore);
    }
    for (const restore of evicted.slice(0, RESTORED_MAX)) await restore();
  }
}

function verified(signer: ValueSigner, key: string, stored: Buffer): Buffer | typeof UNREADABLE {
  const value = signer.verify(key, stored);
  if (!value) return UNREADABLE;
  // A short value is a slice of the chunk that it was received in, and would keep all of that alive.
  return value.buffer.byteLength > 2 * value.byteLength ? detached(value) : value;
}
