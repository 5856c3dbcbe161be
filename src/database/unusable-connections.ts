import pg from 'pg';
import type { Logger, QueryRunner } from 'typeorm';
import { isReadOnlyServer } from './database-away.js';

/**
 * Closes connections that must not go back to the pool: one on which a query got no answer in time (pg leaves it open with
 * the query still running, which would hold up every later query), and one to a server that became read-only (after a
 * failover its address leads to the new primary, but only a new connection goes there). TypeORM reports failed queries,
 * with their connection, through its logger; nothing is logged here.
 */
export class UnusableConnections implements Logger {
  logQueryError(error: string | Error, _query: string, _parameters?: unknown[], runner?: QueryRunner): void {
    if (!(error instanceof Error) || runner === undefined) return;
    if (error.message !== 'Query read timeout' && !isReadOnlyServer(error)) return;
    void runner.connect().then(async (connection: unknown) => {
      if (connection instanceof pg.Client) await connection.end().catch(() => undefined);
    });
  }

  logQuery(): void {}
  logQuerySlow(): void {}
  logSchemaBuild(): void {}
  logMigration(): void {}
  log(): void {}
}
