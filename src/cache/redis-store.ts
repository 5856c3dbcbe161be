import { Logger } from '@nestjs/common';
import { createClient, RESP_TYPES } from '@redis/client';
import type { KeyvStoreAdapter, StoredData } from 'keyv';

const CONNECT_TIMEOUT_MS = 1_000;
/** A cache that takes longer than this is worse than none: it is a miss, and the server counts as away. */
const COMMAND_TIMEOUT_MS = 1_000;
/** How often the server is asked whether it is there: its answer is what ends an absence on a living connection. */
const PING_INTERVAL_MS = 1_000;
/** A connection on which nothing moves for this long is made anew. */
const SILENCE_MAX_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

function connect(url: string) {
  return createClient({
    url,
    // Away means a miss at once: commands are never queued for a server that may come back.
    disableOfflineQueue: true,
    pingInterval: PING_INTERVAL_MS,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENCE_MAX_MS,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, RECONNECT_DELAY_MAX_MS),
    },
  });
}

/**
 * A Keyv store in Redis or Valkey that keeps the values as the bytes they are: Keyv's own envelope would wrap and escape
 * them once more. Expiry is the server's. While the server is away, or silent, every call rejects at once, which is a
 * miss.
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
    this.client.on('ping-interval', () => this.reportBack());
    // Reconnecting is the client's own affair; the service starts and works without a cache meanwhile.
    this.client.connect().catch((error: Error) => this.report(error));
  }

  /** Whether the server answers. */
  async ping(): Promise<void> {
    await this.ask(() => this.client.ping());
  }

  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return stored<Value>(await this.ask(() => this.bytes.get(key)));
  }

  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    if (keys.length === 0) return [];
    return (await this.ask(() => this.bytes.mGet(keys))).map((value) => stored<Value>(value));
  }

  async set(key: string, { value }: { value: Buffer }, ttlMs?: number): Promise<boolean> {
    const options = ttlMs === undefined ? {} : { expiration: { type: 'PX', value: Math.ceil(ttlMs) } as const };
    await this.ask(() => this.client.set(key, value, options));
    return true;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.ask(() => this.client.unlink(key))) > 0;
  }

  /** The server may be shared, so it is never emptied from here. */
  clear(): Promise<void> {
    return Promise.resolve();
  }

  on(): this {
    return this;
  }

  disconnect(): Promise<void> {
    // What is cut off now is no absence to report.
    this.away = true;
    this.client.destroy();
    return Promise.resolve();
  }

  private get bytes() {
    return this.client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  }

  /**
   * Runs a command within its time. The client cannot do that: its own limit ends when a command is written, so that a
   * server that is connected and silent would hold up every call.
   */
  private async ask<T>(command: () => Promise<T>): Promise<T> {
    if (this.away) throw new Error('Redis is away.');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`no answer within ${COMMAND_TIMEOUT_MS} ms`);
        this.report(error);
        reject(error);
      }, COMMAND_TIMEOUT_MS);
    });
    return Promise.race([command(), late]).finally(() => clearTimeout(timer));
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
