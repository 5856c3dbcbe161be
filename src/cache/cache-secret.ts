import { hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../config/environment.js';

const SECRET_BYTES = 32;
const PURPOSE = 'channel-transcripts: signatures of cache entries';
const STORED_SECRET = new RegExp(`^[0-9a-f]{${2 * SECRET_BYTES}}$`);

/**
 * The secret that cache entries are signed with, the same in every process that shares the database: derived from
 * `CACHE_SECRET`, else from `DATABASE_URL`, else, with the embedded database, stored in `DATA_DIR`.
 */
export async function cacheSecret({ CACHE_SECRET, DATABASE_URL, DATA_DIR }: Environment): Promise<Buffer> {
  const given = CACHE_SECRET ?? DATABASE_URL;
  if (given !== undefined) return Buffer.from(hkdfSync('sha256', given, '', PURPOSE, SECRET_BYTES));
  return Buffer.from(await storedSecret(DATA_DIR), 'hex');
}

/** Whether `cacheSecret` derives from a `DATABASE_URL` without a password, which others may know. */
export function isSecretGuessable({ CACHE_SECRET, DATABASE_URL }: Environment): boolean {
  if (CACHE_SECRET !== undefined || DATABASE_URL === undefined) return false;
  const { password, searchParams } = new URL(DATABASE_URL);
  return password === '' && !searchParams.get('password');
}

async function storedSecret(dataDir: string): Promise<string> {
  const path = join(dataDir, 'cache-secret');
  const stored = await readFile(path, 'utf8').catch(() => '');
  if (STORED_SECRET.test(stored)) return stored;
  const secret = randomBytes(SECRET_BYTES).toString('hex');
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o711 });
    const written = `${path}.${process.pid}`;
    await writeFile(written, secret, { mode: 0o600 });
    await rename(written, path);
  } catch {
    // The embedded database cannot be stored there either, and reports what is wrong with the directory.
  }
  return secret;
}
