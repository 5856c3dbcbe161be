import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { linesOf } from '../jobs/job-requests.js';
import { clientOf, messageUrl, request } from '../messages/message-client.js';
import { startReceiver, verified, WEBHOOK_SECRET_KEY, type Receiver } from '../webhooks/receiver.js';
import { follow, onSubscriptions } from './subscription-requests.js';

let service: TestService;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startService({
    environment: {
      ...{ RATE_LIMIT_PER_MINUTE: 0, WEBHOOK_SECRET_KEY, WEBHOOK_ALLOW_PRIVATE: true },
      ...{ MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0 },
    },
  });
});
afterAll(async () => {
  await service.close();
  await receiver.close();
});
beforeEach(() => service.fakeYoutube.reset());

interface Feed {
  results: { videoId: string; ok: boolean; transcript: object }[];
  next: string;
  subscription: Record<string, unknown>;
}

/** The cursor after so many entries. */
const at = (count: number): unknown => expect.stringMatching(new RegExp(`^${count}\\.[\\w-]{8}$`));

/** A subscription whose first check has ended and whose uploads are read. */
async function followed(key: string, body: object): Promise<string> {
  const { id } = await follow(service, key, body);
  await until(async () => {
    const { checkedAt, summary } = (await service.get(`/subscriptions/${id}`, key)).body;
    return checkedAt !== null && summary.pending === 0;
  });
  return id;
}

async function feedOf(key: string, id: string, query = ''): Promise<Feed> {
  const response = await service.get(`/subscriptions/${id}/results${query}`, key);
  expect(response.status).toBe(200);
  return response.body as Feed;
}

/** Publishes an upload and has it checked. @returns the ID of the video */
async function published(key: string, id: string, after: string): Promise<string> {
  const [videoId = ''] = service.fakeYoutube.publish({ channel: '@tidewater', title: 'A new * upload' });
  expect((await onSubscriptions(service, key, 'POST', `/${id}/check`)).status).toBe(202);
  await until(async () => (await feedOf(key, id, `?after=${after}`)).results.length === 1);
  return videoId;
}

