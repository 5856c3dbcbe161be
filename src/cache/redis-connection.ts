import { randomUUID } from 'node:crypto';
import { lookup as lookUp, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type * as Redis from '@redis/client';

type Callback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/**
 * A `lookup` for sockets that looks a name up at most once at a time; concurrent callers share the result. A look-up occupies
 * one of the four threads of Node.js for as long as the name server takes, up to many seconds, also when the socket that
 * needed it is closed: a client that reconnects would occupy all of them, and every other look-up of the process would wait.
 */
export function sharedLookup(look: typeof lookUp = lookUp): LookupFunction {
  const waiting = new Map<string, Callback[]>();
  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options.all ?? false, options.family ?? 0, options.hints ?? 0]);
    const others = waiting.get(key);
    if (others) {
      others.push(callback);
      return;
    }
    waiting.set(key, [callback]);
    look(hostname, options, (error, address, family) => {
      const callbacks = waiting.get(key) ?? [];
      waiting.delete(key);
      for (const each of callbacks) each(error, address, family);
    });
  };
}

const CONNECT_TIMEOUT_MS = 1_000;
/** After this the server counts as unavailable: a caller is served faster without it. */
const COMMAND_TIMEOUT_MS = 1_000;
/** A reply to the periodic PING marks the server as available again on an open connection. */
const PING_INTERVAL_MS = 1_000;
/** A connection without traffic for this long is reopened. */
const IDLE_SOCKET_MAX_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

/** The key expires in case the server stops before DEL. */
const WRITE_AND_READ = `
  redis.call('SET', KEYS[1], ARGV[1], 'PX', 10000)
  local found = redis.call('GET', KEYS[1])
  redis.call('DEL', KEYS[1])
  return found`;

function connect(redis: typeof Redis, url: string) {
  return redis.createClient({
    url,
    // A command to an unavailable server fails immediately, as a cache miss, instead of being queued.
    disableOfflineQueue: true,
    pingInterval: PING_INTERVAL_MS,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: IDLE_SOCKET_MAX_MS,
      lookup: sharedLookup(),
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, RECONNECT_DELAY_MAX_MS),
    },
  });
}

type RedisClient = ReturnType<typeof connect>;

/** The same client, returning strings as Buffers. */
function withBufferReplies(redis: typeof Redis, client: RedisClient) {
  return client.withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer });
}

/** Eviction policies by recency or frequency of use. The others evict entries that are in use as readily. */
const GOOD_POLICIES = /^(?:allkeys|volatile)-(?:lru|lfu)$/;

/** The process's connection to Redis or Valkey. While the server is unavailable every command rejects immediately. */
export class RedisConnection implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(RedisConnection.name);
  private readonly client: RedisClient;
  private readonly bytes: ReturnType<typeof withBufferReplies>;
  private unavailable = false;
  private warnedOfPolicy: string | undefined;

  private constructor(
    private readonly redis: typeof Redis,
    url: string,
  ) {
    this.client = connect(redis, url);
    this.bytes = withBufferReplies(redis, this.client);
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

  /** Checks the eviction policy now and after each reconnect. */
  onApplicationBootstrap(): void {
    this.client.on('ready', () => void this.checkEvictionPolicy());
    if (this.client.isReady) void this.checkEvictionPolicy();
  }

  /** Whether an error is the server's reply to a command, as opposed to an unavailable server. */
  isRefusal(error: unknown): error is Error {
    return error instanceof this.redis.ErrorReply;
  }

  /**
   * Runs a command with a timeout for its reply. The client's own timeout only covers writing the command, so a connected
   * server that stops responding would delay every call.
   */
  async run<T>(
    command: (client: RedisClient, bytes: ReturnType<typeof withBufferReplies>) => Promise<T>,
    timeoutMs = COMMAND_TIMEOUT_MS,
  ): Promise<T> {
    if (this.unavailable) throw new Error('Redis is unavailable.');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`no response within ${timeoutMs} ms`);
        this.reportUnavailable(error);
        reject(error);
      }, timeoutMs);
    });
    return Promise.race([command(this.client, this.bytes), late]).finally(() => clearTimeout(timer));
  }

  /**
   * Writes, reads and deletes a key in a script, as the rate limits do.
   *
   * @throws when the server cannot be reached, or refuses because it is read-only, full or permits too little
   */
  async checkWritable(): Promise<void> {
    const value = randomUUID();
    const options = { keys: [`ct:health:${value}`], arguments: [value] };
    const found = await this.run((client) => client.eval(WRITE_AND_READ, options));
    if (found !== value) throw new Error('Redis did not return the written value.');
  }

  onApplicationShutdown(): void {
    // Commands that fail from here on are not logged.
    this.unavailable = true;
    this.client.destroy();
  }

  private async checkEvictionPolicy(): Promise<void> {
    // A server that does not permit INFO is not checked.
    const info = await this.run((client) => client.info('memory')).catch(() => '');
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
    const bounded = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0) > 0;
    if (!bounded || policy === undefined || GOOD_POLICIES.test(policy) || policy === this.warnedOfPolicy) return;
    this.warnedOfPolicy = policy;
    this.logger.warn({
      event: 'cache_eviction_policy',
      message:
        policy === 'noeviction'
          ? 'Redis has a memory limit and the policy noeviction, so it refuses writes when it is full. Set maxmemory-policy to allkeys-lru.'
          : `The eviction policy ${policy} of Redis removes entries and limits that are in use. Set maxmemory-policy to allkeys-lru.`,
    });
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
