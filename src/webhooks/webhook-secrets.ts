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
const UNREADABLE_AUTHORIZATION =
  'The authorization of this webhook cannot be read any more. Set it again with PATCH /webhooks/:id.';

/** Standard Webhooks: 24 to 64 bytes. */
const SECRET_BYTES = 32;

/** The secrets of a webhook as they are stored. */
export interface StoredSecrets {
  secret: Buffer;
  /** The one before the last rotation, while it signs too. */
  previous_secret: Buffer | null;
  /** The value of the header `Authorization`. */
  authorization_header: Buffer | null;
}

/** What a webhook's messages are sent with. */
export interface Credentials {
  /** One signature for each, the current secret first. */
  secrets: [Buffer, ...Buffer[]];
  authorization: string | null;
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

  /** @throws WebhooksDisabledError */
  encryptAuthorization(webhookId: string, value: string): Buffer {
    return this.encrypt(authorizationOf(webhookId), Buffer.from(value));
  }

  /**
   * What the deliveries of a webhook are sent with.
   *
   * @throws UnreadableSecretError when the current secret or the header is encrypted with another key, or was changed
   */
  credentials(webhookId: string, stored: StoredSecrets): Credentials {
    const { secret, previous_secret: previous, authorization_header: header } = stored;
    const current = this.current(webhookId, secret);
    const old = previous && this.decrypt(webhookId, previous);
    return {
      secrets: old ? [current, old] : [current],
      authorization: header && this.authorization(webhookId, header),
    };
  }

  /** The value of the header. @throws UnreadableSecretError */
  authorization(webhookId: string, header: Buffer): string {
    const value = this.decrypt(authorizationOf(webhookId), header);
    if (!value) throw new UnreadableSecretError(UNREADABLE_AUTHORIZATION);
    return value.toString();
  }

  /** The secret that signs. @throws UnreadableSecretError */
  current(webhookId: string, secret: Buffer): Buffer {
    const current = this.decrypt(webhookId, secret);
    if (!current) throw new UnreadableSecretError();
    return current;
  }

  /** Identifies a text that can be a secret. @throws WebhooksDisabledError */
  mac(text: string): Buffer {
    const [key] = this.keys;
    if (!key) throw new WebhooksDisabledError();
    return macOf(key, text);
  }

  isMacOf(mac: Buffer, text: string): boolean {
    return this.keys.some((key) => macOf(key, text).equals(mac));
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

/** What the value of the header is bound to, so that it does not decrypt as a secret. */
const authorizationOf = (webhookId: string): string => `${webhookId} authorization`;

const macOf = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

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

/** The body of an event: compact JSON, which stays the same when a receiver parses and writes it again. */
export function messageBody(type: string, occurredAt: Date, data: unknown): string {
  return JSON.stringify({ type, timestamp: occurredAt, data });
}
