import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  EMPTY,
  LONG,
  PRIVATE,
  playlistId,
  SATURDAY,
  SHORTS_ONLY,
  WITH_GAPS,
} from '../fake-youtube/catalogue/playlists.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';

describe('transcripts', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: { UPSTREAM_RETRIES: 0, RATE_LIMIT_PER_MINUTE: 0 } });
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  const idsOf = ({ body }: ServiceResponse): string[] =>
    body.results.map(({ videoId }: { videoId: string }) => videoId) as string[];

  const read = (reference: string, key: string, query = ''): Promise<ServiceResponse> =>
    service.get(`/playlists/${reference}/transcripts${query}`, key);

  describe('the transcripts of a playlist', () => {
    it("come in the playlist's order, with its ID and title", async () => {
      const { key } = await service.organization();
      const response = await read(SATURDAY.id, key);
      expect(response.status).toBe(200);
      expect(Object.keys(response.body as object)).toEqual(['playlist', 'results', 'summary']);
      expect(response.body.playlist).toEqual({ id: SATURDAY.id, title: 'A Saturday in the yard' });
      expect(idsOf(response)).toEqual(SATURDAY.videos().map(({ id }) => id));
      expect(response.body.summary).toEqual({ total: 5, succeeded: 5, failed: 0, cached: 0, fetched: 5 });
      expect((await read(SATURDAY.id, key)).body.summary).toMatchObject({ cached: 5, fetched: 0 });
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 5, reserved: 0 });
      expect(response.body.results[1].metadata.channel.name).toBe('Harbour Light Workshop');
    });

    it.each([
      `https%3A%2F%2Fwww.youtube.com%2Fplaylist%3Flist%3D${SATURDAY.id}`,
      `https://www.youtube.com/watch?v=tw-bread___&list=${SATURDAY.id}&index=2`,
      `https:/music.youtube.com/watch/?list=${SATURDAY.id}`,
    ])('are found by %s', async (reference) => {
      const { key } = await service.organization();
      const response = await read(reference, key, '?limit=1');
      expect([response.status, response.body.playlist.id]).toEqual([200, SATURDAY.id]);
      expect(idsOf(response)).toEqual(['tw-bread___']);
    });

    it('are those of the first `limit` videos, at most 100', async () => {
      const { key } = await service.organization();
      const response = await read(LONG.id, key, '?limit=500');
      const first = LONG.videos().slice(0, 100);
      expect(idsOf(response)).toEqual(first.map(({ id }) => id));
      expect((await read(LONG.id, key)).body.summary.total).toBe(25);
    });

    it('have failed entries for deleted and private videos, which cost nothing', async () => {
      const { key } = await service.organization();
      const { results, summary } = (await read(WITH_GAPS.id, key)).body;
      const codes = results.map(({ error }: { error?: { code: string } }) => error?.code ?? 'ok') as string[];
      expect(codes).toEqual([
        'ok',
        'video_private',
        'ok',
        'video_unavailable',
        'video_unavailable',
        'video_members_only',
        'video_live',
        'ok',
      ]);
      expect(summary).toMatchObject({ succeeded: 3, failed: 5 });
      expect((await service.get('/usage', key)).body).toMatchObject({ used: summary.fetched, reserved: 0 });
    });

    it('of an empty playlist are none, and of uploads and Shorts lists like any other', async () => {
      const { key } = await service.organization();
      const empty = await read(EMPTY.id, key);
      expect([empty.status, empty.body.results]).toEqual([200, []]);
      const uploads = await read('UUtidewater_____________', key);
      expect(idsOf(uploads)).toEqual(['tw-chowder_', 'tw-bread___', 'tw-mackerel', 'tw-pickles_', 'tw-tea_____']);
      expect(idsOf(await read(SHORTS_ONLY.id, key))).toEqual(SHORTS_ONLY.videos().map(({ id }) => id));
    });

    it('are of some kinds by their lengths: what is longer than a Short is a video', async () => {
      const { key } = await service.organization();
      const isLong = ({ durationSeconds }: { durationSeconds: number }) => durationSeconds > 181;
      const shorter = SATURDAY.videos().filter((video) => !isLong(video));
      expect(idsOf(await read(SATURDAY.id, key, '?kinds=short'))).toEqual(shorter.map(({ id }) => id));
      expect(idsOf(await read(SATURDAY.id, key, '?kinds=video'))).toHaveLength(5);
      expect(SATURDAY.videos().filter(isLong).length).toBeGreaterThan(0);
      expect(idsOf(await read(SHORTS_ONLY.id, key, '?kinds=short'))).toHaveLength(2);
      expect(idsOf(await read(SHORTS_ONLY.id, key, '?kinds=live,upcoming'))).toEqual([]);
    });

    it('are streamed as NDJSON that begins with the playlist', async () => {
      const { key } = await service.organization();
      const path = `/playlists/${SATURDAY.id}/transcripts?limit=2`;
      const response = await service.get(path, key, { Accept: 'application/x-ndjson' });
      const lines = response.text.trim().split('\n');
      expect(JSON.parse(lines[0] ?? '')).toEqual({
        type: 'playlist',
        playlist: { id: SATURDAY.id, title: 'A Saturday in the yard' },
      });
      expect(lines).toHaveLength(4);
    });

    it('require the Pro plan', async () => {
      const { key } = await service.organization({ plan: 'free' });
      const response = await read(SATURDAY.id, key);
      expect([response.status, response.body.error.feature]).toEqual([403, 'bulk_transcripts']);
    });
  });

  describe('a playlist that cannot be read', () => {
    it.each([
      [PRIVATE.id, /private/],
      [playlistId('unknown'), /Playlist not found/],
    ])('%s is 404', async (id, message) => {
      const { key } = await service.organization();
      const response = await read(id, key);
      expect([response.status, response.body.error.code]).toEqual([404, 'playlist_not_found']);
      expect(response.body.error.message).toMatch(message);
    });

    it.each(['PL', `https://example.com/playlist?list=${SATURDAY.id}`, 'https://www.youtube.com/watch?v=tw-bread___'])(
      '%s, which is none, is 404 without an outgoing request',
      async (reference) => {
        const { key } = await service.organization();
        const response = await read(reference, key);
        expect(response.status).toBe(404);
        expect(service.fakeYoutube.requests.total).toBe(0);
      },
    );

    it.each(['RDtw-bread___', 'WL', 'https://www.youtube.com/watch?v=tw-bread___&list=RDtw-bread___'])(
      '%s, a mix or a personal list, is 400 without an outgoing request',
      async (reference) => {
        const { key } = await service.organization();
        const response = await read(reference, key);
        expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
        expect(response.body.error.details[0].field).toBe('id');
        expect(service.fakeYoutube.requests.total).toBe(0);
      },
    );

    it('is read without since, because its order is not by date: 400', async () => {
      const { key } = await service.organization();
      const response = await read(SATURDAY.id, key, '?since=tw-bread___');
      expect([response.status, response.body.error.details[0].field]).toEqual([400, 'since']);
    });
  });
});

