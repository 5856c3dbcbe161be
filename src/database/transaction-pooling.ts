import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { isReadOnlyServer } from './database-unavailable.js';
import { START_TRANSACTION } from './session-settings.js';

/**
 * Makes a data source work through a pooler that gives each transaction to any server connection, such as PgBouncer with
 * `pool_mode = transaction`: every statement runs in a transaction that begins with the settings which a session would
 * have. The connections need `pipeline: true`, so that the beginning costs no round trip.
 */
export function runInTransactions(dataSource: DataSource): void {
  const createQueryRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => {
    const runner = createQueryRunner(mode);
    const query = runner.query.bind(runner);
    // Each overload of it: the parameters are passed on unchanged.
    const ask = (text: string, rest: unknown[]): Promise<unknown> =>
      Reflect.apply(query, runner, [text, ...rest]) as Promise<unknown>;
    runner.query = ((text: string, ...rest: unknown[]) => {
      // TypeORM sets the flag before it sends this statement.
      if (text === 'START TRANSACTION') return ask(START_TRANSACTION, []);
      return runner.isTransactionActive ? ask(text, rest) : inTransaction(runner, () => ask(text, rest));
    }) as QueryRunner['query'];
    return runner;
  };
}

async function inTransaction(runner: QueryRunner, statement: () => Promise<unknown>): Promise<unknown> {
  const client: unknown = await runner.connect();
  if (!(client instanceof pg.Client)) throw new Error('The driver of the data source is not pg.');
  const started = client.query(START_TRANSACTION);
  // An error of it is the error of the statement behind it too.
  started.catch(() => undefined);
  try {
    const [result] = await Promise.all([statement(), started]);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // A connection that ends within a transaction makes the pooler close the server connection, which is to be replaced.
    if (!isReadOnlyServer(error)) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
