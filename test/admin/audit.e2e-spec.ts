import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { DatabaseClock } from '../database/database-clock.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { type CliResult, CliSession } from './run-cli.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-9d4b';
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

describe('the audit trail', () => {
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
