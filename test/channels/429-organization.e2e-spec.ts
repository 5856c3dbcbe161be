import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { AUDIENCE, TestIdentityProvider } from '../auth/identity-provider.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { clientOf, messageUrl, request as send } from '../messages/message-client.js';
import { scrape, sumOf } from '../metrics/exposition.js';

const KEYS = 20;
const CALLS_PER_KEY = 10;
const RATE = 2;

let provider: TestIdentityProvider;
/** With the limits of calls in flight as they are by default. */
let service: TestService;
/** Limited by rate. */
let slow: TestService;

beforeAll(async () => {
  provider = await TestIdentityProvider.start([]);
  const environment = { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0, OIDC_ISSUER: provider.issuer } as const;
  service = await startService({ environment: { ...environment, OIDC_AUDIENCE: AUDIENCE } });
  slow = await startService({ environment: { RATE_LIMIT_PER_MINUTE: RATE } });
});
afterAll(async () => {
  await Promise.all([service.close(), slow.close()]);
  await provider.stop();
});

/** Further keys of an organization. */
async function keysOf(of: TestService, organizationId: string, count: number): Promise<string[]> {
  const issue = () => of.app.get(ApiKeysService).issue({ organizationId });
  return (await Promise.all(Array.from({ length: count }, issue))).map(({ key }) => key);
}

function callTool(of: TestService, key: string, name: string, args: object): Promise<ServiceResponse> {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  return of.request('POST', '/mcp', { ...headers, Authorization: `Bearer ${key}` }, JSON.stringify(message));
}

describe('the keys and clients of one organization', () => {
  it('with 200 calls at once have 40 of them in flight, and leave the others to other organizations', async () => {
    const [{ id }, other] = [await service.organization(), await service.organization()];
    await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
    const clients = Array.from({ length: KEYS / 2 }, (_, index) =>
      provider.sign({ client_id: `client-${index}`, org_id: 'acme', sub: 'x' }),
    );
    const keys = [...(await keysOf(service, id, KEYS / 2 + 1)), ...(await Promise.all(clients))];
    const spare = keys.shift() ?? '';
    const cached = '/channels/@tidewater/transcripts?limit=1';
    expect((await service.get(cached, other.key)).status).toBe(200);

    const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, 1);
    const running = keys.flatMap((key, index) =>
      Array.from({ length: CALLS_PER_KEY }, (_, call) => {
        const path = `/channels/@1-videos-no-${index * CALLS_PER_KEY + call + 1}/transcripts`;
        return service.get(path, key);
      }),
    );
    let ended = 0;
    for (const call of running) void call.then(() => (ended += 1));
    await hold.arrived;
    // On a busy machine the last calls arrive later: 40 are held, all others are refused.
    await until(() => ended === running.length - 40);
    const message = 'Concurrency limit of 40 requests for all keys of your organization reached.';
    const refused = await service.get('/channels/x!/transcripts', spare);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect(refused.body.error.message).toContain(message);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const free = await service.get(cached, other.key);
    expect([free.status, free.body.summary?.cached]).toEqual([200, 1]);
    const tool = await callTool(service, spare, 'list_channel_uploads', { channel: '@tidewater' });
    expect(tool.text).toContain(message);
    const client = clientOf(messageUrl(service));
    try {
      expect((await send(client, { apiKey: spare, id: '@tidewater' })).error.error.message).toContain(message);
      const { error, events } = await send(client, { apiKey: other.key, id: '@tidewater', limit: 1 });
      expect([error, events.at(-1)?.type]).toEqual([undefined, 'summary']);
    } finally {
      await client.close();
    }
    expect((await service.get('/usage', spare)).status).toBe(200);
    hold.release();
    service.fakeYoutube.reset();
    const statuses = (await Promise.all(running)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(40);
    expect(statuses.filter((status) => status === 429)).toHaveLength(160);
    expect((await service.get('/channels/x!/transcripts', spare)).status).toBe(404);
    const metrics = await scrape(service);
    expect(sumOf(metrics, 'ct_limit_refusals_total', { reason: 'organization_in_flight' })).toBe(163);
  });

  it('have ten times the rate of a key together', async () => {
    const [{ id }, other] = [await slow.organization(), await slow.organization()];
    const [spare = '', ...keys] = await keysOf(slow, id, 11);
    for (const key of keys)
      for (let call = 0; call < RATE; call += 1) expect((await slow.get('/usage', key)).status).toBe(200);
    // A key that repeats refused calls takes nothing from the others.
    const response = await slow.get('/usage', spare);
    const waitSeconds = Number(response.headers['retry-after']);
    const { error } = response.body;
    expect([response.status, error.message]).toEqual([
      429,
      `Rate limit of 20 requests per minute for all keys of your organization exceeded. Retry after ${waitSeconds} seconds.`,
    ]);
    expect(response.headers).toMatchObject({
      'x-ratelimit-limit': '20',
      'x-ratelimit-remaining': '0',
      'ratelimit-policy': '"minute";q=20;w=60',
    });
    const [mcp = ''] = await keysOf(slow, id, 1);
    expect((await callTool(slow, mcp, 'get_usage', {})).text).toContain('for all keys of your organization');
    // Their operations on jobs are counted apart, and other organizations too.
    expect((await slow.get('/jobs', spare)).status).toBe(200);
    const free = await slow.get('/usage', other.key);
    expect([free.status, free.headers['x-ratelimit-limit']]).toEqual([200, String(RATE)]);
  });
});
