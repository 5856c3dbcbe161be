import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { WebhooksDisabledError } from './webhook.js';

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
 * Encrypts the secrets of webhooks for the database, with the first key of `WEBHOOK_SECRET_KEY`; all of its keys decrypt. A
 * stored secret is the ID of the key, the nonce, the authentication tag and the ciphertext; it is bound to its webhook, so
 * that it does not decrypt in the row of another one.
 */
@Injectable()
export class WebhookSecrets {
  private readonly keys: readonly EncryptionKey[];

  constructor({ WEBHOOK_SECRET_KEY = [] }: Environment) {
    this.keys = WEBHOOK_SECRET_KEY.map(deriveKey);
  }

  /** The IDs of the keys; none when webhooks are disabled. */
  get keyIds(): Buffer[] {
    return this.keys.map(({ id }) => id);
  }

  /** @throws WebhooksDisabledError */
  encrypt(webhookId: string, secret: Buffer): Buffer {
    const [current] = this.keys;
    if (!current) throw new WebhooksDisabledError();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, current.key, nonce).setAAD(Buffer.from(webhookId));
    const ciphertext = Buffer.concat([cipher.update(secret), cipher.final()]);
    return Buffer.concat([current.id, nonce, cipher.getAuthTag(), ciphertext]);
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
}

function deriveKey(text: string): EncryptionKey {
  const derived = Buffer.from(hkdfSync('sha256', text, '', PURPOSE, KEY_BYTES + KEY_ID_BYTES));
  return { key: derived.subarray(0, KEY_BYTES), id: derived.subarray(KEY_BYTES) };
}

const PREFIX = 'whsec_';
/** Standard Webhooks: 24 to 64 bytes. */
const SECRET_BYTES = 32;

/** Generates the key of a secret, whose text form is `secretText`. */
export function generateSecret(): Buffer {
  return randomBytes(SECRET_BYTES);
}

/** A secret as its owner sees it: `whsec_` and the key in base64. */
export function secretText(secret: Buffer): string {
  return PREFIX + secret.toString('base64');
}

/** What is sent: the same `id` and `body` in every attempt of a delivery. */
export interface WebhookMessage {
  id: string;
  /** JSON. */
  body: string;
}

/**
 * The headers of a message as Standard Webhooks 1.0.0 defines them
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 *
 * @param secrets one signature for each
 * @param atMs the time of the attempt; receivers refuse messages that are minutes old
 */
export function signedHeaders(
  { id, body }: WebhookMessage,
  secrets: readonly Buffer[],
  atMs: number,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(atMs / 1000));
  const signatures = secrets.map((secret) => {
    return `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}

/**
 * The body of an event.
 *
 * @param data JSON, inserted unchanged
 */
export function messageBody(type: string, occurredAt: Date, data: string): string {
  return `{"type":${JSON.stringify(type)},"timestamp":"${occurredAt.toISOString()}","data":${data}}`;
}
