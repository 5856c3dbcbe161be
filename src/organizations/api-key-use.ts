import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { KeyedLimiter } from '../database/organization-limiter.js';

/** How many connections may wait for rows of keys that others have locked. */
const CONNECTIONS = { concurrencyMax: 2, concurrencyMaxWhenSlow: 2, slowMs: 0 };
/** With more keys waiting, some uses are not written: they are exact to a minute at best anyway. */
const WAITING_MAX = 10_000;

/** Writes down when a key was last used: at most once a minute per key, beside the call and never in its way. */
@Injectable()
export class ApiKeyUse implements OnApplicationShutdown {
  private readonly logger = new Logger(ApiKeyUse.name);
  private readonly writing = new Map<string, Promise<void>>();
  private readonly turns = new KeyedLimiter(CONNECTIONS);
  private readonly closing = new AbortController();

  constructor(private readonly database: DataSource) {}

  /** Starts the write and returns at once. */
  note(keyId: string): void {
    if (this.closing.signal.aborted || this.writing.has(keyId) || this.writing.size >= WAITING_MAX) return;
    this.writing.set(
      keyId,
      this.write(keyId).finally(() => this.writing.delete(keyId)),
    );
  }

  /** Lets running writes end before the database is closed, and starts none after. */
  async onApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.writing.values());
  }

  private async write(keyId: string): Promise<void> {
    try {
      await this.turns.run('', this.closing.signal, () => this.database.query(WRITE, [keyId]));
    } catch (error) {
      this.logger.debug(`The last use of key ${keyId} was not written: ${String(error)}`);
    }
  }
}

// The minute is checked here too, because another process may have written it in the meantime.
const WRITE = `
  UPDATE api_keys SET last_used_at = now()
    WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;
