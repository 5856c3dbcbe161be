import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type TestService } from '../harness/service.js';

const LIMIT = 2;

let service: TestService;
beforeAll(async () => {
  service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: LIMIT } });
});
afterAll(() => service.close());

describe.each([['2025', 'legacy'] as const, ['2026-07-28', { pin: '2026-07-28' }] as const])(
  'a client of the protocol of %s at the limit per minute',
  (_era, mode) => {
    it('spends it by calls of tools only, and gets the refusal of one as a result with the seconds', async () => {
      const { key } = await service.organization();
      const connect = async (): Promise<Client> => {
        const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
        const requestInit = { headers: { Authorization: `Bearer ${key}` } };
        await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
        await client.listTools();
        return client;
      };
      const clients = await Promise.all(Array.from({ length: LIMIT + 1 }, connect));
      const results = [];
      for (const client of clients) results.push(await client.callTool({ name: 'get_usage', arguments: {} }));
      expect(results.map(({ isError = false }) => isError)).toEqual([false, false, true]);
      const refusal =
        /^rate_limited: Rate limit of 2 requests per minute exceeded\. Retry after \d+ seconds?\. \(request /;
      expect(results[LIMIT]?.content).toEqual([{ type: 'text', text: expect.stringMatching(refusal) }]);
      await Promise.all(clients.map(async (client) => expect((await client.listTools()).tools).toHaveLength(11)));
      expect((await service.get('/usage', key)).status).toBe(429);
      await Promise.all(clients.map((client) => client.close()));
    });
  },
);

describe('a search', () => {
  it('counts as a call for each megabyte that it reads', async () => {
    const searching = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 10 } });
    const { key } = await searching.organization();
    const callsOf = async (limit: number): Promise<number> => {
      const remaining = async (): Promise<number> =>
        Number((await searching.get('/usage', key)).headers['x-ratelimit-remaining']);
      const before = await remaining();
      const client = new Client({ name: 'test', version: '1' });
      const requestInit = { headers: { Authorization: `Bearer ${key}` } };
      await client.connect(new StreamableHTTPClientTransport(new URL(`${searching.url}/mcp`), { requestInit }));
      const wanted = { channel: '@bench-50x1500', query: 'e', limit };
      await client.callTool({ name: 'search_channel_transcripts', arguments: wanted });
      await client.close();
      // Without the call that looks.
      return before - (await remaining()) - 1;
    };
    expect(await callsOf(1)).toBe(1);
    expect(await callsOf(40)).toBe(5);
    await searching.close();
  });
});

const post = (key: string, method: string, params: object) =>
  service.request(
    'POST',
    '/mcp',
    {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  );

describe('messages that call no tool', () => {
  it('are limited for all keys of an organization together, to ten times the calls of a key', async () => {
    const { id, key } = await service.organization();
    const { key: other } = await service.app.get(ApiKeysService).issue({ organizationId: id });
    for (let sent = 0; sent < 10 * LIMIT; sent += 1)
      expect((await post(sent % 2 ? key : other, 'tools/list', {})).status).toBe(200);
    const { status, body, headers } = await post(key, 'ping', {});
    expect([status, body.error.code, body.error.message]).toEqual([
      429,
      'rate_limited',
      expect.stringMatching(/^Rate limit of 20 requests per minute for all keys of your organization exceeded\./),
    ]);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect((await post(key, 'tools/call', { name: 'get_usage', arguments: {} })).text).not.toContain('isError');
    expect((await post((await service.organization()).key, 'ping', {})).status).toBe(200);
  });
});

describe('the headers of a message', () => {
  it('say what remains of the minute after the call of a tool, and nothing otherwise', async () => {
    const { key } = await service.organization();
    const listed = await post(key, 'tools/list', {});
    const called = await post(key, 'tools/call', { name: 'get_usage', arguments: {} });
    expect([listed.status, listed.headers['x-ratelimit-remaining']]).toEqual([200, undefined]);
    expect([called.status, called.headers['x-ratelimit-remaining']]).toEqual([200, '1']);
  });
});
