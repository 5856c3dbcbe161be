import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { DatabaseClock } from '../database/database-clock.js';
import { startService, type ServiceResponse, type TestService, type TestOrganization } from '../harness/service.js';
import { type CliResult, CliSession } from './run-cli.js';
import { AUDIENCE, TestIdentityProvider } from '../auth/identity-provider.js';
import { createJob, postJob } from '../jobs/job-requests.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-9d4b';

describe('the audit trail', () => {
  const REQUEST_ID = 'ticket-4711';
  let service: TestService;
  let session: CliSession;

  beforeAll(async () => {
    session = new CliSession();
    service = await startService({ environment: { ADMIN_TOKEN, JOB_CONCURRENCY: 0 } });
  });
  beforeEach(() => service.query('DELETE FROM audit_entries'));

  afterAll(async () => {
    session.close();
    await service.close();
  });

  function admin(method: string, path: string, body?: object): Promise<ServiceResponse> {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'X-Request-Id': REQUEST_ID };
    const text = body && JSON.stringify(body);
    return service.request(
      method,
      `/admin${path}`,
      text ? { ...headers, 'Content-Type': 'application/json' } : headers,
      text,
    );
  }
  const cli = (...args: string[]): Promise<CliResult> => session.run(args, { DATABASE_URL: service.databaseUrl });

  /** The JSON document of a command that succeeds. */
  async function json(...args: string[]): Promise<Record<string, unknown>> {
    const { code, output, errorOutput } = await cli(...args, '--json');
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
    return JSON.parse(output) as Record<string, unknown>;
  }

  interface Entry extends Record<string, unknown> {
    id: string;
    action: string;
  }

  /** Newest first. */
  async function entries(query = ''): Promise<Entry[]> {
    const { status, body } = await admin('GET', `/audit${query}`);
    expect(status).toBe(200);
    return body.entries as Entry[];
  }

  /** Makes a job of an organization; no process runs it. */
  async function newJob(organizationId: string, keyId: string): Promise<string> {
    const request = { languages: [], limit: null, since: null, onQuota: 'pause', channel: '@tidewater' } as const;
    return (await service.app.get(JobsService).create(request, { organizationId, keyId, requestId: 'test' })).id;
  }

  it('has every change over HTTP, with the request and the values before and after', async () => {
    const { id } = (await admin('POST', '/organizations', { name: 'Acme', plan: 'free' })).body as { id: string };
    await admin('PATCH', `/organizations/${id}`, { plan: 'pro', monthlyLimit: 7 });
    const issued = (await admin('POST', `/organizations/${id}/keys`, { name: 'server', expiresInDays: 9 })).body;
    const keyId = String(issued.id);
    const jobId = await newJob(id, keyId);
    await admin('POST', `/jobs/${jobId}/cancel`);
    const rotated = (await admin('POST', `/keys/${keyId}/rotate`, { graceHours: 0 })).body;
    await admin('DELETE', `/keys/${String(rotated.id)}`);
    await admin('DELETE', `/organizations/${id}`);
    await admin('POST', '/usage/prune');

    const all = await entries();
    const expected = [
      ['usage.pruned', null, null, null, expect.objectContaining({ retentionMonths: 24, periods: 0 })],
      [
        'organization.deleted',
        id,
        id,
        { name: 'Acme', plan: 'pro', monthlyLimit: 7, externalId: null },
        { revokedKeys: 0 },
      ],
      ['key.revoked', id, rotated.id, { revokedAt: null }, { revokedAt: expect.any(String) }],
      [
        'key.rotated',
        id,
        keyId,
        { expiresAt: issued.expiresAt, revokedAt: null, replacedBy: null },
        { expiresAt: issued.expiresAt, revokedAt: expect.any(String), replacedBy: rotated.id },
      ],
      ['job.canceled', id, jobId, { state: 'queued' }, { state: 'canceled' }],
      [
        'key.issued',
        id,
        keyId,
        null,
        { name: 'server', expiresAt: issued.expiresAt, monthlyLimit: null, scopes: ['read', 'write'] },
      ],
      ['organization.limit_changed', id, id, { monthlyLimit: null }, { monthlyLimit: 7 }],
      ['organization.plan_changed', id, id, { plan: 'free' }, { plan: 'pro' }],
      ['organization.created', id, id, null, { name: 'Acme', plan: 'free', monthlyLimit: null, externalId: null }],
    ].map(([action, organizationId, target, before, after]) => ({
      id: expect.any(String),
      at: expect.any(String),
      actor: 'admin',
      keyId: null,
      requestId: REQUEST_ID,
      callId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      address: '127.0.0.1',
      person: null,
      action,
      organizationId,
      target,
      before,
      after,
    }));
    expect(all).toEqual(expected);
    expect(await entries(`?organization=${id}`)).toEqual(expected.slice(1));
    const callIds = all.map(({ callId }) => String(callId));
    expect(new Set(callIds).size).toBe(all.length - 1);
    for (const callId of callIds) expect(service.logs.join('')).toContain(`"callId":"${callId}"`);
    for (const secret of [issued.key, rotated.key, ADMIN_TOKEN]) expect(JSON.stringify(all)).not.toContain(secret);
  });

  it('has every change by a command', async () => {
    const { id } = await json('org', 'create', '--name', 'Commanded', '--plan', 'free');
    const org = String(id);
    await json('org', 'set-plan', org, 'pro');
    await json('org', 'set-limit', org, '5');
    const { id: keyId } = await json('key', 'issue', org);
    await json('job', 'cancel', await newJob(org, String(keyId)));
    const { id: newKeyId } = await json('key', 'rotate', String(keyId));
    await json('key', 'revoke', String(newKeyId));
    await json('org', 'delete', org);
    await json('usage', 'prune');

    const listed = await json('audit');
    expect(listed).toEqual({ entries: await entries(), next: null });
    expect(
      (listed['entries'] as Entry[]).map(({ actor, requestId, callId, address, action }) => [
        actor,
        requestId,
        callId,
        address,
        action,
      ]),
    ).toEqual(
      [
        'usage.pruned',
        'organization.deleted',
        'key.revoked',
        'key.rotated',
        'job.canceled',
        'key.issued',
        'organization.limit_changed',
        'organization.plan_changed',
        'organization.created',
      ].map((action) => ['cli', null, null, null, action]),
    );
    const { output } = await cli('audit', '--organization', org, '--limit', '1');
    expect(output).toMatch(
      /^next +\d+\n\nENTRIES\nAT +ACTOR +ACTION +ORGANIZATION ID +TARGET +BEFORE +AFTER +ADDRESS\n\S+ +cli +organization\.deleted +org_\S+ +org_\S+ +\{.*\} +\{.*\} +-\n$/,
    );
  });

  it('has nothing that changed nothing', async () => {
    const { id } = (await admin('POST', '/organizations', { name: 'Same', plan: 'pro' })).body as { id: string };
    const { id: keyId } = (await admin('POST', `/organizations/${id}/keys`)).body as { id: string };
    const jobId = await newJob(id, keyId);
    for (let count = 0; count < 2; count += 1) {
      await admin('DELETE', `/keys/${keyId}`);
      await admin('POST', `/jobs/${jobId}/cancel`);
    }
    await admin('PATCH', `/organizations/${id}`, { plan: 'pro', monthlyLimit: null });
    await admin('PATCH', `/organizations/${id}`, { plan: 'gold' });
    await admin('GET', `/organizations/${id}/usage?by=day`);
    expect((await entries()).map(({ action }) => action)).toEqual([
      'job.canceled',
      'key.revoked',
      'key.issued',
      'organization.created',
    ]);
  });

  it('is stored with the change or not at all', async () => {
    const { id } = (await admin('POST', '/organizations', { name: 'Whole', plan: 'free' })).body as { id: string };
    const { id: keyId } = (await admin('POST', `/organizations/${id}/keys`)).body as { id: string };
    const jobId = await newJob(id, keyId);
    const state = () =>
      service.query(`SELECT (SELECT count(*) FROM organizations) AS organizations, (SELECT count(*) FROM api_keys) AS keys,
        (SELECT row_to_json(o) FROM organizations o WHERE id = '${id}') AS organization,
        (SELECT revoked_at FROM api_keys WHERE id = '${keyId}') AS revoked_at,
        (SELECT state FROM jobs WHERE id = '${jobId}') AS job`);
    const before = await state();
    await service.query('ALTER TABLE audit_entries ADD CONSTRAINT full_disk CHECK (false) NOT VALID');
    try {
      for (const [method, path, body] of [
        ['POST', '/organizations', { name: 'Never', plan: 'pro' }],
        ['PATCH', `/organizations/${id}`, { plan: 'pro' }],
        ['DELETE', `/organizations/${id}`],
        ['POST', `/organizations/${id}/keys`],
        ['POST', `/keys/${keyId}/rotate`],
        ['DELETE', `/keys/${keyId}`],
        ['POST', `/jobs/${jobId}/cancel`],
      ] as const) {
        expect([method, path, (await admin(method, path, body)).status]).toEqual([method, path, 500]);
      }
    } finally {
      await service.query('ALTER TABLE audit_entries DROP CONSTRAINT full_disk');
    }
    expect(await state()).toEqual(before);
  });

  it('is read in pages, newest first, each change once', async () => {
    for (let count = 0; count < 5; count += 1)
      await admin('POST', '/organizations', { name: `P${count}`, plan: 'pro' });
    const read: Entry[] = [];
    let after = '';
    do {
      const { body } = await admin('GET', `/audit?limit=2${after}`);
      read.push(...(body.entries as Entry[]));
      after = body.next === null ? '' : `&after=${String(body.next)}`;
    } while (after !== '');
    expect(read).toEqual(await entries());
    expect(read.map(({ after: values }) => (values as { name: string }).name)).toEqual(['P4', 'P3', 'P2', 'P1', 'P0']);
  });

  it('is removed with the usage of its month', async () => {
    const { id, keyId } = await service.organization();
    const jobId = await newJob(id, keyId);
    const clock = new DatabaseClock((statement) => service.query(statement));
    await clock.stop(new Date('2020-01-31T23:59:59Z'));
    await admin('POST', '/organizations', { name: 'Old', plan: 'pro' });
    await admin('POST', `/jobs/${jobId}/cancel`);
    await clock.reset();
    expect(await entries()).toHaveLength(2);
    await admin('POST', '/organizations', { name: 'New', plan: 'pro' });
    await admin('POST', '/usage/prune');
    expect((await entries()).map(({ action }) => action)).toEqual(['usage.pruned', 'organization.created']);
  });

  it.each([
    ['?after=x', 400, 'invalid_request'],
    ['?after=%00', 400, 'invalid_request'],
    ['?after=99999999999999999999', 400, 'invalid_request'],
    ['?limit=0', 400, 'invalid_request'],
    ['?actor=cli', 400, 'invalid_request'],
    ['?organization=a&organization=b', 400, 'invalid_request'],
    ['?organization=org_none', 404, 'not_found'],
    ['?organization=%00', 404, 'not_found'],
  ])('%s is %i %s', async (query, status, code) => {
    expect(await admin('GET', `/audit${query}`)).toMatchObject({ status, body: { error: { code } } });
  });
});

describe('the entries of callers', () => {
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
});
