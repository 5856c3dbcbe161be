import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import MarkdownIt from 'markdown-it';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';

describe('a call that succeeds', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  interface Entry {
    videoId: string;
    ok: boolean;
    cached: boolean;
    transcript: Record<string, { text: string; start: number; duration: number }[]>;
    metadata: Record<string, unknown>;
    error?: { code: string; message: string; retryable: boolean };
  }

  function entries(response: ServiceResponse): Entry[] {
    return (response.body as { results: Entry[] }).results;
  }

  /** The identities of every response. */
  function expectIdentities(response: ServiceResponse): void {
    const { results, summary } = response.body as { results: Entry[]; summary: Record<string, number> };
    const count = (test: (entry: Entry) => boolean): number => results.filter(test).length;
    expect(summary).toEqual({
      total: results.length,
      succeeded: count((entry) => entry.ok),
      failed: count((entry) => !entry.ok),
      cached: count((entry) => entry.cached),
      fetched: count((entry) => entry.ok && !entry.cached),
    });
  }

  it('returns the newest 25 uploads, newest first, each with its own status, and is charged for the fetched transcripts', async () => {
    const { key } = await service.organization();
    const answer = await service.get('/channels/@harbourlight/transcripts', key);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers['cache-control']).toBe('private, no-store');
    expect(answer.headers.vary).toMatch(/accept-encoding/i);
    expect(answer.headers.etag).toBeUndefined();
    expect(answer.headers['x-powered-by']).toBeUndefined();
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(Object.keys(answer.body as object)).toEqual(['channel', 'results', 'summary']);
    expect(answer.body.channel).toEqual({
      id: 'UCharbourlight__________',
      name: 'Harbour Light Workshop',
      handle: '@harbourlight',
    });
    expect(answer.body.summary).toEqual({ total: 25, succeeded: 17, failed: 8, cached: 0, fetched: 17 });
    expectIdentities(answer);
    const failures = Object.fromEntries(
      entries(answer).flatMap((entry) => (entry.error ? [[entry.videoId, entry.error.code]] : [])),
    );
    expect(failures).toEqual({
      'hl-regatta_': 'video_not_live_yet',
      'hl-tidecam_': 'video_live',
      'hl-crew____': 'video_members_only',
      'hl-silent__': 'transcript_unavailable',
      'hl-private_': 'video_private',
      'hl-token___': 'upstream_blocked',
      'hl-wreck___': 'video_age_restricted',
      'hl-deleted_': 'video_unavailable',
    });
    for (const entry of entries(answer)) {
      expect(Object.keys(entry).slice(0, 5)).toEqual(['videoId', 'ok', 'metadata', 'transcript', 'cached']);
      expect('error' in entry).toBe(!entry.ok);
      expect(Object.keys(entry.transcript)).toHaveLength(entry.ok ? 1 : 0);
    }
    const usage = await service.get('/usage', key);
    expect(usage.body).toMatchObject({ plan: 'pro', limit: 5000, used: 17, reserved: 0, remaining: 4983 });
  });

  it('is free when repeated, even with an exhausted quota, and requests no cached video from the platform', async () => {
    const first = await service.organization();
    await service.get('/channels/@tidewater/transcripts', first.key);
    const requested = service.fakeYoutube.requests.count({ kind: ['player', 'reel', 'timedtext'] });
    const { key } = await service.organization({ monthlyLimit: 0 });
    const answer = await service.get('/channels/@tidewater/transcripts', key);
    expect(answer.status).toBe(200);
    expect(answer.body.summary).toEqual({ total: 5, succeeded: 5, failed: 0, cached: 5, fetched: 0 });
    expect(service.fakeYoutube.requests.count({ kind: ['player', 'reel', 'timedtext'] })).toBe(requested);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
  });

  it.each([
    ['limit=1', 1],
    ['limit=0007', 7],
    ['limit=100', 100],
    ['limit=500', 100],
    ['limit=99999999999999999999999999', 100],
  ])('%s returns %i entries', async (query, expected) => {
    const { key } = await service.organization();
    const answer = await service.get(`/channels/@fogsignalradio/transcripts?${query}`, key);
    expect(answer.body.summary.total).toBe(expected);
    expectIdentities(answer);
  });

  it.each(['@emptyslip', '@drydock'])('returns no entries for %s, which has no uploads', async (handle) => {
    const { key } = await service.organization();
    const answer = await service.get(`/channels/${handle}/transcripts`, key);
    expect(answer.status).toBe(200);
    expect(answer.body.results).toEqual([]);
    expect(answer.body.summary).toEqual({ total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0 });
  });

  it('returns a null handle for a channel without one', async () => {
    const { key } = await service.organization();
    const answer = await service.get(
      '/channels/https%3A%2F%2Fwww.youtube.com%2Fuser%2Foldmooring/transcripts?limit=1',
      key,
    );
    expect(answer.body.channel).toMatchObject({ name: 'Unnamed Mooring', handle: null });
  });

  it.each([
    ['tidewater', '@tidewater'],
    ['@TideWater', '@tidewater'],
    ['https%3A%2F%2Fwww.youtube.com%2F%40tidewater%2Fvideos%3Fview%3D0%23top', '@tidewater'],
    ['https://www.youtube.com/@tidewater', '@tidewater'],
    ['https:/www.youtube.com/@tidewater/streams', '@tidewater'],
    ['www.youtube.com/@tidewater/', '@tidewater'],
    ['https://www.youtube.com%2F@tidewater', '@tidewater'],
    ['%40%E6%B8%AF%E3%81%AE%E7%81%AF%E5%8F%B0', '@港の灯台'],
    ['https%3A%2F%2Fwww.youtube.com%2F%2540%25E6%25B8%25AF%25E3%2581%25AE%25E7%2581%25AF%25E5%258F%25B0', '@港の灯台'],
    ['https%3A%2F%2Fwww.youtube.com%2Fc%2FPhare%C3%89toil%C3%A9', '@港の灯台'],
    ['UCharbourlight__________', '@harbourlight'],
    ['https://www.youtube.com/channel/UCharbourlight__________/about', '@harbourlight'],
  ])('finds the channel by %s', async (reference, handle) => {
    const { key } = await service.organization();
    const answer = await service.get(`/channels/${reference}/transcripts?limit=1`, key);
    expect([answer.status, answer.body.channel?.handle]).toEqual([200, handle]);
  });

  it('returns each requested language that the video has, in the order of preference, for one charge', async () => {
    const { key } = await service.organization();
    const answer = await service.get('/channels/@harbourlight/transcripts?limit=6&languages=fr,xx,de', key);
    const storing = entries(answer).find((entry) => entry.videoId === 'hl-keeper__');
    expect(Object.keys(storing?.transcript ?? {})).toEqual(['fr', 'de']);
    const sharp = entries(answer).find((entry) => entry.videoId === 'hl-sharp___');
    expect(sharp?.error).toMatchObject({ code: 'language_unavailable', retryable: false });
    expect(sharp?.error?.message).toContain('en');
    expect(answer.body.summary.fetched).toBe(1);
    expect((await service.get('/usage', key)).body.used).toBe(1);
  });

  it('has the same content, compressed, for a caller that accepts gzip', async () => {
    const { key } = await service.organization();
    const path = '/channels/@tidewater/transcripts';
    await service.get(path, key);
    const plain = await service.get(path, key);
    const headers = { Authorization: `Bearer ${key}`, 'Accept-Encoding': 'br, gzip' };
    const compressed = await fetch(service.url + path, { headers });
    expect(compressed.headers.get('content-encoding')).toBe('gzip');
    expect(await compressed.text()).toBe(plain.text);
    expect((await service.get(path, key, { 'Accept-Encoding': 'gzip;q=0' })).text).toBe(plain.text);
  });

  it('echoes a valid request id of the caller, and generates one otherwise', async () => {
    const { key } = await service.organization();
    const idFor = async (id: string) =>
      (await service.get('/channels/@emptyslip/transcripts', key, { 'X-Request-Id': id })).headers['x-request-id'];
    expect(await idFor('order-7/retry.2')).toBe('order-7/retry.2');
    expect(await idFor('<script>')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('accepts the Bearer scheme in any case', async () => {
    const { key } = await service.organization();
    const answer = await service.request('GET', '/channels/@emptyslip/transcripts', { Authorization: `bEARER ${key}` });
    expect(answer.status).toBe(200);
  });

  it('is logged in one line, with counts and without the key', async () => {
    const { key, id } = await service.organization();
    await service.get('/channels/@tidewater/transcripts?limit=2', key, { 'X-Request-Id': 'log-line' });
    const lines = service.logs.filter((line) => line.includes('log-line')).map((line) => JSON.parse(line) as object);
    expect(lines).toEqual([
      expect.objectContaining({
        event: 'request',
        organizationId: id,
        status: 200,
        channelId: expect.stringMatching(/^UC/),
        counts: { total: 2, succeeded: 2, failed: 0, cached: 2, fetched: 0 },
        ms: expect.any(Number),
      }),
    ]);
    expect(service.logs.join('')).not.toContain(key);
  });
});

describe('a Markdown response', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());
  const MARKDOWN = { Accept: 'text/markdown' };
  const PATH = '/channels/@harbourlight/transcripts';

  interface Entry {
    videoId: string;
    ok: boolean;
    metadata: { title: string };
    error?: { code: string };
  }

  /** The content of each heading of a level, without escapes. */
  function headings(text: string, tag: 'h1' | 'h2'): string[] {
    const tokens = new MarkdownIt({ html: true }).parse(text, {});
    return tokens.flatMap(({ type, tag: opened }, index) => {
      if (type !== 'heading_open' || opened !== tag) return [];
      return [(tokens[index + 1]?.children ?? []).map(({ content }) => content).join('')];
    });
  }

  it('is one document: the channel, a section for each transcript newest first, a line for each failure, the counts', async () => {
    const { key } = await service.organization();
    const response = await service.get(PATH, key, MARKDOWN);
    expect([response.status, response.headers['content-type']]).toEqual([200, 'text/markdown; charset=utf-8']);
    expect(response.headers.vary).toMatch(/accept-encoding, accept\b(?!-)/i);
    const { channel, results, summary } = (await service.get(PATH, key)).body;
    const entries = results as Entry[];
    expect(headings(response.text, 'h1')).toEqual([channel.name]);
    expect(headings(response.text, 'h2')).toEqual(entries.filter(({ ok }) => ok).map(({ metadata }) => metadata.title));
    const failed = entries.filter(({ ok }) => !ok);
    const lines = response.text.split('\n').filter((line) => line.startsWith('- '));
    expect(lines.map((line) => /\(https:\/\/youtu\.be\/(.{11})\).*\(`(\w+)`\)$/.exec(line)?.slice(1))).toEqual(
      failed.map(({ videoId, error }) => [videoId, error?.code]),
    );
    expect(response.text).toContain('\n\n[0:00](https://youtu.be/hl-dinghy__?t=0) Good morning from the slip');
    expect(
      response.text.endsWith(
        `\n---\n\n25 videos: ${summary.succeeded} with a transcript, ${summary.failed} without.\n`,
      ),
    ).toBe(true);
    expect((await service.get('/usage', key)).body.used).toBe(summary.succeeded);
  });

  it('is the same document compressed', async () => {
    const { key } = await service.organization();
    const plain = await service.get(PATH, key, MARKDOWN);
    const response = await fetch(`${service.url}${PATH}`, {
      headers: { ...MARKDOWN, Authorization: `Bearer ${key}`, 'Accept-Encoding': 'gzip' },
    });
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(await response.text()).toBe(plain.text);
  });

  it('has the newest section before an older video is fetched', async () => {
    const { key } = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-229' });
    const response = await fetch(`${service.url}/channels/@fogsignalradio/transcripts?limit=3`, {
      headers: { ...MARKDOWN, Authorization: `Bearer ${key}`, 'Accept-Encoding': 'identity' },
    });
    await hold.arrived;
    let text = '';
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      if (/youtu\.be\/fs-230/.test(text)) hold.release();
    }
    expect(headings(text, 'h2')).toHaveLength(3);
  });

  it.each([
    ['text/markdown;q=0.1, application/json', 'application/json'],
    ['text/markdown, application/x-ndjson;q=0.9', 'text/markdown'],
    ['text/markdown; charset=utf-8', 'text/markdown'],
    ['application/x-ndjson;charset=UTF-8, application/json;q=0.5', 'application/x-ndjson'],
    ['text/*', 'text/markdown'],
    ['*/*', 'application/json'],
    ['text/html', 'application/json'],
  ])('is negotiated: Accept: %s gets %s', async (accept, type) => {
    const { key } = await service.organization();
    const answer = await service.get('/channels/@emptyslip/transcripts', key, { Accept: accept });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, `${type}; charset=utf-8`]);
  });
});

