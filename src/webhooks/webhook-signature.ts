import { createHmac, randomBytes } from 'node:crypto';

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
