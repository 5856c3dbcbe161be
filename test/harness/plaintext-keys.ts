import type { TestDatabase } from '../database/test-database.js';

/** More of a key than its display prefix, and the token of a feed. */
const KEY = /ct[kf]_[0-9A-Za-z]{7,}/;

/** Every row of every table of a database, as text. */
export async function rowsAsText({ query }: Pick<TestDatabase, 'query'>): Promise<string> {
  const [{ text } = { text: '' }] = await query(
    `SELECT coalesce(string_agg(query_to_xml(format('SELECT * FROM %I.%I', schemaname, tablename), true, true, '')::text, ''), '') AS text
       FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  return String(text);
}

/**
 * Throws when a text contains an API key or one of the given secrets, without repeating it.
 *
 * @param texts the texts by their description
 */
export function refuseSecrets(texts: Readonly<Record<string, string>>, secrets: readonly string[] = []): void {
  for (const [what, text] of Object.entries(texts)) {
    const at = text.search(KEY);
    if (at >= 0) throw new Error(`An API key is in ${what}: …${text.slice(Math.max(0, at - 80), at + 10)}…`);
    for (const secret of secrets) {
      const place = text.indexOf(secret);
      if (place >= 0) throw new Error(`A secret is in ${what}: ${text.slice(Math.max(0, place - 80), place)}…`);
    }
  }
}

/** The random part of a key, which is the secret. */
export function randomPart(key: string): string {
  return key.slice('ctk_'.length + 6);
}
