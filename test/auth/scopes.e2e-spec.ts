import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { Routes } from '../../src/http/routes/routes.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { createJob } from '../jobs/job-requests.js';
import { clientOf, messageUrl, request as send, request } from '../messages/message-client.js';
import { follow } from '../subscriptions/subscription-requests.js';
import { AUDIENCE, TestIdentityProvider } from './identity-provider.js';
import { NatsBroker, natsIsInstalled } from '../messages/nats-broker.js';

describe('scopes', () => {
  const RATE = 200;
  let provider: TestIdentityProvider;
  let service: TestService;
  let client: ClientProxy;
  let organizationId: string;
  /** Of a key that may do everything. */
  let owner: string;
  let reader: string;
  let writer: string;

  beforeAll(async () => {
    provider = await TestIdentityProvider.start([]);
    service = await startService({
      environment: {
        ...{ OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, OIDC_SCOPES: true },
        ...{ MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0, JOB_CONCURRENCY: 0, RATE_LIMIT_PER_MINUTE: RATE },
        WEBHOOK_SECRET_KEY: ['a-key-for-the-secrets-of-the-tests'],
        WEBHOOK_ALLOW_PRIVATE: true,
      },
    });
    client = clientOf(messageUrl(service));
    ({ id: organizationId, key: owner } = await service.organization());
    await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${organizationId}'`);
    const keys = service.app.get(ApiKeysService);
    [reader, writer] = (
      await Promise.all((['read', 'write'] as const).map((scope) => keys.issue({ organizationId, scopes: [scope] })))
    ).map(({ key }) => key) as [string, string];
  });

  afterAll(async () => {
    await client.close();
    await service.close();
    await provider.stop();
  });

  function call(key: string, method: string, path: string, body?: object): Promise<ServiceResponse> {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    return service.request(method, path, headers, body && JSON.stringify(body));
  }

  function callTool(key: string, name: string, args: object): Promise<ServiceResponse> {
    const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
    return service.request('POST', '/mcp', { ...headers, Authorization: `Bearer ${key}` }, JSON.stringify(message));
  }
  /** What a key is refused or not, by the code of the error. */
  const codeOf = ({ status, body }: ServiceResponse): unknown => (status < 400 ? status : body.error.code);

  /** Everything that callers own, as text. */
  const owned = async (): Promise<string> =>
    JSON.stringify([
      await service.query(`SELECT id, state, key_id, check_seconds, deleted_at FROM jobs ORDER BY id`),
      await service.query(`SELECT id, url, secret FROM webhooks ORDER BY id`),
      await service.query(`SELECT id FROM feed_links ORDER BY id`),
    ]);

  describe('a key that may only read', () => {
    it('is refused at every operation that changes something, before the plan and the parameters, and changes nothing', async () => {
      const job = await createJob(service, owner, { channel: '@tidewater' });
      const { id: subscription } = await follow(service, owner, { channel: '@tidewater' });
      const url = 'http://127.0.0.1:9999/';
      const { body: webhook } = await call(owner, 'POST', '/webhooks', { url });
      const { body: link } = await call(owner, 'POST', '/feed-links', {});
      const before = await owned();
      const ids: Record<string, string> = {
        ...{ jobs: job, subscriptions: subscription },
        ...{ webhooks: webhook.id, 'feed-links': link.id, library: 'tw-chowder_' },
      };
      const changing = service.app
        .get(Routes)
        .all.filter((route) => route.audience === 'public' && route.scope === 'write');
      expect(changing.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
        'DELETE /feed-links/{id}',
        'DELETE /jobs/{id}',
        'DELETE /library',
        'DELETE /library/videos/{id}',
        'DELETE /subscriptions/{id}',
        'DELETE /webhooks/{id}',
        'PATCH /jobs/{id}',
        'PATCH /subscriptions/{id}',
        'PATCH /webhooks/{id}',
        'POST /feed-links',
        'POST /jobs',
        'POST /jobs/{id}/cancel',
        'POST /jobs/{id}/resume',
        'POST /subscriptions',
        'POST /subscriptions/{id}/check',
        'POST /webhooks',
        'POST /webhooks/{id}/deliveries/{deliveryId}/retry',
        'POST /webhooks/{id}/replay',
        'POST /webhooks/{id}/rotate',
        'POST /webhooks/{id}/test',
      ]);
      for (const { method, path } of changing) {
        const id = ids[path.split('/')[1] ?? ''] ?? '';
        const response = await call(
          reader,
          method,
          path.replace('{id}', id),
          method === 'DELETE' ? undefined : { unknown: 1 },
        );
        expect([method, path, response.status, response.body.error]).toEqual([
          ...[method, path, 403],
          {
            code: 'scope_missing',
            message: 'This API key does not have the scope write. The operator can issue one that has it.',
            scope: 'write',
            retryable: false,
            docs: '/docs/errors#scope_missing',
            requestId: response.headers['x-request-id'],
          },
        ]);
        expect(response.headers['www-authenticate']).toBeUndefined();
        expect(Number(response.headers['x-ratelimit-remaining'])).toBeLessThan(RATE);
      }
      expect(await owned()).toBe(before);
      for (const [tool, args] of [
        ['start_archive_job', { channel: '@tidewater' }],
        ['follow_channel', { channel: '@tidewater' }],
      ] as const) {
        const { status, text } = await callTool(reader, tool, args);
        expect([status, text.includes('"isError":true'), text.includes('scope_missing: ')]).toEqual([200, true, true]);
      }
      expect(await owned()).toBe(before);
      const line = service.logs.find((text) => text.includes('"code":"scope_missing"')) ?? '{}';
      expect(JSON.parse(line)).toMatchObject({ status: 403, address: '127.0.0.1' });
    });

    it('reads everything: transcripts, lists, results, usage, the audit, by HTTP, MCP and messages', async () => {
      const job = await createJob(service, owner, { channel: '@tidewater' });
      for (const path of [
        ...[
          '/channels/@tidewater/transcripts?limit=1',
          '/channels/@tidewater/uploads',
          '/videos/tw-bread___/transcript',
        ],
        ...['/usage', '/audit', '/jobs', `/jobs/${job}`, `/jobs/${job}/results`, '/subscriptions', '/webhooks'],
      ])
        expect([path, codeOf(await call(reader, 'GET', path))]).toEqual([path, 200]);
      expect(codeOf(await call(reader, 'POST', '/transcripts', { videos: ['tw-bread___'] }))).toBe(200);
      for (const [tool, args] of [
        ['get_usage', {}],
        ['get_job', { id: job }],
        ['get_channel_transcripts', { channel: '@tidewater', limit: 1 }],
      ] as const) {
        const { text } = await callTool(reader, tool, args);
        expect([tool, text.includes('"isError":true')]).toEqual([tool, false]);
      }
      const { error, events } = await send(client, { apiKey: reader, id: '@tidewater', limit: 1 });
      expect([error, events.at(-1)?.type]).toEqual([undefined, 'summary']);
    });

    it('has the scopes also after it was rotated, and on the free plan', async () => {
      const keys = service.app.get(ApiKeysService);
      const free = await service.organization({ plan: 'free' });
      const issued = await keys.issue({ organizationId: free.id, scopes: ['read'] });
      expect(issued.scopes).toEqual(['read']);
      const rotated = await keys.rotate(issued.id, 0);
      expect([rotated.scopes, rotated.replaced.scopes]).toEqual([['read'], ['read']]);
      expect(codeOf(await call(rotated.key, 'POST', '/jobs', { channel: '@tidewater' }))).toBe('scope_missing');
      expect(codeOf(await call(free.key, 'POST', '/jobs', { channel: '@tidewater' }))).toBe('feature_not_in_plan');
    });
  });

  it('a key that may only write creates and reads nothing back', async () => {
    expect(codeOf(await call(writer, 'POST', '/jobs', { channel: '@tidewater' }))).toBe(202);
    const refused = await call(writer, 'GET', '/jobs');
    expect([refused.status, refused.body.error.code, refused.body.error.scope]).toEqual([403, 'scope_missing', 'read']);
    expect((await send(client, { apiKey: writer, id: '@tidewater' })).error.error.code).toBe('scope_missing');
  });

  it('a refusal for the scope counts for the limit per minute, also of messages that do not count otherwise', async () => {
    const { id } = await service.organization();
    const { key } = await service.app.get(ApiKeysService).issue({ organizationId: id, scopes: ['write'] });
    const remaining = [];
    for (let sent = 0; sent < 2; sent += 1) {
      const { status, headers } = await callTool(key, 'get_usage', {});
      remaining.push([status, headers['x-ratelimit-remaining']]);
    }
    expect(remaining).toEqual([
      [403, `${RATE - 1}`],
      [403, `${RATE - 2}`],
    ]);
  });

  describe('a token with OIDC_SCOPES', () => {
    const tokenWith = (scope: unknown): Promise<string> =>
      provider.sign({ client_id: 'reports', org_id: 'acme', sub: 'reports', scope });

    it.each([
      ['openid transcripts:read', 200, 'scope_missing'],
      ['transcripts:write transcripts:read', 200, 202],
      [['transcripts:read', 'transcripts:write'], 200, 202],
      ['openid', 'scope_missing', 'scope_missing'],
      ['transcripts:readwrite Transcripts:read', 'scope_missing', 'scope_missing'],
      [undefined, 'scope_missing', 'scope_missing'],
      [7, 'scope_missing', 'scope_missing'],
    ])('whose scope is %j may do what it says', async (scope, read, write) => {
      const token = await tokenWith(scope);
      expect(codeOf(await call(token, 'GET', '/usage'))).toBe(read);
      expect(codeOf(await call(token, 'POST', '/jobs', { channel: '@tidewater' }))).toBe(write);
    });

    it('is told which scope to request, as the metadata for signing in name it', async () => {
      const { body, headers } = await call(await tokenWith('transcripts:read'), 'POST', '/jobs', {});
      const metadataUrl = `${service.url}/.well-known/oauth-protected-resource`;
      expect(headers['www-authenticate']).toBe(
        `Bearer error="insufficient_scope", scope="transcripts:write", resource_metadata="${metadataUrl}"`,
      );
      expect(body.error.message).toBe(
        'This access token does not have the scope transcripts:write. Request a token that has it.',
      );
      for (const path of ['', '/mcp']) {
        const metadata = await service.request('GET', `/.well-known/oauth-protected-resource${path}`);
        expect(metadata.body.scopes_supported).toEqual(['openid', 'transcripts:read', 'transcripts:write']);
      }
    });
  });
});

