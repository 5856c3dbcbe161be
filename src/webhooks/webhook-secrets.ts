import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { UnreadableSecretError, WebhooksDisabledError } from './webhook.js';

const CIPHER = 'aes-256-gcm';
const PURPOSE = 'channel-transcripts: secrets of webhooks';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const PREFIX = 'whsec_';
/** Standard Webhooks: 24 to 64 bytes. */
const SECRET_BYTES = 32;

/** The secrets of a webhook as they are stored. */
export interface StoredSecrets {
  secret: Buffer;
  /** The one before the last rotation, while it signs too. */
  previous_secret: Buffer | null;
}

/**
 * Encrypts the secrets of webhooks for the database, with the first key of `WEBHOOK_SECRET_KEY`; all of its keys decrypt. A
 * stored secret is the nonce, the authentication tag and the ciphertext; it is bound to its webhook, so that it does not
 * decrypt in the row of another one.
 */
@Injectable()
export class WebhookSecrets {
  private readonly keys: readonly Buffer[];

  constructor({ WEBHOOK_SECRET_KEY = [] }: Environment) {
    this.keys = WEBHOOK_SECRET_KEY.map((text) => Buffer.from(hkdfSync('sha256', text, '', PURPOSE, KEY_BYTES)));
  }

  /** Whether there is a key, without which nothing can be encrypted or signed. */
  get enabled(): boolean {
    return this.keys.length > 0;
  }

  /** @throws WebhooksDisabledError */
  encrypt(webhookId: string, secret: Buffer): Buffer {
    const [key] = this.keys;
    if (!key) throw new WebhooksDisabledError();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(webhookId));
    const ciphertext = Buffer.concat([cipher.update(secret), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]);
  }

  /**
   * The secrets that sign the deliveries of a webhook, the current one first.
   *
   * @throws UnreadableSecretError when the current one is encrypted with another key, or was changed
   */
  signing(webhookId: string, { secret, previous_secret: previous }: StoredSecrets): [Buffer, ...Buffer[]] {
    const current = this.decrypt(webhookId, secret);
    if (!current) throw new UnreadableSecretError();
    const old = previous && this.decrypt(webhookId, previous);
    return old ? [current, old] : [current];
  }

  private decrypt(webhookId: string, stored: Buffer): Buffer | undefined {
    const [nonce, tag] = [stored.subarray(0, NONCE_BYTES), stored.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)];
    if (tag.length < TAG_BYTES) return undefined;
    for (const key of this.keys) {
      const decipher = createDecipheriv(CIPHER, key, nonce).setAAD(Buffer.from(webhookId)).setAuthTag(tag);
      try {
        return Buffer.concat([decipher.update(stored.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      } catch {
        // Of another key: the tag does not match.
      }
    }
    return undefined;
  }
}

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
export function signedHeaders({ id, body }: WebhookMessage, secrets: readonly Buffer[], atMs: number) {
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