describe('an NDJSON response', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  interface Line {
    type: string;
    channel?: unknown;
    result?: { videoId: string; ok: boolean; cached: boolean };
    summary?: unknown;
  }

  function linesOf(text: string): Line[] {
    expect(text.endsWith('\n')).toBe(true);
    return text
      .slice(0, -1)
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  }
  const LINES = { Accept: 'application/x-ndjson' };

  it('has one event per line: the channel, each result, the summary, with the fields of the JSON response', async () => {
    const { key } = await service.organization();
    const path = '/channels/@harbourlight/transcripts';
    const response = await service.get(path, key, LINES);
    expect(response.headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    expect(response.headers.vary).toMatch(/accept\b(?!-)/i);
    const lines = linesOf(response.text);
    expect(lines.map((line) => line.type)).toEqual(['channel', ...Array<string>(25).fill('result'), 'summary']);
    const json = (await service.get(path, key)).body;
    expect(lines[0]?.channel).toEqual(json.channel);
    const byId = new Map(lines.flatMap(({ result }) => (result ? [[result.videoId, result] as const] : [])));
    for (const entry of json.results as { videoId: string }[]) {
      expect({ ...byId.get(entry.videoId), cached: null }).toEqual({ ...entry, cached: null });
    }
    expect(lines.at(-1)?.summary).toMatchObject({ total: 25, fetched: 17, cached: 0 });
    expect((await service.get('/usage', key)).body.used).toBe(17);
  });

  it('sends a result as soon as it is finished, without waiting for a newer video', async () => {
    const { key } = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-230' });
    const response = await fetch(`${service.url}/channels/@fogsignalradio/transcripts?limit=3`, {
      headers: { Authorization: `Bearer ${key}`, ...LINES },
    });
    let text = '';
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes).toString();
      // The two others have arrived while the newest is held.
      if (text.split('"type":"result"').length === 3) hold.release();
    }
    const ids = linesOf(text).flatMap(({ result }) => (result ? [result.videoId.slice(0, 6)] : []));
    expect(ids).toHaveLength(3);
    expect(ids.at(-1)).toBe('fs-230');
  });

  it('is replaced by the JSON error envelope when the call fails', async () => {
    const { key } = await service.organization();
    const answer = await service.get('/channels/@no-such-channel/transcripts', key, LINES);
    expect([answer.status, answer.headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(answer.body.error.code).toBe('channel_not_found');
  });
});
