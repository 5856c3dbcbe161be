import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { KeyedLimiter } from '../database/organization-limiter.js';

/** Bounds the connections that wait for rows of locked keys. */
const CONNECTIONS = { concurrencyMax: 2, concurrencyMaxWhenSlow: 2, slowMs: 0 };
/** Above this, uses are dropped. The column is accurate to one minute at best. */
const WAITING_MAX = 10_000;

/** Records when each key was last used, at most once per minute and key, without delaying the request. */
@Injectable()
export class LastUsedRecorder implements OnApplicationShutdown {
  private readonly logger = new Logger(LastUsedRecorder.name);
  private readonly writing = new Map<string, Promise<void>>();
  private readonly limiter = new KeyedLimiter(CONNECTIONS);
  private readonly closing = new AbortController();

  constructor(private readonly database: DataSource) {}

  /** Starts the write and returns without waiting for it. */
  record(keyId: string): void {
    if (this.closing.signal.aborted || this.writing.has(keyId) || this.writing.size >= WAITING_MAX) return;
    this.writing.set(
      keyId,
      this.write(keyId).finally(() => this.writing.delete(keyId)),
    );
  }

  /** Waits for running writes, because the database closes next, and starts no more. */
  async onApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.writing.values());
  }

  private async write(keyId: string): Promise<void> {
    try {
      await this.limiter.run('', this.closing.signal, () => this.database.query(WRITE, [keyId]));
    } catch (error) {
      this.logger.debug(`Failed to record the last use of key ${keyId}: ${String(error)}`);
    }
  }
}

// Compares the minute here as well, because another process may have written it meanwhile.
const WRITE = `
  UPDATE api_keys SET last_used_at = now()
    WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;
