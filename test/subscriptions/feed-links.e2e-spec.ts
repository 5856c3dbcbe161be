import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { FeedLinksService } from '../../src/organizations/feed-links.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import type { ServiceResponse, TestOrganization, TestService } from '../harness/service.js';
import { hasFeedparser, parseFeed, type ParsedFeed } from './feedparser.js';
import { follow, onSubscriptions } from './subscription-requests.js';

const METRICS_TOKEN = 'a-metrics-token-of-the-tests-0d3e';

let steps: SliceSteps;
let service: TestService;
let organization: TestOrganization;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { METRICS_TOKEN } });
  ({ service } = steps);
});
afterAll(() => service.close());
beforeEach(async () => {
  await steps.reset();
  organization = await service.organization();
});

interface Link {
  id: string;
  /** Without the address of the service. */
  path: string;
  token: string;
}

function send(method: string, path: string, body?: object, { key } = organization): Promise<ServiceResponse> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return service.request(method, path, headers, body && JSON.stringify(body));
}

async function createLink(body: object = {}, of = organization): Promise<Link> {
  const response = await send('POST', '/feed-links', body, of);
  expect(response.status).toBe(201);
  const { id, url } = response.body as { id: string; url: string };
  const [, token = ''] = /\/feed\/(ctf_\w{49})\.atom$/.exec(url) ?? [];
  expect(url).toBe(`${service.url}/feed/${token}.atom`);
  return { id, path: `/feed/${token}`, token };
}

const read = (path: string, headers = {}, method = 'GET') => service.request(method, path, headers);

/** A subscription whose start was delivered. */
async function followed(body: object): Promise<string> {
  const { id } = await follow(service, organization.key, body);
  await steps.finish();
  return id;
}

interface JsonFeed {
  version: string;
  title: string;
  feed_url: string;
  items: { id: string; url: string; title: string; content_html: string; date_published: string; authors: object[] }[];
}

async function items(path: string): Promise<JsonFeed['items']> {
  const response = await read(`${path}.json`);
  expect(response.status).toBe(200);
  return (JSON.parse(response.text) as JsonFeed).items;
}

const idsOf = async (path: string) => (await items(path)).map(({ url }) => url.slice(-11));

async function parsed(path: string): Promise<ParsedFeed> {
  const { status, text, headers } = await read(path);
  expect(status).toBe(200);
  return parseFeed(text, String(headers['content-type']));
}

