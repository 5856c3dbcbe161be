import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Records when each key was last used, at most once per minute and key, without delaying the request. */
@Injectable()
export class LastUsedRecorder implements OnApplicationShutdown {
  private readonly logger = new Logger(LastUsedRecorder.name);
  private readonly writing = new Map<string, Promise<void>>();

  constructor(private readonly database: DataSource) {}

  /** Starts the write and returns without waiting for it. */
  record(keyId: string): void {
    if (this.writing.has(keyId)) return;
    this.writing.set(
      keyId,
      this.write(keyId).finally(() => this.writing.delete(keyId)),
    );
  }

  /** Waits for running writes, because the database closes next. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.writing.values());
  }

  private async write(keyId: string): Promise<void> {
    try {
      await this.database.query(WRITE, [keyId]);
    } catch (error) {
      this.logger.debug(`Failed to record the last use of key ${keyId}: ${String(error)}`);
    }
  }
}

// Compares the minute here as well, because another process may have written it meanwhile. A locked key is skipped: the
// column is accurate to one minute at best, and a write that waited would keep a connection from the calls.
const WRITE = `
  UPDATE api_keys SET last_used_at = now() WHERE id IN (
    SELECT id FROM api_keys WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
      FOR NO KEY UPDATE SKIP LOCKED)`;
