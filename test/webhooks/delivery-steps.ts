import type { ServerResponse } from 'node:http';
import { expect } from '@jest/globals';
import { ATTEMPTS_MAX } from '../../src/webhooks/webhook-deliverer.js';
import type { ServiceResponse, TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { ReceivedMessage } from './receiver.js';

/** An organization with a webhook. */
export interface Customer {
  organizationId: string;
  key: string;
  /** Of the first webhook. */
  id: string;
  secret: string;
}

export type Delivery = Record<
  'id' | 'eventId' | 'state' | 'createdAt' | 'lastAttemptAt' | 'nextAttemptAt' | 'error',
  string
> & {
  attempts: number;
};

/** What tests do with the webhooks of a service, over HTTP and with the functions of the database. */
export class DeliverySteps {
  constructor(
    private readonly service: TestService,
    private readonly receiverUrl: string,
  ) {}

  async customer(webhook: { url?: string; events?: string[]; labels?: object } = {}): Promise<Customer> {
    const { id: organizationId, key } = await this.service.organization();
    return { organizationId, key, ...(await this.addWebhook(key, webhook)) };
  }

  async addWebhook(key: string, webhook: object = {}): Promise<{ id: string; secret: string }> {
    const response = await this.send(key, 'POST', '/webhooks', { url: this.receiverUrl, ...webhook });
    expect(response.status).toBe(201);
    return response.body as { id: string; secret: string };
  }

  send(key: string, method: string, path: string, body?: object): Promise<ServiceResponse> {
    const headers = { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) };
    return this.service.request(method, path, headers, body && JSON.stringify(body));
  }

  /** How many deliveries of its webhook wait. */
  async waiting({ id }: Customer): Promise<number> {
    const waiting = `webhook_id = '${id}' AND next_attempt_at IS NOT NULL`;
    const [row] = await this.service.query(`SELECT count(*)::int AS count FROM webhook_deliveries WHERE ${waiting}`);
    return Number(row?.['count']);
  }

  post({ key, id }: Customer, operation: string): Promise<ServiceResponse> {
    return this.service.request('POST', `/webhooks/${id}/${operation}`, { Authorization: `Bearer ${key}` });
  }

  async enqueue({ organizationId }: Customer, type = 'job.completed', data = '{"jobId":"job_1"}'): Promise<void> {
    await this.service.query(`SELECT webhook_enqueue('${organizationId}', '${type}', '${data}')`);
  }

  async enqueued(owner: Customer): Promise<Customer> {
    await this.enqueue(owner);
    return owner;
  }

  /** Enqueues a delivery that has one attempt left, which is due. */
  async enqueueLastAttempt({ id }: Customer): Promise<void> {
    await this.service.query(`
      INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at, attempts)
        VALUES ('${id}', 'job.completed', '{}', clock_now(), clock_now(), ${ATTEMPTS_MAX - 1})`);
  }

  /** Claims deliveries for a process other than the service. */
  claim(process = 1, webhooksMax = 50, ofOrganizationMax = 5): Promise<Record<string, unknown>[]> {
    return this.service.query(
      `SELECT * FROM webhook_claim('${claimOf(process)}', true, ${webhooksMax}, ${ofOrganizationMax}, 60)`,
    );
  }

  /** The same of webhooks whose last attempt failed. */
  claimFailing(): Promise<Record<string, unknown>[]> {
    return this.service.query(`SELECT * FROM webhook_claim('${claimOf(1)}', false, 50, 5, 60)`);
  }

  /** Records the success of a claimed delivery. */
  record(deliveryId: unknown, process = 1): Promise<unknown[]> {
    return this.service.query(
      `SELECT * FROM webhook_record('${String(deliveryId)}', '${claimOf(process)}', 'succeeded', 200, NULL, 1, NULL, 1)`,
    );
  }

  /** Makes all webhooks those whose last attempt succeeded. */
  async succeedBefore(): Promise<void> {
    await this.service.query('UPDATE webhooks SET healthy = true');
  }

  async deliveriesOf({ key, id }: { key: string; id: string }): Promise<Delivery[]> {
    return (await this.service.get(`/webhooks/${id}/deliveries`, key)).body.deliveries as Delivery[];
  }

  async webhookOf({ key }: Customer): Promise<Record<string, unknown>> {
    return (await this.service.get('/webhooks', key)).body.webhooks[0] as Record<string, unknown>;
  }

  /** Waits until the newest delivery has had `attempts`. */
  async attempted(owner: Customer, attempts: number): Promise<Delivery> {
    await until(async () => (await this.deliveriesOf(owner))[0]?.attempts === attempts);
    const [delivery] = await this.deliveriesOf(owner);
    if (!delivery) throw new Error('There is no delivery.');
    return delivery;
  }
}

/** A receiver's response without a body. */
export function respondWith(status: number): (response: ServerResponse) => void {
  return (response) => void response.writeHead(status).end();
}

/** The only message; throws when there are others. */
export function only(messages: readonly ReceivedMessage[]): ReceivedMessage {
  const [message, ...more] = messages;
  if (!message || more.length > 0) throw new Error(`${messages.length} messages were received.`);
  return message;
}

/** The claim of a process other than the service. */
function claimOf(process: number): string {
  return `00000000-0000-0000-0000-00000000001${process}`;
}
