import { SpanKind, trace, type Attributes } from '@opentelemetry/api';
import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { inSpan } from '../observability/tracing/tracer.js';
import { isReadOnlyServer } from './database-errors.js';
import { START_TRANSACTION } from './session-settings.js';

/** Sends a statement, optionally with another text. */
type Send = (text: string) => Promise<unknown>;

/** Wraps `query` of every query runner of a data source; TypeORM has no hook around queries. */
function interceptQueries(
  dataSource: DataSource,
  intercept: (runner: QueryRunner, text: string, send: Send) => Promise<unknown>,
): void {
  const createQueryRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => {
    const runner = createQueryRunner(mode);
    const query = runner.query.bind(runner);
    // `query` has overloads: the arguments after the text are passed on unchanged.
    runner.query = ((text: string, ...rest: unknown[]) =>
      intercept(
        runner,
        text,
        (sent) => Reflect.apply(query, runner, [sent, ...rest]) as Promise<unknown>,
      )) as QueryRunner['query'];
    return runner;
  };
}

/** Adds a span for every query to the active trace. It contains the text with placeholders (`$1`), never the values. */
export function traceQueries(dataSource: DataSource, url: string): void {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const server: Attributes = {
    'db.system.name': 'postgresql',
    'db.namespace': decodeURIComponent(pathname.slice(1)),
    // The embedded database listens on a Unix socket in a directory.
    'server.address': searchParams.get('host') ?? hostname,
    'server.port': Number(searchParams.get('port') ?? (port || 5432)),
  };
  interceptQueries(dataSource, (_runner, text, send) => {
    if (!trace.getActiveSpan()) return send(text);
    const operation = /^\s*([A-Za-z]+)/.exec(text)?.[1]?.toUpperCase() ?? 'QUERY';
    const query = { 'db.operation.name': operation, 'db.query.text': text.replace(/\s+/g, ' ').trim() };
    return inSpan(operation, { ...server, ...query }, () => send(text), SpanKind.CLIENT);
  });
}

/**
 * Makes a data source work through a connection pooler in transaction mode, such as PgBouncer with
 * `pool_mode = transaction`: every statement runs in a transaction that starts with the session settings. The connections
 * need `pipeline: true`, so that starting the transaction costs no round trip.
 */
export function runInTransactions(dataSource: DataSource): void {
  interceptQueries(dataSource, (runner, text, send) => {
    // TypeORM sets `isTransactionActive` before it sends this statement.
    if (text === 'START TRANSACTION') return send(START_TRANSACTION);
    return runner.isTransactionActive ? send(text) : inTransaction(runner, () => send(text));
  });
}

async function inTransaction(runner: QueryRunner, statement: () => Promise<unknown>): Promise<unknown> {
  const client: unknown = await runner.connect();
  if (!(client instanceof pg.Client)) throw new Error('The driver of the data source is not pg.');
  const started = client.query(START_TRANSACTION);
  // If it fails, the statement sent after it fails with the same error.
  started.catch(() => undefined);
  try {
    const [result] = await Promise.all([statement(), started]);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // Without ROLLBACK the pooler closes the server connection, which must be replaced when the server is read-only.
    if (!isReadOnlyServer(error)) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
