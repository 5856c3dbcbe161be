import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DocumentDto, FailedDocumentDto } from '../../src/transcripts/formats/documents.js';
import { SATURDAY, LONG } from '../fake-youtube/catalogue/playlists.js';
import { createJob, linesOf } from '../jobs/job-requests.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';
import type { TestService } from '../harness/service.js';
import type { EntryDto } from '../../src/transcripts/dto/transcripts-response.dto.js';

describe('as=documents', () => {
  let steps: SliceSteps;
  let service: TestService;

  beforeAll(async () => {
    steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
    ({ service } = steps);
  });
  afterAll(() => service.close());
  beforeEach(() => steps.reset());
  type Line = DocumentDto | FailedDocumentDto;
  const NDJSON = { Accept: 'application/x-ndjson' };
  const documentsIn = (lines: readonly Line[]): DocumentDto[] =>
    lines.flatMap((line) => ('text' in line ? [line] : []));

  async function documentsOf(path: string, key: string, headers: Record<string, string> = NDJSON): Promise<Line[]> {
    const { status, text, headers: received } = await service.get(path, key, headers);
    expect([status, received['content-type']]).toEqual([200, 'application/x-ndjson; charset=utf-8']);
    return linesOf(text) as Line[];
  }

  /** The whole text of each video, of the response without documents. */
  async function textsOf(path: string, key: string): Promise<Map<string, string>> {
    const { body } = await service.get(path, key);
    const results = body.results as { ok: boolean; videoId: string; transcript: Record<string, { text: string }[]> }[];
    return new Map(
      results
        .filter(({ ok }) => ok)
        .map(({ videoId, transcript }) => [
          videoId,
          Object.values(transcript)
            .flat()
            .map(({ text }) => text.replaceAll(' ', ''))
            .join(''),
        ]),
    );
  }

  function textsIn(lines: readonly Line[]): Map<string, string> {
    const texts = new Map<string, string>();
    for (const { text, metadata } of documentsIn(lines))
      texts.set(metadata.videoId, (texts.get(metadata.videoId) ?? '') + text.replaceAll(' ', ''));
    return texts;
  }

  it.each([
    ['a channel', '/channels/@tidewater/transcripts?limit=5', 'Tidewater Kitchen'],
    ['a playlist', `/playlists/${SATURDAY.id}/transcripts?limit=5`, expect.any(String)],
  ])('has the whole texts of %s, with unique IDs and the channel', async (_of, path, name) => {
    const { key } = await service.organization();
    const lines = await documentsOf(`${path}&as=documents`, key);
    const byId = (texts: Map<string, string>) => [...texts].sort(([one], [other]) => (one < other ? -1 : 1));
    expect(byId(textsIn(lines))).toEqual(byId(await textsOf(path, key)));
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    for (const { metadata } of documentsIn(lines)) expect(metadata).toMatchObject({ channelName: name });
  });

  it('has pieces of the asked length that end at chapters, also without include, and failures as lines', async () => {
    const { key } = await service.organization();
    const body = JSON.stringify({ videos: ['tw-bread___', 'no-such-vid'], chunkSeconds: 600, as: 'documents' });
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...NDJSON };
    const lines = linesOf((await service.request('POST', '/transcripts', headers, body)).text) as Line[];
    expect(documentsIn(lines).map(({ metadata }) => metadata.chapter)).toEqual(['Flour']);
    expect(lines.filter((line) => !('text' in line))).toEqual([
      { id: 'no-such-vid', error: expect.objectContaining({ code: 'video_unavailable' }) },
    ]);
    const chunked = await service.get('/videos/tw-bread___/transcript?chunkSeconds=600', key);
    expect(Object.keys(chunked.body.metadata as object)).not.toContain('chapters');
    const [pieces] = Object.values(chunked.body.transcript as Record<string, { chapter: string }[]>);
    expect(pieces?.map(({ chapter }) => chapter)).toEqual(['Flour']);
  });

  it('is NDJSON for who accepts anything, and 400 for who accepts another type only, before anything is charged', async () => {
    const { key } = await service.organization();
    await documentsOf('/channels/@tidewater/transcripts?limit=1&as=documents', key, { Accept: '*/*' });
    const { used } = (await service.get('/usage', key)).body as { used: number };
    for (const path of ['/channels/@harbourlight/transcripts', '/feed']) {
      const refused = await service.get(`${path}?as=documents`, key, { Accept: 'application/json' });
      expect([refused.status, refused.body.error.details]).toEqual([
        400,
        [{ field: 'as', message: 'as=documents requires the header Accept: application/x-ndjson.' }],
      ]);
    }
    expect((await service.get('/channels/@tidewater/transcripts?as=text', key)).status).toBe(400);
    const without = await service.get('/feed?chunkSeconds=30', key);
    expect(without.body.error.details[0].message).toBe('chunkSeconds requires as=documents.');
    expect((await service.get('/usage', key)).body.used).toBe(used);
  });

  it('has the results of a job, and goes on behind a cursor', async () => {
    const organization = await service.organization();
    const job = await createJob(service, organization.key, { channel: '@tidewater', limit: 3, include: ['chapters'] });
    await steps.finish();
    const path = `/jobs/${job}/results`;
    const lines = await documentsOf(`${path}?as=documents`, organization.key);
    expect(textsIn(lines)).toEqual(await textsOf(path, organization.key));
    expect(documentsIn(lines)[0]?.metadata).toMatchObject({ channelName: 'Tidewater Kitchen' });
    const cursors = lines.flatMap(({ cursor = [] }) => cursor);
    expect(cursors).toHaveLength(3);
    const after = await documentsOf(`${path}?as=documents&after=${cursors[0]}`, organization.key);
    expect(after).toEqual(lines.slice(lines.findIndex(({ cursor }) => cursor === cursors[0]) + 1));
    const shorter = await documentsOf(`${path}?as=documents&chunkSeconds=15&limit=1`, organization.key);
    expect(textsIn(shorter)).toEqual(
      textsIn(lines.slice(0, lines.findIndex(({ cursor }) => cursor === cursors[0]) + 1)),
    );
  });

  it('has the results of a subscription and the feed', async () => {
    const { key } = await service.organization();
    const { id } = await follow(service, key, { channel: '@tidewater', start: 2, chunkSeconds: 600 });
    await steps.finish();
    const own = await documentsOf(`/subscriptions/${id}/results?as=documents`, key);
    expect(textsIn(own)).toEqual(await textsOf(`/subscriptions/${id}/results`, key));
    expect(documentsIn(own).map(({ metadata }) => metadata.chapter)).toContain('Flour');
    expect(await documentsOf('/feed?as=documents', key)).toEqual(own);
    for (const { metadata } of documentsIn(own)) expect(metadata.channelId).toBe('UCtidewater_____________');
  });
});

describe('tracks of the asked origin', () => {
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
});
