import { afterAll, beforeAll, beforeEach, describe, expect, it, afterEach, jest } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { generatedChannelByHandle } from '../fake-youtube/catalogue/generated-channels.js';
import { FOG_BANK_HUB } from '../fake-youtube/catalogue/other-channels.js';
import { until } from '../harness/until.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';

describe('the list of uploads', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 5, UPLOADS_TTL_SECONDS: 1 } });
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  const idsOf = ({ body }: ServiceResponse): string[] =>
    (body.uploads ?? body.results).map(({ videoId }: { videoId: string }) => videoId) as string[];

  const shortsOf = (handle: string): string[] =>
    (generatedChannelByHandle(handle)?.uploads() ?? []).filter(({ short }) => short).map(({ id }) => id);
  const TIDEWATER = ['tw-chowder_', 'tw-bread___', 'tw-mackerel', 'tw-pickles_', 'tw-tea_____'];

  describe("a channel's uploads", () => {
    it('are listed with the metadata of the list, on every plan, without reading a video and without quota', async () => {
      const { key } = await service.organization({ plan: 'free', monthlyLimit: 0 });
      const response = await service.get('/channels/@tidewater/uploads?limit=3', key);
      expect(response.status).toBe(200);
      expect(Object.keys(response.body as object)).toEqual(['channel', 'uploads']);
      expect(response.body.channel).toMatchObject({ handle: '@tidewater', name: 'Tidewater Kitchen' });
      expect(idsOf(response)).toEqual(TIDEWATER.slice(0, 3));
      expect(Object.keys(response.body.uploads[0] as object)).toEqual(['videoId', 'metadata']);
      expect(response.body.uploads[0].metadata).toMatchObject({
        title: 'Mussel chowder for eight',
        captionTracks: null,
      });
      expect(service.fakeYoutube.requests.count({ kind: ['player', 'reel', 'timedtext'] })).toBe(0);
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
    });

    it('are listed for a raw URL', async () => {
      const { key } = await service.organization();
      const response = await service.get('/channels/https://www.youtube.com/@tidewater/uploads', key);
      expect(idsOf(response)).toEqual(TIDEWATER);
    });

    it('are empty for a channel that has none, and 404 for one that does not exist', async () => {
      const { key } = await service.organization();
      expect((await service.get('/channels/@emptyslip/uploads', key)).body.uploads).toEqual([]);
      const unknown = await service.get('/channels/@no-such-channel/uploads', key);
      expect([unknown.status, unknown.body.error.code]).toEqual([404, 'channel_not_found']);
    });

    it.each([
      '%40%E6%B8%AF%E3%81%AE%E7%81%AF%E5%8F%B0',
      '%40%25E6%25B8%25AF%25E3%2581%25AE%25E7%2581%25AF%25E5%258F%25B0',
      'https%3A%2F%2Fwww.youtube.com%2F%40%25E6%25B8%25AF%25E3%2581%25AE%25E7%2581%25AF%25E5%258F%25B0',
    ])('are listed for the percent-encoded handle %s', async (id) => {
      const { key } = await service.organization();
      const { status, body } = await service.get(`/channels/${id}/uploads`, key);
      expect([status, body.channel?.handle]).toEqual([200, '@港の灯台']);
    });

    it('of a hub of the platform are an empty list', async () => {
      const { key } = await service.organization();
      const { status, body } = await service.get(`/channels/${FOG_BANK_HUB.id}/uploads`, key);
      const channel = { id: FOG_BANK_HUB.id, name: 'Fog Banks', handle: null };
      expect([status, body]).toEqual([200, { channel, uploads: [] }]);
    });

    it('cost one request again while there is nothing new, with the kinds and dates of before', async () => {
      const { key } = await service.organization();
      const { requests } = service.fakeYoutube;
      const path = '/channels/@harbourlight/uploads?limit=100';
      const first = await service.get(path, key);
      const before = requests.total;
      const others = () => requests.count({ kind: ['browse-channel', 'browse-shorts', 'feed', 'resolve'] });
      const [listed, other] = [requests.count({ kind: 'browse-uploads' }), others()];
      let last = first;
      await until(async () => {
        last = await service.get(path, (await service.organization()).key);
        return requests.count({ kind: 'browse-uploads' }) > listed;
      });
      expect(last.body).toEqual(first.body);
      expect([requests.total - before, others()]).toEqual([1, other]);
      expect(idsOf(first).length).toBeGreaterThan(25);
      expect(
        first.body.uploads.some(({ metadata }: any) => metadata.kind === 'short' && metadata.publishedAt !== null),
      ).toBe(true);
    });

    it('of an unknown channel cost the platform nothing when they are asked for again', async () => {
      const { key } = await service.organization();
      const { requests } = service.fakeYoutube;
      for (const id of ['@nobody-at-all', 'UC0000000000000000000000']) {
        expect((await service.get(`/channels/${id}/uploads`, key)).status).toBe(404);
        const before = requests.total;
        const again = await service.get(`/channels/${id.toUpperCase()}/transcripts`, key);
        expect([again.status, again.body.error.code, requests.total - before]).toEqual([404, 'channel_not_found', 0]);
      }
    });

    it('have a rate limit of their own', async () => {
      const { key } = await service.organization();
      const listed = () => service.get('/channels/@tidewater/uploads', key);
      for (let call = 0; call < 5; call += 1) expect((await listed()).status).toBe(200);
      const refused = await listed();
      expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
      const other = await service.get('/usage', key);
      expect([other.status, other.headers['x-ratelimit-remaining']]).toEqual([200, '4']);
    });

    it('have it also for a key that may not read', async () => {
      const { id } = await service.organization();
      const { key } = await service.app.get(ApiKeysService).issue({ organizationId: id, scopes: ['write'] });
      const refused = await service.get('/channels/@tidewater/uploads', key);
      expect([refused.status, refused.headers['x-ratelimit-remaining']]).toEqual([403, '4']);
      const other = await service.get('/usage', key);
      expect([other.status, other.headers['x-ratelimit-remaining']]).toEqual([403, '4']);
    });

    it.each([
      ['limit=0', 'limit'],
      ['languages=en', 'languages'],
      ['since=short', 'since'],
    ])('with %s are 400, naming the field', async (query, field) => {
      const { key } = await service.organization();
      const response = await service.get(`/channels/@tidewater/uploads?${query}`, key);
      expect([response.status, response.body.error.details[0].field]).toEqual([400, field]);
    });
  });

  describe('kinds', () => {
    it('are filtered before limit counts', async () => {
      const { key } = await service.organization();
      const kindsOf = async (query: string): Promise<(string | null)[]> => {
        const { body } = await service.get(`/channels/@harbourlight/uploads?${query}`, key);
        return body.uploads.map(({ metadata }: { metadata: { kind: string | null } }) => metadata.kind) as string[];
      };
      expect(await kindsOf('limit=3')).toEqual(['upcoming', 'live', 'video']);
      expect(await kindsOf('limit=2&kinds=short')).toEqual(['short', 'short']);
      expect(await kindsOf('limit=3&kinds=short,live')).toEqual(['live', 'short', 'short']);
      const refused = await service.get('/channels/@harbourlight/transcripts?kinds=shorts', key);
      expect([refused.status, refused.body.error.details[0].field]).toEqual([400, 'kinds']);
    });
  });

  describe('rare kinds', () => {
    /** Ten of every fifty uploads are Shorts, the others are longer than three minutes. */
    const CHANNEL = '/channels/@archive-700x61';
    /** Its lists are cached for longer than a test takes. */
    let lasting: TestService;
    beforeAll(async () => {
      lasting = await startService();
    });
    afterAll(() => lasting.close());

    it('are found below the first page, for the requests of one list, which is cached', async () => {
      const { key } = await lasting.organization();
      const { requests } = lasting.fakeYoutube;
      const lists = () => requests.count({ kind: ['browse-uploads', 'browse-continuation'] });
      const found = await lasting.get(`${CHANNEL}/uploads?limit=30&kinds=short`, key);
      const kinds = found.body.uploads.map(({ metadata }: { metadata: { kind: string | null } }) => metadata.kind);
      // Of the first page by the list of Shorts, below it by the length, which can be that of a video too.
      expect(kinds).toEqual([...Array<string>(20).fill('short'), ...Array<null>(10).fill(null)]);
      expect(idsOf(found).slice(0, 20)).toEqual(shortsOf('@archive-700x61').slice(0, 20));
      // What states no length is private or deleted.
      expect(
        found.body.uploads.map(
          ({ metadata }: { metadata: { durationSeconds: number | null } }) => metadata.durationSeconds ?? 0,
        ),
      ).toEqual(expect.not.arrayContaining([183]));
      const listed = lists();
      const all = await lasting.get(`${CHANNEL}/uploads?limit=100&kinds=short`, key);
      expect([idsOf(all).length, idsOf(all).slice(0, 30)]).toEqual([100, idsOf(found)]);
      const { body } = await lasting.get(`${CHANNEL}/transcripts?limit=25&kinds=live,upcoming`, key);
      expect([body.results, body.summary.total]).toEqual([[], 0]);
      expect(lists()).toBe(listed);
    });

    it('are looked for 500 uploads deep, in five pages, which go on from the first', async () => {
      const { key } = await lasting.organization();
      const { requests } = lasting.fakeYoutube;
      requests.clear();
      const { body } = await lasting.get('/channels/@archive-900x1/uploads?limit=25&kinds=live', key);
      expect(body.uploads).toEqual([]);
      expect(requests.count({ kind: 'browse-uploads' })).toBe(1);
      expect(requests.count({ kind: 'browse-shorts' })).toBe(1);
      expect(requests.count({ kind: 'browse-continuation' })).toBe(4);
    });
  });

  describe('since', () => {
    it.each([
      ['tw-mackerel', 2, 100, true],
      ['tw-mackerel', 2, 3, true],
      ['tw-mackerel', 2, 2, false],
      ['tw-chowder_', 0, 100, true],
      ['tw-tea_____', 4, 100, true],
      ['aaaaaaaaaaa', 5, 100, false],
    ])(
      '%s leaves %i uploads with a limit of %i, and states whether it was found: %s',
      async (since, count, limit, found) => {
        const { key } = await service.organization();
        for (const path of ['uploads', 'transcripts']) {
          const response = await service.get(`/channels/@tidewater/${path}?since=${since}&limit=${limit}`, key);
          expect(idsOf(response)).toEqual(TIDEWATER.slice(0, count));
          expect((response.body.summary ?? response.body).sinceFound).toBe(found);
        }
      },
    );

    it('costs only what is listed', async () => {
      const { key } = await service.organization({ monthlyLimit: 1 });
      const path = '/channels/@3-videos-no-23/transcripts';
      const uploads = idsOf(await service.get('/channels/@3-videos-no-23/uploads', key));
      const response = await service.get(`${path}?since=${uploads[1]}`, key);
      expect([response.status, response.body.summary.fetched]).toEqual([200, 1]);
    });

    it('that is absent is not stated', async () => {
      const { key } = await service.organization();
      const { body } = await service.get('/channels/@tidewater/transcripts?limit=1', key);
      expect(Object.keys(body.summary as object)).toEqual(['total', 'succeeded', 'failed', 'cached', 'fetched']);
    });
  });
});

