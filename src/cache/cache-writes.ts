import { Logger } from '@nestjs/common';
import { Counter } from 'prom-client';
import type { RedisConnection } from './redis-connection.js';

/** Minimum interval between logged refusals, for a server that accepts some writes and refuses others. */
const LOG_INTERVAL_MS = 60_000;

/** Writes to the shared cache: counts failed writes, and logs refusals once rather than per entry. */
export class CacheWrites {
  /** `refused`: the server is read-only, full or permits too little. `unavailable`: it cannot be reached. */
  readonly failures = new Counter({
    name: 'ct_cache_write_failures_total',
    help: 'Entries that the shared cache did not store: it refused them, or was unavailable.',
    labelNames: ['reason'],
    registers: [],
  });
  private readonly logger = new Logger(CacheWrites.name);
  private refused = false;
  private loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly connection: Pick<RedisConnection, 'isRefusal'> | undefined) {
    // A series that starts with its first increment hides that increment from rate().
    for (const reason of ['refused', 'unavailable']) this.failures.inc({ reason }, 0);
  }

  /** Runs one write; resolves to whether it succeeded. */
  async attempt(write: () => Promise<unknown>): Promise<boolean> {
    try {
      await write();
      this.reportAccepted();
      return true;
    } catch (error) {
      if (this.connection?.isRefusal(error)) this.reportRefused(error);
      // The connection itself logs that the server is unavailable.
      else this.failures.inc({ reason: 'unavailable' });
      return false;
    }
  }

  private reportRefused(error: Error): void {
    this.failures.inc({ reason: 'refused' });
    if (this.refused || performance.now() - this.loggedAtMs < LOG_INTERVAL_MS) return;
    this.refused = true;
    this.loggedAtMs = performance.now();
    this.logger.warn({
      event: 'cache_writes_refused',
      message: 'Redis refuses writes: each process caches only in its own memory.',
      cause: error.message,
    });
  }

  private reportAccepted(): void {
    if (!this.refused) return;
    this.refused = false;
    this.logger.log({ event: 'cache_writes_accepted', message: 'Redis accepts writes again.' });
  }
}