describe('a followed channel', () => {
  it('delivers its newest uploads and then each new one, in the feed and as an event that leads to the entry', async () => {
    const { key } = await service.organization();
    const hook = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const url = JSON.stringify({ url: receiver.url, events: ['upload.ready', 'subscription.paused'] });
    const { secret } = (await service.request('POST', '/webhooks', hook, url)).body as { secret: string };
    const id = await followed(key, { channel: '@tidewater', start: 2, labels: { user: '42' } });
    const first = await feedOf(key, id);
    expect(first.results).toHaveLength(2);
    expect(first).toMatchObject({ next: at(2), subscription: { id, channel: { handle: '@tidewater' } } });
    expect(await feedOf(key, id, '?after=2')).toMatchObject({ results: [], next: first.next });
    const videoId = await published(key, id, first.next);
    const second = await feedOf(key, id, '?after=2');
    expect(second).toMatchObject({ results: [{ videoId, ok: true }], next: at(3) });
    expect((await feedOf(key, id, '?limit=2')).results).toEqual(first.results);

    const events = () =>
      receiver.received.map((message) => verified(message, secret) as { data: Record<string, string> });
    await until(() => events().some(({ data }) => data['videoId'] === videoId));
    const event = events().find(({ data }) => data['videoId'] === videoId);
    expect(event).toMatchObject({
      type: 'upload.ready',
      data: {
        ...{ subscriptionId: id, labels: { user: '42' }, channel: { handle: '@tidewater' }, videoId, code: null },
        title: expect.stringContaining('A new * upload'),
        results: `/subscriptions/${id}/results?after=${first.next}&limit=1`,
      },
    });
    const { body } = await service.get(event?.data['results'] ?? '', key);
    expect((body as Feed).results).toEqual(second.results);

    expect((await service.get('/usage', key)).body.used).toBe(3);
    await onSubscriptions(service, key, 'PATCH', `/${id}`, { state: 'paused' });
    await until(() => receiver.received.some(({ body: text }) => text.includes('"subscription.paused"')));
    expect(events().at(-1)).toMatchObject({
      type: 'subscription.paused',
      data: { subscriptionId: id, state: 'paused', reason: 'paused_by_caller', summary: { total: 3 } },
    });
  });

  it('is streamed as NDJSON with a cursor for each entry', async () => {
    const { key } = await service.organization();
    const id = await followed(key, { channel: '@tidewater', start: 3, kinds: ['video'] });
    const headers = { Authorization: `Bearer ${key}`, Accept: 'application/x-ndjson' };
    const { text } = await service.request('GET', `/subscriptions/${id}/results?after=1`, headers);
    const lines = linesOf(text);
    const { results } = await feedOf(key, id);
    expect(lines.slice(0, -1)).toEqual([
      { type: 'result', cursor: at(2), result: results[1] },
      { type: 'result', cursor: at(3), result: results[2] },
    ]);
    expect(lines.at(-1)).toMatchObject({ type: 'summary', next: at(3), summary: { total: 3 }, subscription: { id } });
  });

  it('states from where one can go on when results have expired', async () => {
    const { key } = await service.organization();
    const id = await followed(key, { channel: '@tidewater', start: 3 });
    await service.query(`UPDATE jobs SET expired_sequence = 2 WHERE id = '${id}'`);
    const expired = await service.get(`/subscriptions/${id}/results?after=1`, key);
    expect([expired.status, expired.body.error]).toMatchObject([
      410,
      {
        code: 'results_expired',
        retryable: false,
        oldest: '2',
        expired: 1,
        message: expect.stringContaining('after=2'),
      },
    ]);
    for (const query of ['?after=2', '']) expect(await feedOf(key, id, query)).toMatchObject({ next: at(3) });
    expect((await feedOf(key, id)).results).toHaveLength(1);
  });

  it('is read over messages too', async () => {
    const { key: apiKey } = await service.organization();
    const id = await followed(apiKey, { channel: '@tidewater', start: 3 });
    const client = clientOf(messageUrl(service));
    try {
      const read = (message: object) => request(client, { apiKey, ...message }, 'subscriptions.results');
      const headers = { Authorization: `Bearer ${apiKey}`, Accept: 'application/x-ndjson' };
      for (const [query, fields, count] of [
        ['?after=1&limit=1', { after: 1, limit: 1 }, 1],
        ['', {}, 3],
      ] as const) {
        const { text } = await service.request('GET', `/subscriptions/${id}/results${query}`, headers);
        const { events } = await read({ id, ...fields });
        expect(events).toEqual(linesOf(text));
        expect(events).toHaveLength(count + 1);
      }
      const errors: [message: object, code: string][] = [
        [{}, 'invalid_request'],
        [{ id, after: -1 }, 'invalid_request'],
        [{ id: 'sub_0000000000000000000000' }, 'subscription_not_found'],
      ];
      for (const [message, code] of errors) expect((await read(message)).error.error.code).toBe(code);
    } finally {
      client.close();
    }
  });
});

