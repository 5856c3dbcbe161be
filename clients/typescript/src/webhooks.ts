import type { Client } from 'openapi-fetch';
import { errorOf } from './errors.js';
import type { PageOptions, SignalOption } from './jobs.js';
import type { components, paths } from './schema.js';

type Schemas = components['schemas'];
export type Webhook = Schemas['Webhook'];
export type WebhookWithSecret = Schemas['WebhookWithSecret'];
export type WebhookTestResult = Schemas['WebhookTestResult'];
export type WebhookDeliveries = Schemas['WebhookDeliveriesPage'];
/** The body of a message about a job. */
export type JobEvent = Schemas['JobEvent'];
export type WebhookEvent = NonNullable<Schemas['NewWebhookBody']['events']>[number];

export interface WebhookOptions extends SignalOption {
  /** The events to send; all by default. */
  events?: readonly WebhookEvent[];
}

/** Webhooks of archive jobs. Every method throws ChannelTranscriptsError. */
export interface WebhooksClient {
  /** Creates a webhook. Store its `secret`, which is returned only now: it verifies the signatures. */
  create(url: string, options?: WebhookOptions): Promise<WebhookWithSecret>;
  list(options?: SignalOption): Promise<Webhook[]>;
  delete(id: string, options?: SignalOption): Promise<void>;
  /** Replaces the secret; for a day deliveries are signed with both. */
  rotate(id: string, options?: SignalOption): Promise<WebhookWithSecret>;
  /** Sends a test event now and returns whether the receiver accepted it. */
  test(id: string, options?: SignalOption): Promise<WebhookTestResult>;
  /** Returns a page of the deliveries, newest first. */
  deliveries(id: string, options?: PageOptions<string>): Promise<WebhookDeliveries>;
}

export function webhooksClient(http: Client<paths, 'application/json'>): WebhooksClient {
  return {
    create: async (url, { events, signal } = {}) => {
      const body = { url, ...(events && { events: [...events] }) };
      const { data, error, response } = await http.POST('/webhooks', { body, ...(signal && { signal }) });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    list: async ({ signal } = {}) => {
      const { data, error, response } = await http.GET('/webhooks', signal && { signal });
      if (data === undefined) throw errorOf(response, error);
      return data.webhooks;
    },
    delete: async (id, options) => {
      const { error, response } = await http.DELETE('/webhooks/{id}', { params: { path: { id } }, ...options });
      if (!response.ok) throw errorOf(response, error);
    },
    rotate: async (id, options) => {
      const params = { path: { id } };
      const { data, error, response } = await http.POST('/webhooks/{id}/rotate', { params, body: {}, ...options });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    test: async (id, options) => {
      const params = { path: { id } };
      const { data, error, response } = await http.POST('/webhooks/{id}/test', { params, body: {}, ...options });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    deliveries: async (id, { signal, ...query } = {}) => {
      const params = { path: { id }, query };
      const { data, error, response } = await http.GET('/webhooks/{id}/deliveries', {
        params,
        ...(signal && { signal }),
      });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
  };
}
