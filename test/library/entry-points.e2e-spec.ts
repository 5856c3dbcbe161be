import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChannelTranscriptsClient } from '@channel-transcripts/client';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startService, type TestService } from '../harness/service.js';
import { createJob, waitForJob } from '../jobs/job-requests.js';
import { clientOf, messageUrl, request } from '../messages/message-client.js';
import { search } from './library-requests.js';

let service: TestService;
let key = '';

beforeAll(async () => {
  service = await startService({ environment: { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0 } });
  ({ key } = await service.organization());
  const body = { channel: '@tidewater', keep: true, labels: { user: '42' } };
  await waitForJob(service, key, await createJob(service, key, body));
});
afterAll(() => service.close());

describe('a search of the library', () => {
  it('over MCP has links to cite, and the ids for programs', async () => {
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    const answer = await client.callTool({ name: 'search_library', arguments: { q: 'rye wheat', label: 'user:42' } });
    const { results, total, next } = await search(service, key, 'rye wheat');
    expect(answer.structuredContent).toEqual({
      results: results.map(({ videoId, start, url }) => ({ videoId, start, url })),
      ...{ total, next },
    });
    const [{ text } = { text: '' }] = answer.content as { text: string }[];
    expect(text).toContain(`[Bread that keeps for a week at sea](${results[0]?.url})`);
    expect(text).toContain('1 of 1 passages.');
    const refused = await client.callTool({ name: 'search_library', arguments: { q: '-rye' } });
    expect(refused).toMatchObject({ isError: true });
    await client.close();
  });

  it('by a message is the body of the response', async () => {
    const client = clientOf(messageUrl(service));
    const { events, error } = await request(client, { apiKey: key, q: 'rye' }, 'library.search');
    expect({ events, error }).toEqual({ events: [await search(service, key, 'rye')], error: undefined });
    await client.close();
  });

  it('by the client finds, lists and deletes', async () => {
    const { library } = new ChannelTranscriptsClient({ baseUrl: service.url, apiKey: key });
    expect(await library.search('rye', { sort: 'newest', limit: 1 })).toMatchObject({
      results: [{ videoId: 'tw-bread___' }],
    });
    const videos = [];
    for await (const video of library.videos({ label: 'user:42' })) videos.push(video);
    expect(videos).toHaveLength(5);
    await library.delete('tw-bread___');
    expect((await library.search('rye')).total).toBe(0);
    expect(await library.deleteChannel('@tidewater')).toBe(4);
  });
});
