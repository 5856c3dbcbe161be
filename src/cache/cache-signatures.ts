import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../config/environment.js';

const SECRET_BYTES = 32;
const PURPOSE = 'channel-transcripts: signatures of cache entries';
const STORED_SECRET = new RegExp(`^[0-9a-f]{${2 * SECRET_BYTES}}$`);

/** HMAC-SHA-256, truncated to 128 bits: infeasible to guess, and a lookup of a hundred entries transfers a hundred of them. */
const TAG_BYTES = 16;

/**
 * The secret that signs cache entries, the same in every process that shares the database: derived from `CACHE_SECRET`,
 * else from `DATABASE_URL`, else (with the embedded database) generated and stored in `DATA_DIR`.
 */
export async function cacheSecret({ CACHE_SECRET, DATABASE_URL, DATA_DIR }: Environment): Promise<Buffer> {
  const given = CACHE_SECRET ?? DATABASE_URL;
  if (given !== undefined) return Buffer.from(hkdfSync('sha256', given, '', PURPOSE, SECRET_BYTES));
  return Buffer.from(await storedSecret(DATA_DIR), 'hex');
}

/** Whether the secret is derived from a `DATABASE_URL` without a password, which others may know. */
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
    // The embedded database cannot use this directory either, and reports why.
  }
  return secret;
}

/**
 * Signs values for a server that others can write to. The signature covers the key, so a value that was copied to another
 * key does not verify.
 */
export class ValueSigner {
  /** @param secret shared by all processes that share the cache; entries signed with another one are misses */
  constructor(private readonly secret: Buffer) {}

  /** The signature followed by the value. */
  sign(key: string, value: Buffer): Buffer {
    return Buffer.concat([this.tag(key, value), value]);
  }

  /** The value, as a view of `stored`; undefined when the signature does not match the key and the value. */
  verify(key: string, stored: Buffer): Buffer | undefined {
    if (stored.length < TAG_BYTES) return undefined;
    const value = stored.subarray(TAG_BYTES);
    return timingSafeEqual(stored.subarray(0, TAG_BYTES), this.tag(key, value)) ? value : undefined;
  }

  private tag(key: string, value: Buffer): Buffer {
    // Prefixed with its length, so that no suffix of a key can pass for the start of a value.
    const mac = createHmac('sha256', this.secret).update(`${key.length}:${key}:`).update(value);
    return mac.digest().subarray(0, TAG_BYTES);
  }
}
