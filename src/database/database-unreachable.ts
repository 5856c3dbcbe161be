import pg from 'pg';

/** The server at DATABASE_URL does not answer or refuses the connection; the message is one line without the password. */
export class DatabaseUnreachableError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'DatabaseUnreachableError';
  }
}

/**
 * Connects once, so that a wrong address, name or password is told apart from everything that can fail later.
 *
 * @throws DatabaseUnreachableError
 */
export async function refuseUnreachable(url: string, timeoutMs: number): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw new DatabaseUnreachableError(
      `The database at ${client.host}:${client.port} cannot be reached: ${reasonOf(error)}.`,
      error,
    );
  } finally {
    await client.end().catch(() => undefined);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was cut',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the host could not be looked up',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the host',
};

function reasonOf(error: unknown): string {
  const { errors, code, message } = error as Readonly<Record<string, unknown>>;
  // A name with several addresses fails with an error for each of them.
  if (Array.isArray(errors) && errors.length > 0) return reasonOf(errors[0]);
  const known = typeof code === 'string' ? REASONS[code] : undefined;
  if (known !== undefined) return known;
  if (typeof message !== 'string' || message === 'timeout expired') return 'it does not answer';
  return message.split('\n', 1)[0] ?? '';
}
