import { Logger } from '@nestjs/common';
import { createClient, RESP_TYPES } from '@redis/client';
import type { KeyvStoreAdapter, StoredData } from 'keyv';

const CONNECT_TIMEOUT_MS = 1_000;
/** A cache that takes longer than this is worse than none: the command fails and counts as a miss. */
const COMMAND_TIMEOUT_MS = 1_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

function connect(url: string) {
  return createClient({
    url,
    // Away means a miss at once: commands are never queued for a server that may come back.
    disableOfflineQueue: true,
    commandOptions: { timeout: COMMAND_TIMEOUT_MS },
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, RECONNECT_DELAY_MAX_MS),
    },
  });
}

/**
 * A Keyv store in Redis or Valkey that keeps the values as the bytes they are: Keyv's own envelope would wrap and escape
 * them once more. Expiry is the server's. While the server is away every call rejects at once, which is a miss.
 */
export class RedisStore implements KeyvStoreAdapter {
  opts = {};
  namespace?: string;
  private readonly logger = new Logger(RedisStore.name);
  private readonly client: ReturnType<typeof connect>;
  private away = false;

  constructor(url: string) {
    this.client = connect(url);
    this.client.on('error', (error: Error) => this.report(error));
    this.client.on('ready', () => this.reportBack());
    // Reconnecting is the client's own affair; the service starts and works without a cache meanwhile.
    this.client.connect().catch((error: Error) => this.report(error));
  }

  /** Whether the server answers. */
  async ping(): Promise<void> {
    await this.client.ping();
  }

  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return stored<Value>(await this.bytes.get(key));
  }

  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    if (keys.length === 0) return [];
    return (await this.bytes.mGet(keys)).map((value) => stored<Value>(value));
  }

  async set(key: string, { value }: { value: Buffer }, ttlMs?: number): Promise<boolean> {
    await this.client.set(
      key,
      value,
      ttlMs === undefined ? {} : { expiration: { type: 'PX', value: Math.ceil(ttlMs) } },
    );
    return true;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.client.unlink(key)) > 0;
  }

  /** The server may be shared, so it is never emptied from here. */
  clear(): Promise<void> {
    return Promise.resolve();
  }

  on(): this {
    return this;
  }

  disconnect(): Promise<void> {
    this.client.destroy();
    return Promise.resolve();
  }

  private get bytes() {
    return this.client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  }

  private report(error: Error): void {
    if (this.away) return;
    this.away = true;
    this.logger.warn({
      event: 'cache_away',
      message: 'Redis is away; answers are not cached until it is back.',
      cause: error.message || error.name,
    });
  }

  private reportBack(): void {
    if (!this.away) return;
    this.away = false;
    this.logger.log({ event: 'cache_back', message: 'Redis is back.' });
  }
}

function stored<Value>(value: Buffer | null): StoredData<Value> | undefined {
  return value === null ? undefined : ({ value } as StoredData<Value>);
}