describe('a list that the platform refuses', () => {
  let service: TestService;
  let key: string;

  beforeAll(async () => {
    service = await startService({
      environment: { UPSTREAM_RETRIES: 0, UPLOADS_TTL_SECONDS: 60, CHANNEL_TTL_SECONDS: 60 },
    });
    ({ key } = await service.organization());
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());
  afterEach(() => void jest.restoreAllMocks());
  const wallClock = Date.now.bind(Date);
  const MINUTE = 60;
  const DAY = 86_400;

  /** Moves the clock of the process ahead of the true one. */
  function pass(seconds: number): void {
    jest.spyOn(Date, 'now').mockImplementation(() => wallClock() + seconds * 1_000);
  }

  function refuseLists(kind: '500' | 'captcha' = '500'): void {
    service.fakeYoutube.setFaults({ kind, match: { kind: ['resolve', 'browse'] } });
  }

  const read = (path: string, accept = 'application/json'): Promise<ServiceResponse> =>
    service.get(path, key, { Accept: accept });

  it.each([
    ['the transcripts of a channel', '/channels/@3-videos-no-41/transcripts', 'channel'],
    ['the uploads of a channel', '/channels/@3-videos-no-42/uploads', 'channel'],
    ['the transcripts of a playlist', `/playlists/${SATURDAY.id}/transcripts`, 'playlist'],
  ])('is the one that was read last: %s', async (_, path, header) => {
    const beforeMs = Date.now();
    const first = await read(path);
    const afterMs = Date.now();
    expect([first.status, first.body.listedAt, first.headers['warning']]).toEqual([200, undefined, undefined]);
    refuseLists();
    expect((await read(path)).body.listedAt).toBeUndefined();
    pass(2 * MINUTE);
    const refused = await read(path);
    expect(refused.status).toBe(200);
    expect(refused.headers['warning']).toBe('110 - "Response is Stale"');
    expect(Object.keys(refused.body as object).slice(0, 2)).toEqual([header, 'listedAt']);
    const { listedAt } = refused.body as { listedAt: string };
    expect(Date.parse(listedAt)).toBeGreaterThanOrEqual(beforeMs);
    expect(Date.parse(listedAt)).toBeLessThanOrEqual(afterMs);
    expect(refused.body[header]).toEqual(first.body[header]);
    const idsOf = ({ body }: ServiceResponse): unknown =>
      (body.results ?? body.uploads).map(({ videoId }: { videoId: string }) => videoId);
    expect(idsOf(refused)).toEqual(idsOf(first));
    if (refused.body.summary)
      expect(refused.body.summary).toMatchObject({ fetched: 0, failed: first.body.summary.failed });

    service.fakeYoutube.reset();
    const again = await read(path);
    expect([again.status, again.body.listedAt, again.headers['warning']]).toEqual([200, undefined, undefined]);
  });

  it('is dated in NDJSON and in Markdown, too', async () => {
    const path = '/channels/@3-videos-no-43/transcripts';
    await read(path);
    refuseLists();
    pass(2 * MINUTE);
    const [line = ''] = (await read(path, 'application/x-ndjson')).text.split('\n');
    const { type, listedAt } = JSON.parse(line) as { type: string; listedAt: string };
    expect([type, Date.parse(listedAt) > 0]).toEqual(['channel', true]);
    const markdown = await read(path, 'text/markdown');
    expect(markdown.text).toContain(`as listed at ${listedAt}`);
    expect(markdown.headers['warning']).toBe('110 - "Response is Stale"');
  });

  it('is 502 when less was read of it than the call asks for, instead of a list that was cut off', async () => {
    const path = '/channels/@200-videos-no-44/uploads';
    const first = await read(`${path}?limit=100`);
    expect(first.body.uploads).toHaveLength(100);
    refuseLists();
    expect((await read(`${path}?limit=100&kinds=live`)).status).toBe(502);
    pass(2 * MINUTE);
    expect((await read(`${path}?limit=100`)).body.listedAt).toEqual(expect.any(String));
  });

  it('is 502 when the last one is a day old, or there is none', async () => {
    const path = '/channels/@3-videos-no-45/uploads';
    await read(path);
    refuseLists();
    pass(DAY - MINUTE);
    expect((await read(path)).status).toBe(200);
    pass(DAY + MINUTE);
    expect((await read(path)).status).toBe(502);
    expect((await read('/channels/@3-videos-no-46/uploads')).status).toBe(502);
  });

  it('is not that of a channel that is known to be deleted', async () => {
    const path = '/channels/@tidewater/uploads';
    const { body } = await read(path);
    pass(2 * MINUTE);
    service.fakeYoutube.changeChannel({ channel: '@tidewater', terminated: true });
    expect((await read(`/channels/${body.channel.id as string}/uploads`)).status).toBe(404);
    refuseLists();
    pass(4 * MINUTE);
    expect((await read(path)).status).toBe(502);
  });

  it('is served while the egress pauses', async () => {
    const path = '/channels/@3-videos-no-48/transcripts';
    await read(path);
    refuseLists('captcha');
    pass(2 * MINUTE);
    await read(path);
    const { status, body } = await read(path);
    expect([status, body.summary?.cached, typeof body.listedAt]).toEqual([200, 3, 'string']);
  });
});
