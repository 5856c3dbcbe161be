import type { SubscriptionDto as Subscription } from '../../src/jobs/dto/subscription.dto.js';
import type { ServiceResponse, TestService } from '../harness/service.js';

/** Sends a request about subscriptions. @param path after `/subscriptions` */
export function onSubscriptions(
  service: TestService,
  key: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string | string[]> = {},
): Promise<ServiceResponse> {
  const sent = { Authorization: `Bearer ${key}`, ...headers };
  if (body === undefined) return service.request(method, `/subscriptions${path}`, sent);
  const json = { 'Content-Type': 'application/json', ...sent };
  return service.request(method, `/subscriptions${path}`, json, JSON.stringify(body));
}

/** Creates a subscription. */
export async function follow(service: TestService, key: string, body: unknown): Promise<Subscription> {
  const response = await onSubscriptions(service, key, 'POST', '', body);
  if (response.status !== 201) throw new Error(`${response.status}: ${response.text}`);
  return response.body as Subscription;
}
