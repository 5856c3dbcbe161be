import pg from 'pg';

/** Each connection stores as many statements at most; further ones are sent as text. */
const STATEMENTS_MAX = 200;

/**
 * All columns, whatever they are. A column that a newer release adds meanwhile changes the result, and PostgreSQL refuses to
 * run a prepared statement whose result has changed.
 */
const ALL_COLUMNS = /(?:\bSELECT(?:\s+(?:ALL|DISTINCT))?|\bRETURNING|,|\.)\s*\*/i;

/** The names of the statements of this process, by text; connections prepare those that they are sent. */
const names = new Map<string, string>();

/**
 * A connection that prepares statements with parameters when they are first sent, so that PostgreSQL parses each once for a
 * connection and not for every call. Not for a pooler in transaction mode, where the next transaction may run on a server
 * connection that has not prepared the statement.
 */
export class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    const query = this.query.bind(this);
    // `query` has overloads: the other arguments are passed on unchanged.
    this.query = ((statement: unknown, values: unknown, ...rest: unknown[]) =>
      Reflect.apply(query, this, [prepared(statement, values), values, ...rest]) as unknown) as pg.Client['query'];
  }
}

function prepared(statement: unknown, values: unknown): unknown {
  if (typeof statement !== 'string' || !Array.isArray(values) || values.length === 0) return statement;
  const name = nameOf(statement);
  return name === undefined ? statement : { name, text: statement };
}

function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= STATEMENTS_MAX || ALL_COLUMNS.test(text)) return known;
  const name = `ct_${names.size + 1}`;
  names.set(text, name);
  return name;
}