describe("a playlist's videos", () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  it('are listed in its order, on every plan, without reading a video and without quota', async () => {
    const { key } = await service.organization({ plan: 'free', monthlyLimit: 0 });
    const { status, body } = await service.get(`/playlists/${SATURDAY.id}/videos`, key);
    expect([status, Object.keys(body as object)]).toEqual([200, ['playlist', 'videos']]);
    expect(body.playlist).toEqual({ id: SATURDAY.id, title: 'A Saturday in the yard' });
    const ids = body.videos.map(({ videoId }: { videoId: string }) => videoId) as string[];
    expect(ids).toEqual(SATURDAY.videos().map(({ id }) => id));
    expect(Object.keys(body.videos[0] as object)).toEqual(['videoId', 'metadata']);
    expect(body.videos[0].metadata).toMatchObject({ title: expect.any(String), captionTracks: null, channel: null });
    expect(service.fakeYoutube.requests.count({ kind: ['player', 'reel', 'timedtext'] })).toBe(0);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
    expect((await service.get(`/playlists/${LONG.id}/videos?limit=500`, key)).body.videos).toHaveLength(100);
    const url = `/playlists/https://www.youtube.com/playlist?list=${SATURDAY.id}`;
    expect((await service.get(`${url.replace('?list=', '%3Flist%3D')}/videos?limit=1`, key)).body.videos).toHaveLength(
      1,
    );
  });

  it.each([
    [`/playlists/${PRIVATE.id}/videos`, 404],
    ['/playlists/PLno-such-playlist/videos', 404],
    [`/playlists/${SATURDAY.id}/videos?since=hl-dinghy__`, 400],
    [`/playlists/${SATURDAY.id}/videos?publishedAfter=soon`, 400],
  ])('%s is %i', async (path, status) => {
    const { key } = await service.organization();
    expect((await service.get(path, key)).status).toBe(status);
  });

  it('are those of the MCP tool', async () => {
    const { key } = await service.organization();
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const call = { name: 'list_playlist_videos', arguments: { playlist: SATURDAY.id, limit: 2 } };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call };
    const accept = { Accept: 'application/json, text/event-stream' };
    const { text } = await service.request('POST', '/mcp', { ...headers, ...accept }, JSON.stringify(message));
    expect(text).toContain(`"playlistId":"${SATURDAY.id}"`);
    for (const { id } of SATURDAY.videos().slice(0, 2)) expect(text).toContain(id);
  });
});