describe.each(natsIsInstalled ? (['tcp', 'nats'] as const) : (['tcp'] as const))(
  'a message over %s',
  (MESSAGE_TRANSPORT) => {
    let provider: TestIdentityProvider;
    let broker: NatsBroker | undefined;
    let service: TestService;
    let client: ClientProxy;
    beforeAll(async () => {
      provider = await TestIdentityProvider.start([{ id: 'reports', claims: { org_id: 'acme' } }]);
      broker = MESSAGE_TRANSPORT === 'nats' ? await NatsBroker.start() : undefined;
      const messages = { MESSAGE_TRANSPORT, MESSAGE_PORT: 0, NATS_URL: broker && [broker.url] };
      service = await startService({
        environment: { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, ...messages },
      });
      const { id } = await service.organization();
      await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
      client = clientOf(messageUrl(service));
    });
    afterAll(async () => {
      await client.close();
      await service.close();
      await broker?.close();
      await provider.stop();
    });

    it('has the token in the place of the API key', async () => {
      const { events, error } = await request(client, {
        apiKey: await provider.token('reports'),
        id: '@2-videos-no-1',
      });
      expect([error, events.at(-1)?.summary]).toEqual([undefined, expect.objectContaining({ fetched: 2 })]);
    });

    it('with a token that is not accepted gets the error of the HTTP response', async () => {
      const expired = await provider.sign({ client_id: 'reports', org_id: 'acme', exp: 1 });
      const stranger = await provider.sign({ client_id: 'reports', org_id: 'nobody' });
      for (const [apiKey, code] of [
        [expired, 'invalid_token'],
        [stranger, 'organization_not_linked'],
      ])
        expect((await request(client, { apiKey, id: '@2-videos-no-1' })).error).toMatchObject({ error: { code } });
      expect(service.logs.join('')).not.toContain(expired.split('.')[2]);
    });
  },
);
