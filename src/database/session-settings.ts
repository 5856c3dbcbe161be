import pg from 'pg';

const STATEMENT_TIMEOUT_MS = 5_000;
/** A process that stalls within a transaction must not keep its locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
/** The quota needs it: at a stricter level its sums are older than its lock, and so it refuses to run. */
const ISOLATION = 'read committed';

const SETTINGS: Readonly<Record<string, string>> = {
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
  default_transaction_isolation: ISOLATION,
};

/** Whatever the role, the database or the server sets by default, as options of a connection (of `pg`). */
export const SESSION_OPTIONS = {
  options: Object.entries(SETTINGS)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' '),
};

/** The same for one transaction, by its first statement. */
export const START_TRANSACTION =
  `START TRANSACTION ISOLATION LEVEL ${ISOLATION.toUpperCase()}; ` +
  `SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}; ` +
  `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS}`;

/** The URL without `options` of its own, which would replace those of the connection, and both joined. */
export function withSessionOptions(url: string): { url: string; options: string } {
  const own = new URL(url).searchParams.get('options');
  if (own === null) return { url, ...SESSION_OPTIONS };
  const target = new URL(url);
  target.searchParams.delete('options');
  // PostgreSQL takes the last value of a setting.
  return { url: target.href, options: `${own} ${SESSION_OPTIONS.options}` };
}

/**
 * Whether a connection keeps the settings that it starts with. PgBouncer refuses them or drops them, and in transaction
 * pooling the next transaction may run on another server connection anyway.
 *
 * @throws the driver's errors when the server cannot be reached
 */
export async function keepsSessionSettings(url: string, timeoutMs: number): Promise<boolean> {
  const target = withSessionOptions(url);
  const client = new pg.Client({
    connectionString: target.url,
    options: target.options,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string; setting: string }>(
      'SELECT name, setting FROM pg_settings WHERE name = ANY($1)',
      [Object.keys(SETTINGS)],
    );
    return rows.length > 0 && rows.every(({ name, setting }) => SETTINGS[name] === setting);
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === PROTOCOL_VIOLATION) return false;
    throw error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** How PgBouncer answers a startup parameter that it does not know. */
const PROTOCOL_VIOLATION = '08P01';
