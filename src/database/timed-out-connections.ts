import pg from 'pg';
import type { Logger, QueryRunner } from 'typeorm';

/**
 * Closes a connection on which a query got no answer in time. pg leaves it open with the query still running, and given
 * back to the pool it would hold up every later query behind that one. TypeORM tells of failed queries, with their
 * connection, through its logger; nothing is logged here.
 */
export class TimedOutConnections implements Logger {
  logQueryError(error: string | Error, _query: string, _parameters?: unknown[], runner?: QueryRunner): void {
    if (!(error instanceof Error) || error.message !== 'Query read timeout' || runner === undefined) return;
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
