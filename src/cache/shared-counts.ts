import { Injectable, Logger } from '@nestjs/common';
import type { RedisConnection } from './redis-connection.js';

/** A call runs at most two scripts one after the other, so it waits at most one second. */
const TIMEOUT_MS = 500;

/**
 * Counters that all replicas share, in Redis or Valkey. Each operation is a script, which is atomic and takes one round
 * trip. When Redis is unavailable, the caller counts in its own process.
 */
@Injectable()
export class SharedCounts {
  private readonly logger = new Logger(SharedCounts.name);
  private refused = false;

  constructor(private readonly redis: RedisConnection | undefined) {}

  /** Whether REDIS_URL is set; the server may still be unavailable. */
  get configured(): boolean {
    return this.redis !== undefined;
  }

  /** The numbers that the script returns; undefined without a server, and when it is unavailable or refuses. */
  async run(script: string, key: string, args: readonly (string | number)[]): Promise<number[] | undefined> {
    if (!this.redis) return undefined;
    const options = { keys: [key], arguments: args.map(String) };
    try {
      const reply = await this.redis.run((client) => client.eval(script, options), TIMEOUT_MS);
      this.refused = false;
      return Array.isArray(reply) ? reply.map(Number) : undefined;
    } catch (error) {
      // The connection logs an unavailable server; a refusal (full, read-only) is logged here.
      if (this.redis.isRefusal(error)) this.reportUnavailable(error);
      return undefined;
    }
  }

  private reportUnavailable(error: Error): void {
    if (this.refused) return;
    this.refused = true;
    this.logger.warn({
      event: 'limits_by_process',
      message: 'Redis refuses scripts: rate limits apply per process until it accepts them.',
      cause: error.message,
    });
  }
}
