import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AUDIENCE, TestIdentityProvider } from '../auth/identity-provider.js';
import { startService, type ServiceResponse, type TestService, type TestOrganization } from '../harness/service.js';
import { createJob, postJob } from '../jobs/job-requests.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-9d4b';
const URL_OF_WEBHOOK = 'http://127.0.0.1:9999/hooks/a-secret-path?token=a-secret';

let provider: TestIdentityProvider;
let service: TestService;
let customer: TestOrganization;

beforeAll(async () => {
  provider = await TestIdentityProvider.start([]);
  service = await startService({
    environment: {
      ...{ OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, ADMIN_TOKEN, JOB_CONCURRENCY: 0 },
      ...{ WEBHOOK_SECRET_KEY: ['a-key-for-the-secrets-of-the-tests'], WEBHOOK_ALLOW_PRIVATE: true },
    },
  });
  customer = await service.organization();
  await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${customer.id}'`);
});
afterAll(async () => {
  await service.close();
  await provider.stop();
});

interface Entry extends Record<string, unknown> {
  action: string;
  callId: string;
}

const send = (key: string, method: string, path: string, body?: object): Promise<ServiceResponse> =>
  service.request(
    method,
    path,
    { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'X-Request-Id': 'nightly-1' },
    body && JSON.stringify(body),
  );

/** Those of the customer, oldest first. */
const entriesOf = async (key: string): Promise<Entry[]> =>
  ((await send(key, 'GET', '/audit')).body.entries as Entry[]).reverse();

it('the audit trail has what a key changes, each in the transaction of the change, and its organization reads it', async () => {
  const { key, keyId } = customer;
  const job = await createJob(service, key, { channel: '@tidewater', limit: 3 });
  for (const path of ['cancel', 'cancel', 'resume', 'resume']) await send(key, 'POST', `/jobs/${job}/${path}`);
  await send(key, 'DELETE', `/jobs/${job}`);
  await send(key, 'DELETE', `/jobs/${job}`);
  const { id: subscription } = await follow(service, key, { channel: '@tidewater' });
  for (const change of [{ checkMinutes: 15 }, { checkMinutes: 15 }, { state: 'paused' }, { checkMinutes: 7 }])
    await onSubscriptions(service, key, 'PATCH', `/${subscription}`, change);
  await onSubscriptions(service, key, 'DELETE', `/${subscription}`);
  const { body: webhook } = await send(key, 'POST', '/webhooks', { url: URL_OF_WEBHOOK, events: ['job.completed'] });
  const { body: rotated } = await send(key, 'POST', `/webhooks/${webhook.id}/rotate`);
  expect(Object.keys(rotated as object).sort()).toEqual(Object.keys(webhook as object).sort());
  await send(key, 'POST', `/webhooks/${webhook.id}/test`);
  await send(key, 'DELETE', `/webhooks/${webhook.id}`);

  const stored = { url: 'http://127.0.0.1:9999', events: ['job.completed'], labels: {}, authorization: null };
  const active = { state: 'active', reason: null, checkMinutes: 60 };
  const entries = await entriesOf(key);
  expect(entries.map(({ action, target, before, after }) => [action, target, before, after])).toEqual([
    ['job.created', job, null, expect.objectContaining({ channel: '@tidewater', limit: 3 })],
    ['job.canceled', job, { state: 'queued' }, { state: 'canceled' }],
    ['job.resumed', job, { state: 'canceled' }, { state: 'queued' }],
    ['job.deleted', job, expect.objectContaining({ channel: '@tidewater', limit: 3 }), null],
    ['subscription.created', subscription, null, expect.objectContaining({ channel: '@tidewater', start: 'now' })],
    ['subscription.changed', subscription, active, { ...active, checkMinutes: 15 }],
    [
      ...['subscription.changed', subscription, { ...active, checkMinutes: 15 }],
      { state: 'paused', reason: 'paused_by_caller', checkMinutes: 15 },
    ],
    ['subscription.deleted', subscription, expect.objectContaining({ channel: '@tidewater' }), null],
    ['webhook.created', webhook.id, null, stored],
    ['webhook.rotated', webhook.id, null, stored],
    ['webhook.deleted', webhook.id, stored, null],
  ]);
  for (const entry of entries) {
    expect(entry).toMatchObject({
      actor: 'key',
      keyId,
      organizationId: customer.id,
      address: '127.0.0.1',
      person: null,
    });
    // The line of the call in the log is found by the ID of the service's own making.
    const line = service.logs.find((text) => text.includes(`"callId":"${entry.callId}"`)) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ requestId: entry['requestId'], address: '127.0.0.1', keyId });
  }
  expect(new Set(entries.map(({ callId }) => callId)).size).toBe(entries.length);
  for (const secret of ['a-secret', webhook.secret, key]) expect(JSON.stringify(entries)).not.toContain(secret);
});

