import type { KeyvStoreAdapter, StoredData } from 'keyv';
import type { RedisConnection } from './redis-connection.js';

/**
 * A Keyv store in Redis or Valkey that keeps the values as the bytes they are: Keyv's own envelope would wrap and escape
 * them once more. Expiry is the server's. While the server is away, or silent, every call rejects at once, which is a
 * miss.
 */
export class RedisStore implements KeyvStoreAdapter {
  opts = {};
  namespace?: string;

  constructor(private readonly connection: RedisConnection) {}

  /** Whether the server answers. */
  async ping(): Promise<void> {
    await this.connection.run((client) => client.ping());
  }

  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return stored<Value>(await this.connection.run((_client, bytes) => bytes.get(key)));
  }

  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    if (keys.length === 0) return [];
    const values = await this.connection.run((_client, bytes) => bytes.mGet(keys));
    return values.map((value) => stored<Value>(value));
  }

  /** In one command when all are there. */
  async hasMany(keys: string[]): Promise<boolean[]> {
    if (keys.length === 0) return [];
    const count = await this.connection.run((client) => client.exists(keys));
    if (count === 0 || count === new Set(keys).size) return keys.map(() => count > 0);
    const counts = await this.connection.run((client) => Promise.all(keys.map((key) => client.exists(key))));
    return counts.map((present) => present === 1);
  }

  async set(key: string, { value }: { value: Buffer }, ttlMs?: number): Promise<boolean> {
    const options = ttlMs === undefined ? {} : { expiration: { type: 'PX', value: Math.ceil(ttlMs) } as const };
    await this.connection.run((client) => client.set(key, value, options));
    return true;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.connection.run((client) => client.unlink(key))) > 0;
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
}

function stored<Value>(value: Buffer | null): StoredData<Value> | undefined {
  return value === null ? undefined : ({ value } as StoredData<Value>);
}
