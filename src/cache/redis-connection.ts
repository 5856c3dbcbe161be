import { setImmediate as nextTurn } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type * as Redis from '@redis/client';
import { withTimeout } from '../domain/waiting.js';

const CONNECT_TIMEOUT_MS = 1_000;
/** Without any reply for this long the server counts as unavailable: a caller is served faster without it. */
const SILENCE_MAX_MS = 1_000;
/** A reply to the periodic PING marks the server as available again on an open connection. */
const PING_INTERVAL_MS = 1_000;
/** A connection without traffic for this long is reopened. */
const IDLE_SOCKET_MAX_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

function connect(redis: typeof Redis, url: string) {
  return redis.createClient({
    url,
    // A command to an unavailable server fails immediately, as a cache miss, instead of being queued.
    disableOfflineQueue: true,
    pingInterval: PING_INTERVAL_MS,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: IDLE_SOCKET_MAX_MS,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, RECONNECT_DELAY_MAX_MS),
    },
  });
}

type RedisClient = ReturnType<typeof connect>;

/** The process's connection to Redis or Valkey. While the server is unavailable every command rejects immediately. */
export class RedisConnection implements OnApplicationShutdown {
  private readonly logger = new Logger(RedisConnection.name);
  private readonly client: RedisClient;
  private unavailable = false;
  private repliedAtMs = 0;

  private constructor(
    private readonly redis: typeof Redis,
    url: string,
  ) {
    this.client = connect(redis, url);
    this.client.on('error', (error: Error) => this.reportUnavailable(error));
    this.client.on('ready', () => this.reportAvailable());
    this.client.on('ping-interval', () => this.reportAvailable());
    // The client reconnects by itself; the service starts and runs without the server.
    this.client.connect().catch((error: Error) => this.reportUnavailable(error));
  }

  /** Imports the client on demand: its 400 files are not loaded without REDIS_URL. */
  static async open(url: string): Promise<RedisConnection> {
    return new RedisConnection(await import('@redis/client'), url);
  }

  /** Whether an error is the server's reply to a command, as opposed to an unavailable server. */
  isRefusal(error: unknown): error is Error {
    return error instanceof this.redis.ErrorReply;
  }

  /**
   * Runs a command, and waits while replies arrive: on a slow line its own follows those of others. The client's timeout
   * only covers writing the command, so a connected server that stops responding would delay every call.
   */
  async run<T>(command: (client: RedisClient) => Promise<T>): Promise<T> {
    if (this.unavailable) throw new Error('Redis is unavailable.');
    const reply = command(this.client)
      .finally(() => (this.repliedAtMs = performance.now()))
      .then((value) => ({ value }));
    for (let since = performance.now(), silentMs = 0; silentMs < SILENCE_MAX_MS;) {
      const result = await withTimeout(reply, SILENCE_MAX_MS - silentMs);
      if (result) return result.value;
      // After a stall of this process, replies that have arrived are read after the timers.
      await nextTurn();
      silentMs = performance.now() - Math.max(since, this.repliedAtMs);
    }
    const error = new Error(`no response within ${SILENCE_MAX_MS} ms`);
    this.reportUnavailable(error);
    throw error;
  }

  /** @throws when the server cannot be reached, or refuses because it is read-only, full or permits too little */
  async checkWritable(): Promise<void> {
    await this.run((client) => client.set('ct:health', '', { expiration: { type: 'PX', value: 1 } }));
  }

  onApplicationShutdown(): void {
    // Commands that fail from here on are not logged.
    this.unavailable = true;
    this.client.destroy();
  }

  private reportUnavailable(error: Error): void {
    if (this.unavailable) return;
    this.unavailable = true;
    this.logger.warn({
      event: 'cache_away',
      message: 'Redis is unavailable: caching and rate limits apply per process.',
      cause: error.message || error.name,
    });
  }

  private reportAvailable(): void {
    if (!this.unavailable) return;
    this.unavailable = false;
    this.logger.log({ event: 'cache_back', message: 'Redis is available again.' });
  }
}
