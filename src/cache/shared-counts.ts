import { Injectable, Logger } from '@nestjs/common';
import type { RedisConnection } from './redis-connection.js';

/** Two of these, one after the other, are what a call waits for at the most: a second. */
const TIMEOUT_MS = 500;

/**
 * Counts that all replicas share, in Redis or Valkey. Each step is a script, which the server runs as a whole, in one
 * round trip. When it cannot, the caller counts by itself.
 */
@Injectable()
export class SharedCounts {
  private readonly logger = new Logger(SharedCounts.name);
  private refused = false;

  constructor(private readonly redis: RedisConnection | undefined) {}

  /** Whether there is a server to count in, even if it is away. */
  get configured(): boolean {
    return this.redis !== undefined;
  }

  /** The numbers that the script answers; undefined when there is no server, or when it is away or refuses. */
  async run(script: string, key: string, args: readonly (string | number)[]): Promise<number[] | undefined> {
    if (!this.redis) return undefined;
    const options = { keys: [key], arguments: args.map(String) };
    try {
      const reply = await this.redis.run((client) => client.eval(script, options), TIMEOUT_MS);
      this.refused = false;
      return Array.isArray(reply) ? reply.map(Number) : undefined;
    } catch (error) {
      // An absence is told by the connection; that a server is there and refuses (full, read-only) only here.
      if (this.redis.isRefusal(error)) this.reportUnavailable(error);
      return undefined;
    }
  }

  private reportUnavailable(error: Error): void {
    if (this.refused) return;
    this.refused = true;
    this.logger.warn({
      event: 'limits_by_process',
      message: 'Redis does not count; until it does again calls are counted by each process alone.',
      cause: error.message,
    });
  }
}
