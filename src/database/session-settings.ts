import pg from 'pg';
import { unreachableError } from './database-errors.js';

const STATEMENT_TIMEOUT_MS = 5_000;
/** A process that stalls within a transaction must not hold its locks for longer. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
/** Required by the quota functions: at a stricter level their snapshot is older than their lock, so they refuse to run. */
const ISOLATION = 'read committed';

const SETTINGS: Readonly<Record<string, string>> = {
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
  default_transaction_isolation: ISOLATION,
};

/** Connection options (of `pg`) that override the defaults of the role, the database and the server. */
export const SESSION_OPTIONS = {
  options: Object.entries(SETTINGS)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' '),
};

/** The statement that starts a transaction with the same settings. */
export const START_TRANSACTION =
  `START TRANSACTION ISOLATION LEVEL ${ISOLATION.toUpperCase()}; ` +
  `SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}; ` +
  `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS}`;

/** The URL without its `options`, which would replace those of the connection, and both options joined. */
export function withSessionOptions(url: string): { url: string; options: string } {
  const own = new URL(url).searchParams.get('options');
  if (own === null) return { url, ...SESSION_OPTIONS };
  const target = new URL(url);
  target.searchParams.delete('options');
  // PostgreSQL takes the last value of a setting.
  return { url: target.href, options: `${own} ${SESSION_OPTIONS.options}` };
}

/** PgBouncer's error for an unknown startup parameter. */
const PROTOCOL_VIOLATION = '08P01';

/**
 * Connects once, and finds whether session settings apply to every statement of a connection. PgBouncer rejects or drops them,
 * and in transaction mode the next transaction may run on another server connection.
 *
 * @throws DatabaseUnreachableError when the server does not respond or refuses the connection
 */
export async function probeDatabase(url: string, timeoutMs: number): Promise<{ keepsSettings: boolean }> {
  const timeouts = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs };
  const target = withSessionOptions(url);
  try {
    return await withConnection({ connectionString: target.url, options: target.options, ...timeouts }, hasSettings);
  } catch (error) {
    const { cause } = error as Error;
    if (!(cause instanceof pg.DatabaseError) || cause.code !== PROTOCOL_VIOLATION) throw error;
    // PgBouncer refuses the settings before it checks the login: without them, a wrong name or password is reported.
    return withConnection({ connectionString: url, ...timeouts }, () => Promise.resolve({ keepsSettings: false }));
  }
}

/** @throws DatabaseUnreachableError also for an error of `use` */
async function withConnection<T>(config: pg.ClientConfig, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config);
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } catch (error) {
    throw unreachableError(client, error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function hasSettings(client: pg.Client): Promise<{ keepsSettings: boolean }> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    'SELECT name, setting FROM pg_settings WHERE name = ANY($1)',
    [Object.keys(SETTINGS)],
  );
  return { keepsSettings: rows.length > 0 && rows.every(({ name, setting }) => SETTINGS[name] === setting) };
}
