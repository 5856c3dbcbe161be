import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Writes down when a key was last used: at most once a minute per key, beside the call and never in its way. */
@Injectable()
export class ApiKeyUse implements OnApplicationShutdown {
  private readonly logger = new Logger(ApiKeyUse.name);
  private readonly writing = new Map<string, Promise<void>>();
  private closed = false;

  constructor(private readonly database: DataSource) {}

  /** Starts the write and returns at once. */
  note(keyId: string): void {
    if (this.closed || this.writing.has(keyId)) return;
    this.writing.set(
      keyId,
      this.write(keyId).finally(() => this.writing.delete(keyId)),
    );
  }

  /** Lets running writes end before the database is closed, and starts none after. */
  async onApplicationShutdown(): Promise<void> {
    this.closed = true;
    await Promise.all(this.writing.values());
  }

  private async write(keyId: string): Promise<void> {
    try {
      // Asked again here, because another process may have written it in the meantime.
      await this.database.query(
        `UPDATE api_keys SET last_used_at = now()
           WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`,
        [keyId],
      );
    } catch (error) {
      this.logger.debug(`The last use of key ${keyId} was not written: ${String(error)}`);
    }
  }
}
