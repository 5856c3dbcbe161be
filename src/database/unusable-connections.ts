import pg from 'pg';
import type { Logger, QueryRunner } from 'typeorm';
import { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { isReadOnlyServer } from './database-errors.js';

/** Minimum interval between closing the idle connections: the server may be read-only on purpose. */
const CLOSE_IDLE_MS = 1_000;

/**
 * Closes connections that must not return to the pool: one whose query timed out (pg leaves it open with the query still
 * running, which would delay every later query), and those to a server that became read-only (after a failover its address
 * resolves to the new primary, but only a new connection reaches it). TypeORM reports failed queries with their connection
 * through its logger; nothing is logged here.
 */
export class UnusableConnections implements Logger {
  private idleClosedAtMs = -Infinity;

  logQueryError(error: string | Error, _query: string, _parameters?: unknown[], runner?: QueryRunner): void {
    if (!(error instanceof Error) || runner === undefined) return;
    const readOnly = isReadOnlyServer(error);
    if (error.message !== 'Query read timeout' && !readOnly) return;
    void runner.connect().then(async (connection: unknown) => {
      if (connection instanceof pg.Client) await connection.end().catch(() => undefined);
    });
    if (readOnly) void this.closeIdle(runner);
  }

  logQuery(): void {}
  logQuerySlow(): void {}
  logSchemaBuild(): void {}
  logMigration(): void {}
  log(): void {}

  /** Idle connections lead to the old server too, and every retry would fail on the next one of them. */
  private async closeIdle({ dataSource: { driver } }: QueryRunner): Promise<void> {
    const now = performance.now();
    const pool: unknown = driver instanceof PostgresDriver ? driver.master : undefined;
    if (!(pool instanceof pg.Pool) || now - this.idleClosedAtMs < CLOSE_IDLE_MS) return;
    this.idleClosedAtMs = now;
    const idle = await Promise.allSettled(Array.from({ length: pool.idleCount }, () => pool.connect()));
    for (const one of idle) if (one.status === 'fulfilled') one.value.release(true);
  }
}
