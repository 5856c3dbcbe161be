import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, scrypt } from 'node:crypto';
import { cacheSecret } from '../cache/cache-signatures.js';
import type { Environment } from '../config/environment.js';

const CIPHER = 'aes-256-gcm';
const PURPOSE = 'channel-transcripts: secrets of webhooks';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Passwords of databases are chosen by people, so that each guess must be expensive: it needs 32 MB. */
const SCRYPT = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };
/** Shorter passwords can be found by trying, given a copy of the database. */
const PASSWORD_LENGTH_MIN = 16;

interface EncryptionKey {
  /** The first bytes of what the key encrypts; `webhook_claim` selects by them. */
  id: Buffer;
  key: Buffer;
}

/**
 * Encrypts the secrets of webhooks for the database. A stored secret is the ID of the key, the nonce, the authentication
 * tag and the ciphertext; it is bound to its webhook, so that it does not decrypt in the row of another one.
 */
export class WebhookSecrets {
  private readonly keys: readonly [EncryptionKey, ...EncryptionKey[]];

  /** @param keyTexts the first one encrypts, all of them decrypt */
  constructor(...keyTexts: [string | Buffer, ...(string | Buffer)[]]) {
    const [first, ...others] = keyTexts;
    this.keys = [deriveKey(first), ...others.map(deriveKey)];
  }

  /**
   * With the keys of `WEBHOOK_SECRET_KEY`, and last the one that is used while it is not set, so that the variable can be
   * set later: it is derived from the password in `DATABASE_URL` (the whole URL when it has none) by scrypt or, with the
   * embedded database, from the secret in `DATA_DIR`.
   */
  static async open(environment: Environment): Promise<WebhookSecrets> {
    const { WEBHOOK_SECRET_KEY = [], DATABASE_URL } = environment;
    const unset =
      DATABASE_URL === undefined
        ? await cacheSecret({ ...environment, CACHE_SECRET: undefined })
        : await stretched(passwordOf(DATABASE_URL) || DATABASE_URL);
    const [first, ...others] = WEBHOOK_SECRET_KEY;
    return first === undefined ? new WebhookSecrets(unset) : new WebhookSecrets(first, ...others, unset);
  }

  /** The IDs of the keys, the current one first. */
  get keyIds(): readonly [Buffer, ...Buffer[]] {
    const [first, ...others] = this.keys;
    return [first.id, ...others.map(({ id }) => id)];
  }

  encrypt(webhookId: string, secret: Buffer): Buffer {
    const [{ id, key }] = this.keys;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(webhookId));
    const ciphertext = Buffer.concat([cipher.update(secret), cipher.final()]);
    return Buffer.concat([id, nonce, cipher.getAuthTag(), ciphertext]);
  }

  /** @returns undefined when the key is not known, or the value does not belong to the webhook */
  decrypt(webhookId: string, stored: Buffer): Buffer | undefined {
    const found = this.keys.find(({ id }) => id.equals(stored.subarray(0, KEY_ID_BYTES)));
    const [nonceEnd, tagEnd] = [KEY_ID_BYTES + NONCE_BYTES, KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES];
    if (!found || stored.length < tagEnd) return undefined;
    const decipher = createDecipheriv(CIPHER, found.key, stored.subarray(KEY_ID_BYTES, nonceEnd))
      .setAAD(Buffer.from(webhookId))
      .setAuthTag(stored.subarray(nonceEnd, tagEnd));
    try {
      return Buffer.concat([decipher.update(stored.subarray(tagEnd)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  /** The stored form under the current key; undefined when it is under that key already, or cannot be decrypted. */
  reencrypt(webhookId: string, stored: Buffer): Buffer | undefined {
    if (this.keyIds[0].equals(stored.subarray(0, KEY_ID_BYTES))) return undefined;
    const secret = this.decrypt(webhookId, stored);
    return secret && this.encrypt(webhookId, secret);
  }
}

/** Whether the key is derived from a `DATABASE_URL` whose password is absent or so short that it can be found by trying. */
export function isKeyGuessable({ WEBHOOK_SECRET_KEY = [], DATABASE_URL }: Environment): boolean {
  if (WEBHOOK_SECRET_KEY.length > 0 || DATABASE_URL === undefined) return false;
  return passwordOf(DATABASE_URL).length < PASSWORD_LENGTH_MIN;
}

function passwordOf(databaseUrl: string): string {
  const { password, searchParams } = new URL(databaseUrl);
  return password || (searchParams.get('password') ?? '');
}

/** Salted with the purpose only: every process of the database must derive the same key. */
function stretched(text: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(text, PURPOSE, KEY_BYTES, SCRYPT, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

function deriveKey(text: string | Buffer): EncryptionKey {
  const derived = Buffer.from(hkdfSync('sha256', text, '', PURPOSE, KEY_BYTES + KEY_ID_BYTES));
  return { key: derived.subarray(0, KEY_BYTES), id: derived.subarray(KEY_BYTES) };
}