describe('the address of a feed', () => {
  it('is returned once, listed without its token, and 404 from the next read on when it is deleted', async () => {
    const { id, path, token } = await createLink({ label: 'user:42' });
    expect((await read(`${path}.atom`)).status).toBe(200);
    const list = await send('GET', '/feed-links');
    expect(list.body).toEqual({
      feedLinks: [{ id, subscription: null, label: 'user:42', createdAt: expect.any(String) }],
    });
    expect(list.text).not.toContain(token.slice(4));
    expect((await send('DELETE', `/feed-links/${id}`)).status).toBe(204);
    for (const end of ['.atom', '.json', '.rss', '/hl-dinghy__.en.vtt'])
      expect(await read(`${path}${end}`)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
    expect((await send('DELETE', `/feed-links/${id}`)).status).toBe(404);
    const { body } = await send('GET', '/audit');
    const changed = { subscription: null, label: 'user:42' };
    expect(body.entries).toMatchObject([
      { action: 'feed_link.deleted', target: id, before: changed, after: null, actor: 'key' },
      { action: 'feed_link.created', target: id, before: null, after: changed, keyId: organization.keyId },
    ]);
  });

  it.each(['ctf_', `ctf_${'a'.repeat(49)}`, 'feed', 'ctf_a.xml', '%00'])('%s that is none is 404', async (token) => {
    expect((await read(`/feed/${token}.atom`)).status).toBe(404);
    expect((await read(`/feed/${token}/hl-dinghy__.en.vtt`)).status).toBe(404);
  });

  it('is in no log, metric, audit entry and error, whether it is read, deleted or misspelled', async () => {
    const { id, path, token } = await createLink();
    const encoded = path.replace('ctf_', '%63tf_');
    const paths = [
      `${path}.atom`,
      `${encoded}.rss`,
      `${path}/hl-dinghy__.en.vtt`,
      `${path}.xml`,
      `/Feed${path.slice(5)}.atom`,
    ];
    const responses = [];
    for (const one of paths)
      responses.push(await read(one, { 'X-Request-Id': token, Referer: `${service.url}${one}` }));
    responses.push(await read(`${path}.atom`, {}, 'POST'), await send('GET', `/feed-links?${token}`));
    responses.push(await send('POST', '/feed-links', { subscription: token }));
    expect((await send('DELETE', `/feed-links/${id}`)).status).toBe(204);
    responses.push(await read(`${path}.atom`), await send('GET', '/audit'));
    responses.push(await service.request('GET', '/metrics', { Authorization: `Bearer ${METRICS_TOKEN}` }));
    const texts = responses.flatMap(({ status, text, headers }) => [
      JSON.stringify(headers),
      ...(status === 200 && text.startsWith('<?xml') ? [] : [text]),
    ]);
    // The rest of the token would be of use to guess it.
    for (const text of [...texts, service.logs.join('')]) expect(text).not.toContain(token.slice(8));
    expect(service.logs.join('')).toContain(`"path":"/feed/ctf_….atom","status":200`);
    expect(responses[0]?.headers['referrer-policy']).toBe('no-referrer');
  });

  it('is read at most 60 times an hour, each way to read it counted, and transcripts counted apart', async () => {
    const { path } = await createLink();
    const other = await createLink();
    for (let count = 0; count < 60; count += 1) {
      const method = count % 2 === 0 ? 'GET' : 'HEAD';
      expect((await read(`${path}.${['atom', 'rss', 'json'][count % 3]}`, {}, method)).status).toBe(200);
    }
    const refused = await read(`${path}.json`);
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limited', retryable: true } } });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(3600);
    expect((await read(`${path}/hl-dinghy__.en.vtt`)).status).toBe(404);
    expect((await read(`${other.path}.json`)).status).toBe(200);
  });

  it('needs the Pro plan to be created, and works on every plan, as the feed does', async () => {
    const free = await service.organization({ plan: 'free' });
    expect(await send('POST', '/feed-links', {}, free)).toMatchObject({
      status: 403,
      body: { error: { code: 'feature_not_in_plan', feature: 'channel_subscriptions' } },
    });
    const { path } = await createLink();
    await service.app.get(OrganizationsService).change(organization.id, { plan: 'free' });
    expect((await read(`${path}.atom`)).status).toBe(200);
  });

  it('is 404 when the organization or its subscription is deleted', async () => {
    const subscription = await followed({ channel: '@tidewater' });
    const [all, one] = [await createLink(), await createLink({ subscription })];
    expect((await read(`${one.path}.atom`)).status).toBe(200);
    expect((await onSubscriptions(service, organization.key, 'DELETE', `/${subscription}`)).status).toBe(204);
    expect((await read(`${one.path}.atom`)).status).toBe(404);
    expect((await read(`${all.path}.atom`)).status).toBe(200);
    await service.app.get(OrganizationsService).delete(organization.id);
    expect((await read(`${all.path}.atom`)).status).toBe(404);
  });

  it('belongs to one organization, which has up to 100, of its own subscriptions only', async () => {
    const subscription = await followed({ channel: '@tidewater', start: 1 });
    const stranger = await service.organization();
    const links = service.app.get(FeedLinksService);
    const { path } = await createLink({}, stranger);
    const own = await createLink();
    expect(await items(path)).toEqual([]);
    expect(await items(own.path)).toHaveLength(1);
    expect((await send('POST', '/feed-links', { subscription }, stranger)).body.error.code).toBe(
      'subscription_not_found',
    );
    expect((await send('DELETE', `/feed-links/${own.id}`, undefined, stranger)).status).toBe(404);
    expect((await send('GET', '/feed-links', undefined, stranger)).body.feedLinks).toHaveLength(1);
    const actor = { kind: 'admin', keyId: null, requestId: null, callId: null, address: null, person: null } as const;
    await Promise.all(Array.from({ length: 99 }, () => links.create(stranger.id, {}, actor)));
    expect(await send('POST', '/feed-links', {}, stranger)).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict' } },
    });
  });
});

