import { defined, itemsOf, type CallOptions, type Http } from './http.js';
import type { components } from './schema.js';

type Schemas = components['schemas'];
export type Webhook = Schemas['Webhook'];
export type WebhookWithSecret = Schemas['WebhookWithSecret'];
export type WebhookChanges = Schemas['WebhookChangeBody'];
export type WebhookTestResult = Schemas['WebhookTestResult'];
export type WebhookDelivery = Schemas['WebhookDelivery'];
/** The body of a message about a job. */
export type JobEvent = Schemas['JobEvent'];
/** The body of a message about an upload that a subscription has found. */
export type UploadEvent = Schemas['UploadEvent'];
/** The body of a message about a subscription. */
export type SubscriptionEvent = Schemas['SubscriptionEvent'];
/** The body of a message about the monthly quota of the organization. */
export type QuotaEvent = Schemas['QuotaEvent'];
/** The body of a message about the library of the organization. */
export type LibraryEvent = Schemas['LibraryEvent'];
/** The body of the message that `Webhooks.test` sends, whatever the `events` of the webhook are. */
export interface WebhookTestEvent {
  type: 'webhook.test';
  timestamp: string;
  data: { webhookId: string };
}
/** The body of a message: `type` says which. A later version of the service can send further types. */
export type WebhookPayload = JobEvent | UploadEvent | SubscriptionEvent | QuotaEvent | LibraryEvent | WebhookTestEvent;
export type WebhookEvent = NonNullable<Schemas['NewWebhookBody']['events']>[number];

export interface WebhookOptions extends CallOptions {
  /** The events to send; all by default. */
  events?: readonly WebhookEvent[];
  /** Only events of jobs and subscriptions that have all of these labels are sent. */
  labels?: Readonly<Record<string, string>>;
  /** The value of the header `Authorization` of each message. */
  authorization?: string;
  /** The same key and body return the same webhook with its secret for a day; a new key by default. */
  idempotencyKey?: string;
}

/** Webhooks of archive jobs, of subscriptions and of the quota. Every method throws ChannelTranscriptsError. */
export class Webhooks {
  /** Verifies a message that a webhook sent: see `verifyWebhook`. */
  readonly verify = verifyWebhook;

  constructor(private readonly http: Http) {}

  /** Creates a webhook. Store its `secret`, which is returned only now: it verifies the signatures. */
  create(url: string, options: WebhookOptions = {}): Promise<WebhookWithSecret> {
    const { events, labels, authorization, idempotencyKey, ...others } = options;
    const body = { url, ...defined({ events: events && [...events], labels, authorization }) };
    const header = { 'Idempotency-Key': idempotencyKey ?? crypto.randomUUID() };
    return this.http.call('createWebhook', { body, header }, others);
  }

  async list(options?: CallOptions): Promise<Webhook[]> {
    return (await this.http.call('listWebhooks', {}, options)).webhooks;
  }

  /** Changes what `changes` has; null removes. With `url` a webhook that was turned off is turned on again. */
  change(id: string, changes: WebhookChanges, options?: CallOptions): Promise<Webhook> {
    return this.http.call('changeWebhook', { path: { id }, body: changes }, options);
  }

  delete(id: string, options?: CallOptions): Promise<void> {
    return this.http.call('deleteWebhook', { path: { id } }, options);
  }

  /** Replaces the secret; for a day deliveries are signed with both. */
  rotate(id: string, options?: CallOptions): Promise<WebhookWithSecret> {
    return this.http.call('rotateWebhook', { path: { id }, body: {} }, options);
  }

  /** Sends a test event now and returns whether the receiver accepted it. */
  test(id: string, options?: CallOptions): Promise<WebhookTestResult> {
    return this.http.call('testWebhook', { path: { id }, body: {} }, options);
  }

  /** Sends the entries of the feed after a cursor again, as new deliveries with the same event IDs; by default all that are stored. */
  replay(id: string, { after = '0', ...options }: CallOptions & { after?: string } = {}): Promise<Webhook> {
    return this.http.call('replayWebhook', { path: { id }, body: { after } }, options);
  }

  /** Sends a delivery that has succeeded or failed again. */
  retry(id: string, deliveryId: string, options?: CallOptions): Promise<WebhookDelivery> {
    return this.http.call('retryWebhookDelivery', { path: { id, deliveryId }, body: {} }, options);
  }

  /** Yields the deliveries that are stored, newest first. */
  deliveries(id: string, options?: CallOptions): AsyncGenerator<WebhookDelivery, void, undefined> {
    return itemsOf<WebhookDelivery, string>(async (after) => {
      const parameters = { path: { id }, query: defined({ after }) };
      const { deliveries, next } = await this.http.call('listWebhookDeliveries', parameters, options);
      return [deliveries, next];
    });
  }
}

/** The headers of a request: of `fetch`, or an object with lowercase names as in Node.js. */
export type HeadersGiven = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns the event of a message that a webhook sent. The signatures follow the Standard Webhooks specification
 * (https://www.standardwebhooks.com).
 *
 * @param body as it was received, before any parsing
 * @param secret `whsec_…`
 * @throws Error when a header is missing, the message is more than 5 minutes away, or no signature is of this secret
 */
export async function verifyWebhook(
  body: string,
  headers: HeadersGiven,
  secret: string,
  { now = Date.now() }: { now?: number } = {},
): Promise<WebhookPayload> {
  const given = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== 'string' || value === '') throw new Error(`The webhook is not genuine: ${name} is missing.`);
    return value;
  };
  const id = given('webhook-id');
  const timestamp = given('webhook-timestamp');
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Number(timestamp) - now / 1000) > TOLERANCE_SECONDS) {
    throw new Error('The webhook is not genuine: its time is more than 5 minutes away.');
  }
  const key = await crypto.subtle.importKey('raw', bytesOf(secret.replace(/^whsec_/, '')), HMAC, false, ['verify']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  for (const signature of given('webhook-signature').split(' ').slice(0, SIGNATURES_MAX)) {
    const [version, value = ''] = signature.split(',');
    const isBase64 = /^[A-Za-z0-9+/]+=*$/.test(value);
    if (version !== 'v1' || !isBase64) continue;
    if (await crypto.subtle.verify(HMAC, key, bytesOf(value), signed)) return JSON.parse(body) as WebhookPayload;
  }
  throw new Error('The webhook is not genuine: no signature is of this secret.');
}

const TOLERANCE_SECONDS = 300;
/** A rotation has two. */
const SIGNATURES_MAX = 10;
const HMAC = { name: 'HMAC', hash: 'SHA-256' };

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
