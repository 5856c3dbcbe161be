import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { cacheSecret } from '../cache/cache-signatures.js';
import type { Environment } from '../config/environment.js';

const CIPHER = 'aes-256-gcm';
const PURPOSE = 'channel-transcripts: secrets of webhooks';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

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
   * set later: it is derived from the password in `DATABASE_URL` (the whole URL when it has none) or, with the embedded
   * database, from the secret in `DATA_DIR`.
   */
  static async open(environment: Environment): Promise<WebhookSecrets> {
    const { WEBHOOK_SECRET_KEY = [], DATABASE_URL } = environment;
    const password = DATABASE_URL === undefined ? '' : new URL(DATABASE_URL).password;
    const source = { ...environment, CACHE_SECRET: undefined, DATABASE_URL: password === '' ? DATABASE_URL : password };
    const unset = await cacheSecret(source);
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

function deriveKey(text: string | Buffer): EncryptionKey {
  const derived = Buffer.from(hkdfSync('sha256', text, '', PURPOSE, KEY_BYTES + KEY_ID_BYTES));
  return { key: derived.subarray(0, KEY_BYTES), id: derived.subarray(KEY_BYTES) };
}
