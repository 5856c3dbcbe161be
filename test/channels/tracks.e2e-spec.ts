import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LONG } from '../fake-youtube/catalogue/playlists.js';
import type { EntryDto } from '../../src/transcripts/dto/transcripts-response.dto.js';
import { createJob } from '../jobs/job-requests.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';
import type { TestService } from '../harness/service.js';

/** Has a manual and a generated track in English. */
const BOTH = 'hl-dinghy__';
/** Has a generated one alone. */
const GENERATED = 'hl-bowline_';

let steps: SliceSteps;
let service: TestService;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
  ({ service } = steps);
});
afterAll(() => service.close());
beforeEach(() => steps.reset());

const MANUAL = { en: { name: 'English', generated: false } };
const RECOGNIZED = { en: { name: 'English (auto-generated)', generated: true } };

const send = (key: string, path: string, body: object) =>
  service.request(
    'POST',
    path,
    {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    JSON.stringify(body),
  );

describe('tracks', () => {
  it('are of the asked origin, each cached by itself, and stated last in the entry', async () => {
    const { key } = await service.organization();
    const read = async (query: string): Promise<EntryDto> =>
      (await service.get(`/videos/${BOTH}/transcript${query}`, key)).body as EntryDto;
    const any = await read('');
    expect([Object.keys(any).at(-1), any.tracks]).toEqual(['tracks', MANUAL]);
    expect(await read('?tracks=any')).toMatchObject({ tracks: MANUAL, cached: true });
    const generated = await read('?tracks=generated');
    expect(generated).toMatchObject({ tracks: RECOGNIZED, cached: false });
    expect(generated.transcript).not.toEqual(any.transcript);
    expect(await read('?tracks=generated&languages=*')).toMatchObject({ tracks: RECOGNIZED, cached: true });
    expect(await read('?tracks=manual&languages=en')).toMatchObject({ tracks: MANUAL, cached: false });
    expect((await service.get('/usage', key)).body.used).toBe(3);
  });

  it('fail with what there is when there is none of that origin', async () => {
    const { key } = await service.organization();
    const { status, body } = await service.get(`/videos/${GENERATED}/transcript?tracks=manual`, key);
    expect([status, body.error]).toEqual([
      404,
      expect.objectContaining({
        code: 'language_unavailable',
        message: 'This video has no manual captions in the requested languages. Available: en (generated).',
        captionTracks: [{ languageCode: 'en', ...RECOGNIZED.en }],
      }),
    ]);
    const list = await send(key, '/transcripts', { videos: [GENERATED, BOTH], tracks: 'manual' });
    expect(list.body.results).toMatchObject([
      { ok: false, error: { code: 'language_unavailable' }, tracks: {} },
      { ok: true, tracks: MANUAL },
    ]);
    expect((await service.get('/usage', key)).body.used).toBe(1);
    const refused = await service.get(`/videos/${BOTH}/transcript?tracks=asr`, key);
    expect(refused.body.error.details[0].message).toBe('tracks must be one of any, manual, generated.');
  });

  it('of calls at the same time are shared only with the same choice', async () => {
    const { key } = await service.organization();
    const choices = ['any', 'any', 'generated', 'generated'];
    const all = await Promise.all(
      choices.map((tracks) => service.get(`/videos/hl-keeper__/transcript?languages=en&tracks=${tracks}`, key)),
    );
    expect(all.map(({ body }) => (body as EntryDto).tracks)).toEqual([MANUAL, MANUAL, RECOGNIZED, RECOGNIZED]);
    expect((await service.get('/usage', key)).body.used).toBe(2);
  });

  it('are chosen for jobs, subscriptions, also later, and tools', async () => {
    const { key } = await service.organization();
    const job = await createJob(service, key, { videos: [BOTH], tracks: 'generated' });
    expect((await service.get(`/jobs/${job}`, key)).body.request).toMatchObject({ tracks: 'generated' });
    await steps.finish();
    const results = (await service.get(`/jobs/${job}/results`, key)).body.results;
    expect(results).toMatchObject([{ tracks: RECOGNIZED }]);
    const { id, request } = await follow(service, key, { channel: '@harbourlight', start: 1 });
    expect(request.tracks).toBe('any');
    const changed = await onSubscriptions(service, key, 'PATCH', `/${id}`, { tracks: 'generated' });
    expect([changed.status, changed.body.request.tracks]).toEqual([200, 'generated']);
    const back = await onSubscriptions(service, key, 'PATCH', `/${id}`, { tracks: 'any' });
    expect(back.body.request.tracks).toBe('any');
    const call = { name: 'get_video_transcript', arguments: { video: GENERATED, tracks: 'manual' } };
    const tool = await send(key, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call });
    expect(tool.text).toContain('language_unavailable');
  });
});

describe('publishedAfter', () => {
  const idsOf = async (path: string, key: string): Promise<string[]> => {
    const { status, body } = await service.get(path, key);
    expect(status).toBe(200);
    const entries = (body.results ?? body.uploads ?? body.videos) as { videoId: string }[];
    return entries.map(({ videoId }) => videoId);
  };

  it('selects by the date or the stated age, on calls, uploads, playlists and jobs', async () => {
    const { key } = await service.organization();
    const all = (await service.get('/channels/@harbourlight/uploads?limit=100', key)).body.uploads as {
      videoId: string;
      metadata: { publishedAt: string | null };
    }[];
    const times = all.flatMap(({ metadata }) => metadata.publishedAt ?? []).sort();
    const time = String(times.at(-5));
    const after = `publishedAfter=${encodeURIComponent(time)}`;
    const listed = await idsOf(`/channels/@harbourlight/uploads?limit=100&${after}`, key);
    for (const { videoId, metadata } of all)
      if (metadata.publishedAt !== null)
        expect([videoId, listed.includes(videoId)]).toEqual([videoId, metadata.publishedAt >= time]);
    expect(listed.length).toBeLessThan(all.length / 2);
    expect(await idsOf(`/channels/@harbourlight/uploads?limit=2&${after}`, key)).toEqual(listed.slice(0, 2));
    expect(await idsOf(`/channels/@harbourlight/transcripts?limit=100&${after}`, key)).toEqual(listed);
    // The list of a playlist shows ages only, if at all.
    const playlist = await idsOf(`/playlists/${LONG.id}/videos?limit=100&publishedAfter=1970-01-01`, key);
    expect(playlist).toEqual(await idsOf(`/playlists/${LONG.id}/videos?limit=100`, key));
    expect(await idsOf(`/playlists/${LONG.id}/transcripts?limit=1&publishedAfter=1970-01-01`, key)).toHaveLength(1);
    const job = await createJob(service, key, { channel: '@harbourlight', publishedAfter: time });
    await steps.finish();
    expect((await service.get(`/jobs/${job}`, key)).body).toMatchObject({
      summary: { total: listed.length },
      request: { publishedAfter: new Date(time).toISOString() },
    });
    const videos = await send(key, '/jobs', { videos: [BOTH], publishedAfter: '2026-01-01' });
    expect(videos.body.error.details[0].field).toBe('publishedAfter');
    const refused = await service.get('/channels/@harbourlight/uploads?publishedAfter=2026-02-30', key);
    expect([refused.status, refused.body.error.details[0].message]).toEqual([
      400,
      expect.stringMatching(/^publishedAfter must be a date that exists, such as 2026-09-01/),
    ]);
  });
});
