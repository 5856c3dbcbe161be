import { Logger } from '@nestjs/common';
import type { RedisConnection } from './redis-connection.js';

/** Why a write failed: the server refused it (read-only, full, no permission), or it cannot be reached. */
export const WRITE_FAILURES = ['refused', 'unavailable'] as const;
export type WriteFailure = (typeof WRITE_FAILURES)[number];

/** A server that accepts some writes and refuses others is not logged more often than this. */
const LOG_INTERVAL_MS = 60_000;

/** Writes to the shared cache: counts those that fail, and logs a refusal once and not for each entry. */
export class CacheWrites {
  readonly failures: Record<WriteFailure, number> = { refused: 0, unavailable: 0 };
  private readonly logger = new Logger(CacheWrites.name);
  private refused = false;
  private loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly connection: Pick<RedisConnection, 'isRefusal'> | undefined) {}

  /** Runs one write; resolves to whether it succeeded. */
  async attempt(write: () => Promise<unknown>): Promise<boolean> {
    try {
      await write();
      this.reportAccepted();
      return true;
    } catch (error) {
      if (this.connection?.isRefusal(error)) this.reportRefused(error);
      // That the server cannot be reached is reported by the connection.
      else this.failures.unavailable += 1;
      return false;
    }
  }

  private reportRefused(error: Error): void {
    this.failures.refused += 1;
    if (this.refused || performance.now() - this.loggedAtMs < LOG_INTERVAL_MS) return;
    this.refused = true;
    this.loggedAtMs = performance.now();
    this.logger.warn({
      event: 'cache_writes_refused',
      message: 'Redis refuses writes: until it accepts them each process caches only in its own memory.',
      cause: error.message,
    });
  }

  private reportAccepted(): void {
    if (!this.refused) return;
    this.refused = false;
    this.logger.log({ event: 'cache_writes_accepted', message: 'Redis accepts writes again.' });
  }
}
