import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

describe('lists of videos', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  function post(key: string, body: unknown, headers: Record<string, string> = {}): Promise<ServiceResponse> {
    const sent = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers };
    return service.request('POST', '/transcripts', sent, typeof body === 'string' ? body : JSON.stringify(body));
  }

  const idsOf = ({ body }: ServiceResponse): string[] =>
    body.results.map(({ videoId }: { videoId: string }) => videoId) as string[];
  const usageOf = async (key: string): Promise<object> => (await service.get('/usage', key)).body as object;

  describe('a list of videos', () => {
    it('has one entry for each, in the order asked, without a channel', async () => {
      const { key } = await service.organization();
      const response = await post(key, {
        videos: ['hl-silent__', 'https://youtu.be/tw-bread___', 'tw-chowder_', 'no-such-vid', 'hl-tidecam_'],
      });
      expect(response.status).toBe(200);
      expect(Object.keys(response.body as object)).toEqual(['results', 'summary']);
      expect(idsOf(response)).toEqual(['hl-silent__', 'tw-bread___', 'tw-chowder_', 'no-such-vid', 'hl-tidecam_']);
      expect(response.body.summary).toEqual({ total: 5, succeeded: 2, failed: 3, cached: 0, fetched: 2 });
      expect(response.body.results[1].metadata.title).toBe('Bread that keeps for a week at sea');
      expect(await usageOf(key)).toMatchObject({ used: 2, reserved: 0 });
    });

    it('names the channel of each that was read, and has what is included, also from the cache', async () => {
      const { key } = await service.organization();
      const videos = ['tw-bread___', 'no-such-vid'];
      const plain = (await post(key, { videos })).body.results[0].metadata as object;
      expect(Object.keys(plain)).toContain('channel');
      for (const name of ['description', 'chapters', 'tags']) expect(Object.keys(plain)).not.toContain(name);
      const reads = () => service.fakeYoutube.requests.count({ kind: ['player', 'reel'], videoId: 'tw-bread___' });
      const before = reads();
      for (const include of ['tags,chapters,description', ['tags', 'chapters', 'description']]) {
        const { body } = await post(key, { videos, include });
        expect(body.results[0].metadata).toMatchObject({
          channel: { id: 'UCtidewater_____________', name: 'Tidewater Kitchen' },
          description: expect.stringMatching(/^Sea bread/),
          chapters: [
            { title: 'Flour', start: 0 },
            { title: 'Rising', start: 10 },
            { title: 'Baking', start: 20 },
          ],
          tags: ['bread', 'rye'],
        });
        expect(body.results[1].metadata).toMatchObject({
          channel: null,
          description: null,
          chapters: null,
          tags: null,
        });
      }
      expect(reads()).toBe(before);
      const refused = await post(key, { videos, include: ['likes'] });
      expect([refused.status, refused.body.error.details[0].field]).toEqual([400, 'include']);
    });

    it('has the first of the languages, or the original for *, and words that are no codes are refused', async () => {
      const { key } = await service.organization();
      const videos = ['hl-keeper__', 'tw-tea_____'];
      const keysOf = async (fields: object): Promise<string[][]> => {
        const { body } = await post(key, { videos, ...fields });
        return body.results.map(({ transcript }: { transcript: object }) => Object.keys(transcript)) as string[][];
      };
      expect(await keysOf({ languages: ['de', 'en'] })).toEqual([['de', 'en'], ['en']]);
      expect(await keysOf({ languages: ['de', 'en'], match: 'first' })).toEqual([['de'], ['en']]);
      const original = await keysOf({});
      expect(await keysOf({ languages: 'fi,*' })).toEqual(original);
      expect(await keysOf({ languages: ['*'] })).toEqual(original);
      for (const word of ['any', 'original']) {
        const [detail] = (await post(key, { videos, languages: [word] })).body.error.details;
        expect(detail).toMatchObject({ field: 'languages', message: expect.stringContaining('use *') });
      }
      expect((await post(key, { videos, match: 'best' })).body.error.details[0].field).toBe('match');
    });

    it('has its segments in chunks, in every form of the response, fetched and cached, and is cached without', async () => {
      const { key } = await service.organization();
      const wanted = { videos: ['tw-pickles_', 'hl-silent__', 'tw-pickles_'], chunkSeconds: 600 };
      const text =
        'Pick it above the tide line and leave the roots. Boil for a minute, no more, and into the jar. Vinegar, bay, a chilli if you are brave.';
      for (const headers of [{}, { 'Accept-Encoding': 'gzip' }, { Accept: 'application/x-ndjson' }]) {
        const { bytes, headers: received } = await post(key, wanted, headers);
        const body = (received['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
        const chunk = `"en":[{"text":${JSON.stringify(text)},"start":`;
        expect(body.split(chunk)).toHaveLength(3);
        expect(body.match(/"text":/g)).toHaveLength(2);
      }
      const plain = await post(key, { videos: ['tw-pickles_'] });
      expect(plain.body.results[0].transcript.en.length).toBeGreaterThan(2);
      expect(plain.body.summary.cached).toBe(1);
      const asText = await service.get('/videos/tw-pickles_/transcript?chunkSeconds=600&format=text', key);
      expect(asText.text).toBe(`${text}\n`);
      for (const [format, form] of [
        ['srt', /^1\n[\d:,]+ --> [\d:,]+\nPick it above/],
        ['vtt', /^WEBVTT\n\n[\d:.]+ --> [\d:.]+\nPick it above/],
        ['markdown', /^# [^]*\n\nChapters:[^]*\n\nDescription:\n\n> Sea bread\. {2}\n> {2}\n> 0:00 Flour {2}\n/],
      ] as const) {
        const video = format === 'markdown' ? 'tw-bread___' : 'tw-pickles_';
        const query = `format=${format}&chunkSeconds=600&include=description,chapters,tags&languages=de,*&match=first`;
        const { text: body } = await service.get(`/videos/${video}/transcript?${query}`, key);
        expect(body).toMatch(form);
        if (format !== 'markdown') expect(body).toContain(`\n${text}\n`);
        else expect(body.match(/\]\(https:\/\/youtu\.be\/tw-bread___\?t=/g)).toHaveLength(3 + 1);
      }
      for (const chunkSeconds of [14, 601, 60.5, '60', null])
        expect((await post(key, { ...wanted, chunkSeconds })).body.error.details[0].field).toBe('chunkSeconds');
    });

    it.each([['tw-mackerel'], ['hl-dinghy__']])(
      'that names %s several times has an entry for each position and is charged once',
      async (video) => {
        const { key } = await service.organization();
        const videos = [video, 'hl-silent__', `https://youtu.be/${video}`, video, 'hl-silent__'];
        const response = await post(key, { videos });
        expect(idsOf(response)).toEqual([video, 'hl-silent__', video, video, 'hl-silent__']);
        const { results, summary } = response.body;
        expect(results.map(({ cached }: { cached: boolean }) => cached)).toEqual([false, false, true, true, false]);
        expect(results[2].transcript).toEqual(results[0].transcript);
        expect(summary).toEqual({ total: 5, succeeded: 3, failed: 2, cached: 2, fetched: 1 });
        expect(await usageOf(key)).toMatchObject({ used: 1, reserved: 0 });
        const cached = await post(key, { videos }, { 'Accept-Encoding': 'identity' });
        expect(cached.body.summary).toEqual({ total: 5, succeeded: 3, failed: 2, cached: 3, fetched: 0 });
      },
    );

    it('is streamed as NDJSON without a first line for a channel', async () => {
      const { key } = await service.organization();
      const videos = ['tw-tea_____', 'hl-silent__', 'tw-tea_____'];
      const response = await post(key, { videos }, { Accept: 'application/x-ndjson' });
      const lines = response.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { type: string; result?: { videoId: string } });
      expect(lines.map(({ type }) => type)).toEqual(['result', 'result', 'result', 'summary']);
      expect(lines.flatMap(({ result }) => result?.videoId ?? []).sort()).toEqual([...videos].sort());
    });

    it('takes languages as a list or separated by commas', async () => {
      const { key } = await service.organization();
      const videos = ['tw-pickles_'];
      for (const languages of [['fr', 'en'], 'fr,en']) {
        const { results } = (await post(key, { videos, languages })).body;
        expect(Object.keys(results[0].transcript as object)).toEqual(['en']);
      }
    });

    it('is refused with 402 when its distinct videos do not fit, naming how many would', async () => {
      const { key } = await service.organization({ monthlyLimit: 2 });
      const videos = ['fs-230_____', 'fs-230_____', 'fs-229_____', 'fs-228_____', 'fs-230_____'];
      const refused = await post(key, { videos });
      expect(refused.status).toBe(402);
      expect(refused.body.error).toMatchObject({ required: 3, limit: 2, used: 0 });
      expect(refused.body.error.message).toMatch(/Retry with the first 3 videos or fewer\.$/);
      expect(service.fakeYoutube.requests.total).toBe(0);
      const granted = await post(key, { videos: videos.slice(0, 3) });
      expect(granted.body.summary).toMatchObject({ total: 3, fetched: 2, cached: 1 });
    });

    it('requires the Pro plan', async () => {
      const { key } = await service.organization({ plan: 'free' });
      const response = await post(key, { videos: ['tw-tea_____'] });
      expect([response.status, response.body.error.feature, response.body.error.requiredPlan]).toEqual([
        403,
        'bulk_transcripts',
        'pro',
      ]);
    });

    const tooMany = Array.from({ length: 101 }, () => 'tw-tea_____');
    it.each<[what: string, body: unknown, status: number, field: string]>([
      ['no list', {}, 400, 'videos'],
      ['over 100 videos', { videos: tooMany }, 400, 'videos'],
      ['a text instead of a list', { videos: 'tw-tea_____' }, 400, 'videos'],
      ['a number in it', { videos: ['tw-tea_____', 5] }, 400, 'videos'],
      ['a malformed ID', { videos: ['tw-tea_____', 'short'] }, 400, 'videos[1]'],
      ['the URL of another site', { videos: ['https://example.com/watch?v=tw-tea_____'] }, 400, 'videos[0]'],
      ['empty languages', { videos: ['tw-tea_____'], languages: [] }, 400, 'languages'],
      ['codes joined in a list', { videos: ['tw-tea_____'], languages: ['en,de'] }, 400, 'languages'],
      ['an unknown field', { videos: ['tw-tea_____'], limit: 5 }, 400, 'limit'],
      ['a list as the body', '["tw-tea_____"]', 400, 'body'],
      ['broken JSON', '{"videos":', 400, 'body'],
      ['a large body', JSON.stringify({ videos: ['x'.repeat(17_000)] }), 413, 'body'],
    ])('with %s is refused with the field, before anything is fetched', async (_what, body, status, field) => {
      const { key } = await service.organization();
      const response = await post(key, body);
      expect([response.status, response.body.error.code]).toEqual([status, 'invalid_request']);
      expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(/./) }]);
      expect(service.fakeYoutube.requests.total).toBe(0);
      expect(await usageOf(key)).toMatchObject({ used: 0, reserved: 0 });
    });

    it('names every malformed reference, and takes no query parameters', async () => {
      const { key } = await service.organization();
      const { body } = await post(key, { videos: ['a', 'tw-tea_____', 'b'] });
      expect(body.error.details.map(({ field }: { field: string }) => field)).toEqual(['videos[0]', 'videos[2]']);
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
      const response = await service.request('POST', '/transcripts?limit=5', headers, '{"videos":["tw-tea_____"]}');
      expect([response.status, response.body.error.details[0].field]).toEqual([400, 'limit']);
    });

    it('is not available to GET, and its body is read only after the guards', async () => {
      const { key } = await service.organization();
      const got = await service.get('/transcripts', key);
      expect([got.status, got.headers.allow]).toEqual([405, 'POST']);
      const unauthorized = await service.request('POST', '/transcripts', {}, '{"videos":');
      expect(unauthorized.status).toBe(401);
    });
  });

  describe('a channel, a list and one video for the same videos at the same time', () => {
    it('share each fetch and charge each video once', async () => {
      const { key } = await service.organization();
      const { uploads } = (await service.get('/channels/@8-videos-no-25/uploads', key)).body;
      const videos = uploads.slice(0, 4).map(({ videoId }: { videoId: string }) => videoId) as string[];
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
      const calls = [
        post(key, { videos: [...videos, ...videos] }),
        service.get('/channels/@8-videos-no-25/transcripts', key),
        post(key, { videos: [...videos].reverse() }, { Accept: 'application/x-ndjson' }),
      ];
      const one = service.get(`/videos/${videos[0]}/transcript`, key);
      await hold.arrived;
      await until(async () => Number(((await usageOf(key)) as { reserved: number }).reserved) >= 4 + 8 + 4 + 1);
      hold.release();
      const bodies = await Promise.all(calls);
      expect(bodies.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect((await one).status).toBe(200);
      const { used } = (await usageOf(key)) as { used: number };
      expect(used).toBe(8);
      expect(service.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(8);
      expect(await usageOf(key)).toMatchObject({ used: 8, reserved: 0 });
    });
  });
});

