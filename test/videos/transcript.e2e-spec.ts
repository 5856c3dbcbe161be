import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: { UPSTREAM_RETRIES: 0 } });
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

const ENTRY_FIELDS = ['videoId', 'ok', 'metadata', 'transcript', 'cached'];

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
