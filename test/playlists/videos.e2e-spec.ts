import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LONG, PRIVATE, SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

describe("a playlist's videos", () => {
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