describe('a feed for readers', () => {
  it('has the newest entries with a transcript of all subscriptions, of one, or with a label, newest first', async () => {
    const tidewater = await followed({ channel: '@tidewater', start: 2, kinds: ['video'], labels: { user: '42' } });
    const harbour = await followed({ channel: '@harbourlight', start: 3 });
    const feed = (await send('GET', '/feed')).body.results as {
      videoId: string;
      ok: boolean;
      subscriptionId: string;
    }[];
    const ids = (of?: string) =>
      feed
        .filter(({ ok, subscriptionId }) => ok && (of ?? subscriptionId) === subscriptionId)
        .map(({ videoId }) => videoId)
        .reverse();
    expect((await idsOf((await createLink()).path)).sort()).toEqual(ids().sort());
    expect(await idsOf((await createLink({ subscription: harbour })).path)).toEqual(ids(harbour));
    expect(await idsOf((await createLink({ label: 'user:42' })).path)).toEqual(ids(tidewater));
    expect(await idsOf((await createLink({ label: 'user:42', subscription: harbour })).path)).toEqual([]);
    expect(await idsOf((await createLink({ label: 'user:4' })).path)).toEqual([]);
  });

  it('has 50 entries at most, and each new one at its begin', async () => {
    const { path } = await createLink();
    const id = await followed({ channel: '@tidewater' });
    service.fakeYoutube.publish({ channel: '@tidewater', count: 60 });
    await service.query(`SELECT subscription_check('${organization.id}', '${id}', 0)`);
    await steps.finish();
    const before = await idsOf(path);
    expect(before).toHaveLength(50);
    const [newest] = service.fakeYoutube.publish({ channel: '@tidewater' });
    await service.query(`SELECT subscription_check('${organization.id}', '${id}', 0)`);
    await steps.finish();
    expect(await idsOf(path)).toEqual([newest, ...before.slice(0, -1)]);
  });

  it('has the text as paragraphs with links to their seconds, by the rules of JSON Feed 1.1', async () => {
    const subscription = await followed({ channel: '@tidewater', start: 1, kinds: ['video'] });
    const { path } = await createLink({ subscription });
    const { text, headers } = await read(`${path}.json`);
    expect(headers['content-type']).toBe('application/feed+json; charset=utf-8');
    expect(JSON.parse(text)).toEqual({
      version: 'https://jsonfeed.org/version/1.1',
      title: 'Tidewater Kitchen',
      home_page_url: expect.stringMatching(/^https:\/\/www\.youtube\.com\/channel\/UC[\w-]{22}$/),
      feed_url: `${service.url}${path}.json`,
      items: [
        {
          id: `https://www.youtube.com/watch?v=tw-chowder_#${subscription}`,
          url: 'https://www.youtube.com/watch?v=tw-chowder_',
          title: 'Mussel chowder for eight',
          content_html: expect.stringMatching(
            /^(<p><a href="https:\/\/youtu\.be\/tw-chowder_\?t=\d+">\d+:\d\d<\/a> [^<]+<\/p>)+$/,
          ),
          date_published: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
          date_modified: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
          authors: [{ name: 'Tidewater Kitchen' }],
        },
      ],
    });
  });

  it('is 304 for the ETag that it has, and another one when it has changed', async () => {
    const { path } = await createLink();
    const id = await followed({ channel: '@tidewater', start: 1 });
    const first = await read(`${path}.atom`);
    expect(first.headers['cache-control']).toBe('private, max-age=300');
    const etag = String(first.headers['etag']);
    const same = await read(`${path}.atom`, { 'If-None-Match': etag });
    expect(same).toMatchObject({ status: 304, text: '', headers: { etag } });
    const head = await read(`${path}.atom`, {}, 'HEAD');
    expect(head).toMatchObject({
      status: 200,
      text: '',
      headers: { etag, 'content-type': first.headers['content-type'] },
    });
    expect((await read(`${path}.rss`, { 'If-None-Match': etag })).status).toBe(200);
    service.fakeYoutube.publish({ channel: '@tidewater' });
    await service.query(`SELECT subscription_check('${organization.id}', '${id}', 0)`);
    await steps.finish();
    expect((await read(`${path}.atom`, { 'If-None-Match': etag })).status).toBe(200);
  });

  it('names the transcripts as WebVTT in RSS, which the same token reads, and no others', async () => {
    await followed({ channel: '@tidewater', start: 1, kinds: ['video'], languages: ['en'] });
    const { path } = await createLink();
    const [, url = ''] =
      /<podcast:transcript url="([^"]+)" type="text\/vtt" language="en"\/>/.exec((await read(`${path}.rss`)).text) ??
      [];
    expect(url).toBe(`${service.url}${path}/tw-chowder_.en.vtt`);
    const transcript = await read(url.slice(service.url.length));
    expect(transcript).toMatchObject({ status: 200, headers: { 'content-type': 'text/vtt; charset=utf-8' } });
    expect(transcript.text).toMatch(/^WEBVTT\n\n00:00:0/);
    const { etag } = transcript.headers;
    expect((await read(url.slice(service.url.length), { 'If-None-Match': etag })).status).toBe(304);
    for (const file of ['tw-chowder_.de.vtt', 'hl-dinghy__.en.vtt', 'tw-chowder_.en.srt', 'tw-chowder_'])
      expect((await read(`${path}/${file}`)).status).toBe(404);
  });

  (hasFeedparser ? it : it.skip)(
    'is read by feedparser as Atom and RSS without a fault, also with hostile titles',
    async () => {
      const titles = [
        '<script>alert(1)</script> & ]]> "quoted" \'s',
        'a\u0000b\u0008c\ud800\ufffe\uffff \u202e',
        '&lt;b&gt; &#0; <![CDATA[',
      ];
      const { path } = await createLink();
      const id = await followed({ channel: '@tidewater', start: 1 });
      for (const title of titles) service.fakeYoutube.publish({ channel: '@tidewater', title });
      await service.query(`SELECT subscription_check('${organization.id}', '${id}', 0)`);
      await steps.finish();
      const expected = await items(path);
      const [atom, rss] = [await parsed(`${path}.atom`), await parsed(`${path}.rss`)];
      expect(atom).toMatchObject({ bozo: false, version: 'atom10', feed: { title: 'Followed channels' } });
      expect(atom.feed.id).toMatch(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      expect(rss).toMatchObject({ bozo: false, version: 'rss20', feed: { title: 'Followed channels' } });
      for (const { feed, entries } of [atom, rss]) {
        expect(feed.links).toContainEqual(
          expect.objectContaining({ rel: 'self', href: expect.stringContaining(path) }),
        );
        expect(entries.map((entry) => entry.id)).toEqual(expected.map((item) => item.id));
        expect(entries.map((entry) => entry.link)).toEqual(expected.map((item) => item.url));
        expect(entries.map((entry) => entry.author)).toEqual(expected.map(() => 'Tidewater Kitchen'));
        expect(entries.map((entry) => entry.content[0]?.value)).toEqual(expected.map((item) => item.content_html));
        for (const { published } of entries) expect(Date.parse(published)).not.toBeNaN();
      }
      expect(atom.entries.map(({ title }) => title)).toEqual(
        expected.map(({ title }) => title.replace(/[\ufffe\uffff]/g, '')),
      );
      expect(atom.entries.map(({ title }) => title)).toContainEqual(expect.stringContaining(titles[0] ?? ''));
    },
  );
});