it('a client of the identity provider is named as one, by HTTP and MCP', async () => {
  const token = await provider.sign({ client_id: 'reports', org_id: 'acme', sub: 'x' });
  const { body: job } = await send(token, 'POST', '/jobs', { channel: '@tidewater' });
  const message = {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'follow_channel', arguments: { channel: '@tidewater' } },
  };
  const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
  const post = () =>
    service.request('POST', '/mcp', { ...headers, Authorization: `Bearer ${token}` }, JSON.stringify(message));
  await post();
  await post();
  const [{ id } = { id: '' }] = await service.query("SELECT id FROM api_keys WHERE client = 'reports'");
  const entries = (await entriesOf(token)).filter(({ actor }) => actor === 'client');
  expect(entries.map(({ action, target, keyId }) => [action, target, keyId])).toEqual([
    ['job.created', job.id, id],
    ['subscription.created', expect.stringMatching(/^sub_/), id],
  ]);
});

it('the same request repeated with its Idempotency-Key is one entry', async () => {
  const { id, key } = await service.organization();
  for (let count = 0; count < 3; count += 1)
    await postJob(service, key, { channel: '@tidewater' }, { 'Idempotency-Key': 'once' });
  await postJob(service, key, { channel: '@harbourlight' }, { 'Idempotency-Key': 'once' });
  expect((await entriesOf(key)).map(({ action, organizationId }) => [action, organizationId])).toEqual([
    ['job.created', id],
  ]);
});

it('has the request of a job as its caller sent it, and of a list of videos their number', async () => {
  const { key } = await service.organization();
  const { body: job } = await send(key, 'POST', '/jobs', { videos: ['tw-chowder_', 'tw-bread___'] });
  await send(key, 'DELETE', `/jobs/${job.id}`);
  const [created, deleted] = await entriesOf(key);
  expect(created?.['after']).toMatchObject({ videos: 2 });
  expect(created?.['after']).toEqual(deleted?.['before']);
  expect(created?.['after']).not.toHaveProperty('videosHash');
});

it('an organization reads its own entries only, in pages, and not who its operators are', async () => {
  const { id, key } = await service.organization();
  const admin = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' };
  await service.request('PATCH', `/admin/organizations/${id}`, admin, '{"monthlyLimit":7}');
  await createJob(service, key, { channel: '@tidewater' });
  const all = (await send(key, 'GET', '/audit')).body;
  expect(all.entries).toMatchObject([
    { action: 'job.created', actor: 'key', address: '127.0.0.1' },
    {
      ...{ action: 'organization.limit_changed', actor: 'admin', after: { monthlyLimit: 7 } },
      ...{ address: null, person: null, requestId: null, callId: null, keyId: null },
    },
  ]);
  const first = (await send(key, 'GET', '/audit?limit=1')).body;
  const second = (await send(key, 'GET', `/audit?limit=1&after=${first.next}`)).body;
  expect([...first.entries, ...second.entries]).toEqual(all.entries);
  for (const query of ['after=x', 'limit=0', `organization=${customer.id}`])
    expect((await send(key, 'GET', `/audit?${query}`)).status).toBe(400);
  expect((await service.request('GET', '/audit')).status).toBe(401);
  const operators = (await service.request('GET', `/admin/audit?organization=${id}`, admin)).body.entries;
  expect(operators.map(({ action, address }: Entry) => [action, address])).toEqual([
    ['job.created', '127.0.0.1'],
    ['organization.limit_changed', '127.0.0.1'],
  ]);
});

it('a change whose entry cannot be stored is not made', async () => {
  const { key } = await service.organization();
  const job = await createJob(service, key, { channel: '@tidewater' });
  const { id: subscription } = await follow(service, key, { channel: '@tidewater' });
  const { body: webhook } = await send(key, 'POST', '/webhooks', { url: URL_OF_WEBHOOK });
  const rows = async () =>
    JSON.stringify([
      await service.query('SELECT id, state, deleted_at, check_seconds FROM jobs ORDER BY id'),
      await service.query('SELECT id, secret FROM webhooks ORDER BY id'),
    ]);
  const before = await rows();
  await service.query('ALTER TABLE audit_entries ADD CONSTRAINT full_disk CHECK (false) NOT VALID');
  try {
    for (const [method, path, body] of [
      ['POST', '/jobs', { channel: '@tidewater' }],
      ['POST', `/jobs/${job}/cancel`],
      ['DELETE', `/jobs/${job}`],
      ['POST', '/subscriptions', { channel: '@tidewater' }],
      ['PATCH', `/subscriptions/${subscription}`, { state: 'paused' }],
      ['DELETE', `/subscriptions/${subscription}`],
      ['POST', '/webhooks', { url: URL_OF_WEBHOOK }],
      ['POST', `/webhooks/${webhook.id}/rotate`],
      ['DELETE', `/webhooks/${webhook.id}`],
    ] as const)
      expect([method, path, (await send(key, method, path, body)).status]).toEqual([method, path, 500]);
  } finally {
    await service.query('ALTER TABLE audit_entries DROP CONSTRAINT full_disk');
  }
  expect(await rows()).toBe(before);
});
