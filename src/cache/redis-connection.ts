import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type * as Redis from '@redis/client';

const CONNECT_TIMEOUT_MS = 1_000;
/** Whoever waits longer than this does better without the server, which then counts as away. */
const COMMAND_TIMEOUT_MS = 1_000;
/** How often the server is asked whether it is there: its answer is what ends an absence on a living connection. */
const PING_INTERVAL_MS = 1_000;
/** A connection on which nothing moves for this long is made anew. */
const IDLE_SOCKET_MAX_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

function connect(redis: typeof Redis, url: string) {
  return redis.createClient({
    url,
    // Away means a miss at once: commands are never queued for a server that may come back.
    disableOfflineQueue: true,
    pingInterval: PING_INTERVAL_MS,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: IDLE_SOCKET_MAX_MS,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, RECONNECT_DELAY_MAX_MS),
    },
  });
}

export type RedisClient = ReturnType<typeof connect>;

/** The same client, whose strings come as the bytes that they are. */
function withBufferReplies(redis: typeof Redis, client: RedisClient) {
  return client.withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer });
}

/** The one connection of the process to Redis or Valkey. While the server is away, or silent, every command rejects at once. */
@Injectable()
export class RedisConnection implements OnApplicationShutdown {
  private readonly logger = new Logger(RedisConnection.name);
  private readonly client: RedisClient;
  private readonly bytes: ReturnType<typeof withBufferReplies>;
  private unavailable = false;

  private constructor(
    private readonly redis: typeof Redis,
    url: string,
  ) {
    this.client = connect(redis, url);
    this.bytes = withBufferReplies(redis, this.client);
    this.client.on('error', (error: Error) => this.reportUnavailable(error));
    this.client.on('ready', () => this.reportAvailable());
    this.client.on('ping-interval', () => this.reportAvailable());
    // Reconnecting is the client's own affair; the service starts and works without the server meanwhile.
    this.client.connect().catch((error: Error) => this.reportUnavailable(error));
  }

  /** The client is 400 files, which a service without a Redis does not load. */
  static async open(url: string): Promise<RedisConnection> {
    return new RedisConnection(await import('@redis/client'), url);
  }

  /** Calls `listener` each time that a connection is made, and now when one is there. */
  onReady(listener: () => void): void {
    this.client.on('ready', listener);
    if (this.client.isReady) listener();
  }

  /** Whether an error is the server's own word, and not its absence. */
  isRefusal(error: unknown): error is Error {
    return error instanceof this.redis.ErrorReply;
  }

  /**
   * Runs a command within its time. The client cannot do that: its own limit ends when a command is written, so that a
   * server that is connected and silent would hold up every call.
   */
  async run<T>(
    command: (client: RedisClient, bytes: ReturnType<typeof withBufferReplies>) => Promise<T>,
    timeoutMs = COMMAND_TIMEOUT_MS,
  ): Promise<T> {
    if (this.unavailable) throw new Error('Redis is unavailable.');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`no answer within ${timeoutMs} ms`);
        this.reportUnavailable(error);
        reject(error);
      }, timeoutMs);
    });
    return Promise.race([command(this.client, this.bytes), late]).finally(() => clearTimeout(timer));
  }

  onApplicationShutdown(): void {
    // What is cut off now is no absence to report.
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