describe('one video', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: { UPSTREAM_RETRIES: 0 } });
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());
  const ENTRY_FIELDS = ['videoId', 'ok', 'metadata', 'transcript', 'cached', 'tracks'];

  describe('the transcript of one video', () => {
    it('is the entry of a channel by itself, on the free plan, and costs one count unless it is cached', async () => {
      const { key } = await service.organization({ plan: 'free' });
      const first = await service.get('/videos/tw-chowder_/transcript', key);
      expect(first.status).toBe(200);
      expect(Object.keys(first.body as object)).toEqual(ENTRY_FIELDS);
      expect(first.body).toMatchObject({ videoId: 'tw-chowder_', ok: true, cached: false });
      expect(first.body.metadata.channel.name).toBe('Tidewater Kitchen');
      expect(first.body.transcript.en[0]).toMatchObject({ text: 'Eight people, one pot, three pounds of mussels.' });
      expect(first.headers).toMatchObject({ 'x-quota-limit': '50', 'x-quota-remaining': '49' });
      const again = await service.get('/videos/tw-chowder_/transcript', key);
      expect(again.body).toEqual({ ...first.body, cached: true });
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 1, reserved: 0 });
    });

    it.each([
      'tw-tea_____',
      'https%3A%2F%2Fwww.youtube.com%2Fwatch%3Fv%3Dtw-tea_____%26t%3D5s',
      'https://www.youtube.com/watch?list=PLabcdefghijklm&v=tw-tea_____&t=5s',
      'https:/youtu.be/tw-tea_____?si=abc&t=5',
      'youtube-nocookie.com/embed/tw-tea_____?rel=0',
      'https://www.youtube.com/shorts/tw-tea_____',
    ])('is found by %s', async (reference) => {
      const { key } = await service.organization();
      const response = await service.get(`/videos/${reference}/transcript?languages=en`, key);
      expect([response.status, response.body.videoId]).toEqual([200, 'tw-tea_____']);
    });
  });

  describe('the formats of one video', () => {
    const LINES = [
      'Half a kettle, lid on, and wait for the lull.',
      'Milk first. We are not discussing it.',
      'The stove swings so that the kettle does not.',
    ];
    const path = '/videos/tw-tea_____/transcript';

    it.each([
      ['text', 'text/plain', /^The stove swings/],
      ['srt', 'application/x-subrip', /^1\n00:00:0\d,\d{3} --> /],
      ['vtt', 'text/vtt', /^WEBVTT\n\n00:00:0\d\.\d{3} --> /],
      ['markdown', 'text/markdown', /^# Tea on a gimballed stove\n/],
    ])('%s is sent for the parameter and for Accept: %s, also compressed', async (format, type, start) => {
      const { key } = await service.organization();
      const byParameter = await service.get(`${path}?format=${format}`, key);
      expect(byParameter.headers['content-type']).toBe(`${type}; charset=utf-8`);
      expect(byParameter.text).toMatch(start);
      for (const line of LINES) expect(byParameter.text).toContain(line);
      for (const accept of [type, `${type}; charset=utf-8`]) {
        const byHeader = await service.get(path, key, { Accept: accept });
        expect(byHeader.text).toBe(byParameter.text);
        expect(byHeader.headers.vary).toMatch(/accept\b(?!-)/i);
      }
      const compressed = await fetch(`${service.url}${path}?format=${format}`, {
        headers: { Authorization: `Bearer ${key}`, 'Accept-Encoding': 'gzip' },
      });
      expect(await compressed.text()).toBe(byParameter.text);
      expect((await service.get('/usage', key)).body.used).toBeLessThanOrEqual(1);
    });

    it('are overridden by the parameter, and JSON is the default', async () => {
      const { key } = await service.organization();
      const types = async (query: string, accept: string) =>
        (await service.get(path + query, key, { Accept: accept })).headers['content-type']?.split(';')[0];
      expect(await types('?format=json', 'text/vtt')).toBe('application/json');
      expect(await types('?format=text', 'application/json')).toBe('text/plain');
      for (const accept of ['*/*', 'image/png', 'text/html,*/*;q=0.8', ''])
        expect(await types('', accept)).toBe('application/json');
    });

    it('of a failed video is the JSON error', async () => {
      const { key } = await service.organization();
      const response = await service.get('/videos/hl-silent__/transcript?format=srt', key, { Accept: 'text/vtt' });
      expect([response.status, response.body.error.code]).toEqual([404, 'transcript_unavailable']);
    });
  });

  describe('a video without a transcript', () => {
    it.each([
      ['hl-silent__', 404, 'transcript_unavailable', false],
      ['hl-deleted_', 404, 'video_unavailable', false],
      ['no-such-vid', 404, 'video_unavailable', false],
      ['hl-private_', 404, 'video_private', false],
      ['hl-crew____', 404, 'video_members_only', false],
      ['hl-wreck___', 404, 'video_age_restricted', false],
      ['hl-regatta_', 409, 'video_not_live_yet', true],
      ['hl-tidecam_', 409, 'video_live', true],
    ])('%s is %i %s and costs nothing', async (videoId, status, code, retryable) => {
      const { key } = await service.organization();
      const response = await service.get(`/videos/${videoId}/transcript`, key);
      expect([response.status, response.body.error.code, response.body.error.retryable]).toEqual([
        status,
        code,
        retryable,
      ]);
      expect(response.body.error.requestId).toBe(response.headers['x-request-id']);
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
    });

    it('in the requested languages is 404, and the error lists those that it has', async () => {
      const { key } = await service.organization();
      const response = await service.get('/videos/tw-chowder_/transcript?languages=fr', key);
      expect([response.status, response.body.error.code]).toEqual([404, 'language_unavailable']);
      expect(response.body.error.message).toMatch(/Available: en/);
      const { metadata } = (await service.get('/videos/tw-chowder_/transcript', key)).body;
      expect(response.body.error.captionTracks).toEqual(metadata.captionTracks);
    });

    it.each([
      ['500', ['player', 'reel'], 502, 'upstream_failure'],
      // Pauses the egress.
      ['bot-check', ['player', 'reel'], 502, 'upstream_blocked'],
    ] as const)('because YouTube answers with %s is %i %s', async (kind, kinds, status, code) => {
      const { key } = await service.organization();
      service.fakeYoutube.setFaults({ kind, match: { kind: [...kinds] } });
      const response = await service.get('/videos/fs-200_____/transcript', key);
      expect([response.status, response.body.error.code, response.body.error.retryable]).toEqual([status, code, true]);
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
    });
  });

  describe('a reference to no video', () => {
    it.each([
      'short',
      'https://example.com/watch?v=tw-tea_____',
      'https://www.youtube.com/@harbourlight',
      'http://127.0.0.1:5432/tw-tea_____',
      '%00',
      '..%2F..%2Fadmin',
    ])('%s is 404 without an outgoing request', async (reference) => {
      const { key } = await service.organization();
      const response = await service.get(`/videos/${reference}/transcript`, key);
      expect(response.status).toBe(404);
      expect(['video_not_found', 'not_found']).toContain(response.body.error.code);
      expect(service.fakeYoutube.requests.total).toBe(0);
    });
  });

  describe('a call for one video', () => {
    it('is refused with 402 when no quota remains, before anything is fetched', async () => {
      const { key } = await service.organization({ monthlyLimit: 0 });
      const response = await service.get('/videos/tw-mackerel/transcript', key);
      expect(response.status).toBe(402);
      expect(response.body.error).toMatchObject({ code: 'plan_limit_exceeded', limit: 0, required: 1 });
      expect(response.body.error.message).toMatch(
        /^This request may use up to 1 transcript of the monthly quota, and 0 of 0 remain\. The quota resets at \d{4}-/,
      );
      expect(service.fakeYoutube.requests.total).toBe(0);
    });

    it.each([
      ['limit=5', 'limit'],
      ['languages=', 'languages'],
      ['since=tw-tea_____', 'since'],
      ['format[]=json', 'format'],
      ['format=', 'format'],
      ['format=SRT', 'format'],
      ['format=srt&format=vtt', 'format'],
    ])('with %s is 400, naming the field', async (query, field) => {
      const { key } = await service.organization();
      const response = await service.get(`/videos/tw-chowder_/transcript?${query}`, key);
      expect([response.status, response.body.error.details[0].field]).toEqual([400, field]);
      expect(service.fakeYoutube.requests.total).toBe(0);
    });

    it('accepts GET only', async () => {
      const { key } = await service.organization();
      const response = await service.request('HEAD', '/videos/tw-chowder_/transcript', {
        Authorization: `Bearer ${key}`,
      });
      expect([response.status, response.headers.allow]).toEqual([405, 'GET']);
    });
  });
});