describe('an assistant', () => {
  it('follows a channel once, finds it later, reads what is new with its texts, and is told when to look again', async () => {
    const { key } = await service.organization();
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    const call = async (name: string, args: Record<string, unknown>) => {
      const { content, structuredContent } = await client.callTool({ name, arguments: args });
      const [{ text = '' } = {}] = content as { text?: string }[];
      return { text, structured: structuredContent as any };
    };
    const none = await call('get_new_transcripts', {});
    expect(none).toMatchObject({
      text: expect.stringContaining('`follow_channel`'),
      structured: { subscriptions: [] },
    });
    const wanted = { channel: '@tidewater', start: 2 };
    const started = await call('follow_channel', wanted);
    const subscriptionId = started.structured.id as string;
    expect(started.text).toContain(`Subscription \`${subscriptionId}\` for Tidewater Kitchen: active.`);
    await until(async () => (await feedOf(key, subscriptionId)).results.length === 2);
    expect((await call('follow_channel', wanted)).structured.id).toBe(subscriptionId);
    const list = await call('get_new_transcripts', {});
    expect(list.text).toContain(`- Subscription \`${subscriptionId}\` for Tidewater Kitchen: active.`);
    expect(list.structured).toMatchObject({
      subscriptions: [{ id: subscriptionId, channelId: expect.stringMatching(/^UC/) }],
      ...{ videos: [], next: null, cursor: null },
    });

    const one = await call('get_new_transcripts', { subscriptionId, limit: 1 });
    expect(one.structured).toMatchObject({ videos: [{ ok: true }], next: at(1), cursor: null });
    expect(one.text).toContain(
      `There is more. Call \`get_new_transcripts\` with the subscriptionId \`${subscriptionId}\` and after \`${one.structured.next}\`.`,
    );
    expect(one.text).toContain(`](https://youtu.be/${one.structured.videos[0].videoId}?t=`);
    expect(JSON.stringify(one.structured)).not.toContain('transcript"');
    const rest = await call('get_new_transcripts', { subscriptionId, after: one.structured.next });
    expect(rest.structured).toMatchObject({ videos: [{ ok: true }], next: at(2), cursor: null });
    const nothing = await call('get_new_transcripts', { subscriptionId, after: 2 });
    expect(nothing.structured).toMatchObject({ videos: [], next: rest.structured.next, cursor: null });
    expect(nothing.text).toMatch(/Nothing else is new\. .* after `2\..*`.*\n.*The next check is at \d{4}-/);
    const { text } = await call('get_new_transcripts', { subscriptionId: 'sub_x' });
    expect(text).toMatch(/^subscription_not_found: .*get_new_transcripts/);
    const all = await call('get_new_transcripts', { after: '0', limit: 1 });
    expect(all.structured).toMatchObject({ videos: [{ subscriptionId, ok: true }], next: at(1), cursor: null });
    expect(all.text).toContain('\nChannel: Tidewater Kitchen\n');
    expect(all.text).toContain(`There is more. Call \`get_new_transcripts\` with after \`${all.structured.next}\`.`);
    const { text: none2 } = await call('get_new_transcripts', { label: 'user:42' });
    expect(none2).toMatch(/Nothing else is new\. Call `get_new_transcripts` with the label `user:42` and after `2\./);
    await client.close();
  });

  it('lists every followed channel, page by page', async () => {
    const { key } = await service.organization();
    const { id } = await follow(service, key, { channel: '@tidewater' });
    await onSubscriptions(service, key, 'PATCH', `/${id}`, { state: 'paused' });
    await service.query(`
      INSERT INTO jobs
        SELECT (json_populate_record(job, json_build_object('id', 'sub_' || lpad(number::text, 22, '0'),
                 'created_at', job.created_at - number * interval '1 second', 'idempotency_key', NULL))).*
          FROM jobs job, generate_series(1, 100) number WHERE id = '${id}'`);
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    const call = async (args: Record<string, unknown>) => {
      const { content, structuredContent } = await client.callTool({ name: 'get_new_transcripts', arguments: args });
      const [{ text = '' } = {}] = content as { text?: string }[];
      return { text, structured: structuredContent as any };
    };
    const first = await call({});
    expect(first.structured.subscriptions).toHaveLength(100);
    expect(first.structured.subscriptions[0]).toMatchObject({ id });
    const { cursor } = first.structured;
    expect(first.text).toContain(`There are more. Call \`get_new_transcripts\` with the cursor \`${cursor}\`.`);
    const last = await call({ cursor });
    expect(last.structured).toMatchObject({ subscriptions: [{ id: `sub_${'100'.padStart(22, '0')}` }], cursor: null });
    expect(last.text).not.toContain('There are more.');
    expect((await call({ cursor: 'x' })).text).toMatch(/^invalid_request: cursor is invalid/);
    expect((await call({ subscriptionId: id, cursor })).text).toMatch(/^invalid_request: cursor is invalid/);
    await client.close();
  });

  it('follows a playlist, and is told which one', async () => {
    const { key } = await service.organization();
    await followed(key, { playlist: SATURDAY.id, start: 1 });
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    const call = async (args: Record<string, unknown>) => {
      const { content, structuredContent } = await client.callTool({ name: 'get_new_transcripts', arguments: args });
      const [{ text = '' } = {}] = content as { text?: string }[];
      return { text, structured: structuredContent as any };
    };
    const { subscriptions } = (await call({})).structured;
    expect(subscriptions).toMatchObject([{ channelId: null, playlistId: SATURDAY.id }]);
    const [{ id: subscriptionId }] = subscriptions;
    expect((await call({ subscriptionId })).text).toMatch(new RegExp(`^# ${SATURDAY.title}\n`));
    await client.close();
  });

  it('learns that a pause heals by itself', async () => {
    const { key } = await service.organization();
    const id = await followed(key, { channel: '@tidewater' });
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    for (const [reason, healing] of [
      ['channel_not_found', /tried again every day/],
      ['playlist_not_found', /tried again every day/],
      ['upstream_blocked', /tried again by itself/],
      ['plan_limit_exceeded', /nothing is skipped/],
    ] as const) {
      await service.query(`UPDATE jobs SET state = 'paused', reason = '${reason}' WHERE id = '${id}'`);
      const { content } = await client.callTool({ name: 'get_new_transcripts', arguments: {} });
      const [{ text = '' } = {}] = content as { text?: string }[];
      expect(text).toContain(`: paused (\`${reason}\`: `);
      expect(text).toMatch(healing);
    }
    await client.close();
  });

  it('continues a long text with the cursor, without a gap', async () => {
    const { key } = await service.organization();
    const id = await followed(key, { channel: '@bench-4x500', start: 4 });
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    const read = async (args: object) => {
      const { content, structuredContent } = await client.callTool({
        name: 'get_new_transcripts',
        arguments: { subscriptionId: id, limit: 10, ...args },
      });
      const [{ text = '' } = {}] = content as { text?: string }[];
      return { text, structured: structuredContent as any };
    };
    const body = (text: string) => text.replace(/\n\n---\n\n[^]*$/, '').replace(/^#.*$|^<.*$|^`@.*$|… |\s+/gm, '');
    const whole = await read({ maxChars: 200_000 });
    expect(whole.structured).toMatchObject({ cursor: null, next: at(4) });
    let joined = '';
    let page = await read({ maxChars: 20_000 });
    let pages = 1;
    for (; page.structured.cursor !== null; pages += 1) {
      expect(page.text.length).toBeLessThanOrEqual(20_000);
      expect(page.text).toContain(`Call \`get_new_transcripts\` with the cursor \`${page.structured.cursor}\`.`);
      joined += body(page.text);
      page = await read({ maxChars: 20_000, cursor: page.structured.cursor });
    }
    expect(joined + body(page.text)).toBe(body(whole.text));
    expect(page.structured.next).toBe(whole.structured.next);
    // Nothing of the first text that is stored is read to its end.
    await service.query(`UPDATE jobs SET expired_sequence = 2 WHERE id = '${id}'`);
    expect((await read({ maxChars: 3_000 })).structured).toMatchObject({ next: '2', cursor: expect.any(String) });
    expect(pages).toBeGreaterThan(1);
    const { text, structured } = await read({ maxChars: 3_000 });
    expect(text).toContain(`with the cursor \`${structured.cursor}\`.`);
    // The cursor says of which subscription it is, and serves no other.
    expect(
      (await read({ subscriptionId: undefined, cursor: structured.cursor })).structured.subscriptions,
    ).toMatchObject([{ id }]);
    for (const other of [{ cursor: 'x' }, { subscriptionId: 'sub_x', cursor: structured.cursor }])
      expect((await read(other)).text).toMatch(/^invalid_request: cursor is invalid/);
    await client.close();
  });

  it('reads the texts in the form of the subscription', async () => {
    const { key } = await service.organization();
    const form = { include: ['description', 'tags'], chunkSeconds: 600 };
    const id = await followed(key, { channel: '@tidewater', start: 1, ...form });
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
    const called = { name: 'get_new_transcripts', arguments: { subscriptionId: id } };
    const { content } = await client.callTool(called);
    const [{ text = '' } = {}] = content as { text?: string }[];
    expect(text).toContain('\nDescription:\n');
    expect(text.match(/^\[\d/gm)).toHaveLength(1);
    await client.close();
  });
});
