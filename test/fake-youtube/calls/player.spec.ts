import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { request, postInnertube, textAt, type Reply, valueAt } from '../requests.js';
import type { Client } from '../catalogue/model.js';
import type { Json } from '../json.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube.js';

const TRACKS = 'captions.playerCaptionsTracklistRenderer.captionTracks';

let fakeYoutube: FakeYoutube;
beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});
beforeEach(() => fakeYoutube.reset());
afterAll(() => fakeYoutube.close());

const player = (videoId: string, client: Client = 'VISIONOS', query = ''): Promise<Reply> =>
  postInnertube(fakeYoutube.url, `player${query}`, { videoId, contentCheckOk: true, racyCheckOk: true }, client);

const reel = (videoId: string): Promise<Reply> =>
  postInnertube(
    fakeYoutube.url,
    'reel/reel_item_watch',
    { playerRequest: { videoId }, disablePlayerResponse: false },
    'ANDROID',
  );

/** The platform's URLs, rewritten to the fake YouTube as the service does. */
const captionUrls = (json: Json): string[] => {
  const tracks = valueAt(json, TRACKS) as readonly Json[];
  return tracks.map((track) => textAt(track, 'baseUrl').replace('https://www.youtube.com', fakeYoutube.url));
};

describe('a player response', () => {
  it('lists the caption tracks as the platform does', async () => {
    const { json } = await player('hl-dinghy__');
    expect(valueAt(json, TRACKS)).toMatchObject([
      { languageCode: 'en', name: { runs: [{ text: 'English' }] }, vssId: '.en' },
      { languageCode: 'en', name: { runs: [{ text: 'English (auto-generated)' }] }, vssId: 'a.en', kind: 'asr' },
    ]);
    expect(valueAt(json, `${TRACKS}[0].baseUrl`)).toMatch(
      /^https:\/\/www\.youtube\.com\/api\/timedtext\?v=hl-dinghy__&/,
    );
    expect(valueAt(json, 'playabilityStatus.status')).toBe('OK');
    expect(valueAt(json, 'videoDetails')).toMatchObject({
      videoId: 'hl-dinghy__',
      lengthSeconds: '612',
      viewCount: '1214330',
    });
    expect(json).not.toHaveProperty('microformat');
  });

  it('names the original language’s track as the default one', async () => {
    const { json } = await player('hl-keeper__');
    expect(valueAt(json, 'captions.playerCaptionsTracklistRenderer.audioTracks[0].defaultCaptionTrackIndex')).toBe(1);
  });

  it.each([
    ['hl-private_', { status: 'LOGIN_REQUIRED', reason: 'This video is private' }, false],
    ['hl-wreck___', { status: 'LOGIN_REQUIRED', desktopLegacyAgeGateReason: 1 }, true],
    ['hl-crew____', { status: 'UNPLAYABLE', reason: expect.stringContaining("this channel's members") }, true],
    ['hl-abroad__', { status: 'UNPLAYABLE', reason: expect.stringContaining('in your country') }, true],
    ['hl-shanty__', { status: 'UNPLAYABLE', reason: expect.stringContaining('Music Premium') }, true],
    ['hl-deleted_', { status: 'ERROR', reason: 'This video is unavailable' }, false],
    ['nowhere____', { status: 'ERROR', reason: 'This video is unavailable' }, false],
    ['hl-regatta_', { status: 'LIVE_STREAM_OFFLINE' }, true],
    ['hl-silent__', { status: 'OK' }, true],
    ['hl-tidecam_', { status: 'OK' }, true],
  ])('reports why there is no text: %s', async (videoId, playabilityStatus, details) => {
    const { status, json } = await player(videoId);
    expect(status).toBe(200);
    expect(json).toMatchObject({ playabilityStatus });
    expect(json).not.toHaveProperty('captions');
    expect(valueAt(json, 'videoDetails') !== undefined).toBe(details);
  });

  it('marks a live video, whose length is 0', async () => {
    expect((await player('hl-tidecam_')).json).toMatchObject({ videoDetails: { isLive: true, lengthSeconds: '0' } });
  });

  it('can be refused to one client and given to another', async () => {
    expect((await player('hl-oars____', 'VISIONOS')).json).toMatchObject({
      playabilityStatus: { status: 'UNPLAYABLE' },
    });
    expect(captionUrls((await player('hl-oars____', 'ANDROID')).json)).toHaveLength(1);
  });

  it('has the exact dates for WEB only', async () => {
    const { json } = await player('hl-bowline_', 'WEB', '?$fields=microformat');
    expect(json).toMatchObject({
      microformat: { playerMicroformatRenderer: { publishDate: '2026-10-30T04:00:00-08:00', isShortsEligible: true } },
    });
    expect(Object.keys(json as object)).toEqual(['microformat']);
  });

  it('is cut by $fields, unless the client ignores it', async () => {
    const fields = '?$fields=playabilityStatus/status';
    expect((await player('hl-dinghy__', 'VISIONOS', fields)).json).toEqual({ playabilityStatus: { status: 'OK' } });
    fakeYoutube.set({ fieldsIgnored: ['VISIONOS'] });
    expect((await player('hl-dinghy__', 'VISIONOS', fields)).text.length).toBeGreaterThan(50_000);
  });

  it('is inside playerResponse in the reel response, and absent for a deleted video', async () => {
    const { json } = await reel('hl-dinghy__');
    expect(valueAt(json, `playerResponse.${TRACKS}[0].baseUrl`)).toContain('fmt=srv3');
    expect((await reel('hl-deleted_')).json).toEqual({});
    expect((await reel('hl-private_')).json).toMatchObject({
      playerResponse: { playabilityStatus: { status: 'LOGIN_REQUIRED' } },
    });
  });
});

describe('a caption URL', () => {
  it.each([
    ['', 'text/xml; charset=UTF-8', '<?xml version="1.0" encoding="utf-8" ?><transcript>'],
    ['&fmt=json3', 'application/json; charset=UTF-8', '{"wireMagic":"pb3"'],
    ['&fmt=srv3', 'text/xml; charset=UTF-8', '<?xml version="1.0" encoding="utf-8" ?><timedtext format="3">'],
  ])('responds in the requested format: %j', async (format, contentType, start) => {
    const [url] = captionUrls((await player('hl-foghorn_')).json);
    const { headers, text } = await request(`${url}${format}`);
    expect(headers.get('content-type')).toBe(contentType);
    expect(text.startsWith(start)).toBe(true);
    expect(text).toContain('港の灯台へようこそ');
  });

  it('indicates for each client that it needs a token, and responds with an empty body without one', async () => {
    const [refused = ''] = captionUrls((await player('hl-planks__', 'VISIONOS')).json);
    expect(refused).toContain('exp=xpe');
    expect(await request(refused)).toMatchObject({ status: 200, text: '' });
    const [given = ''] = captionUrls((await player('hl-planks__', 'ANDROID')).json);
    expect(given).not.toContain('exp=');
    expect((await request(given)).text).toContain('holes that somebody has closed');
  });

  it('can require a token per track, with or without indicating it', async () => {
    expect(captionUrls((await player('hl-mixed___')).json).map((url) => url.includes('exp=xpe'))).toEqual([
      true,
      false,
    ]);
    const [silent = ''] = captionUrls((await player('hl-void____', 'ANDROID_VR')).json);
    expect(silent).not.toContain('exp=');
    expect(await request(silent)).toMatchObject({ status: 200, text: '' });
  });

  it('is refused when a signed part of it was changed', async () => {
    const [url = ''] = captionUrls((await player('hl-dinghy__')).json);
    expect((await request(url.replace('hl-dinghy__', 'hl-island__'))).status).toBe(404);
  });
});

describe('the feed', () => {
  it('dates the newest 15 public uploads exactly', async () => {
    const { headers, text } = await request(`${fakeYoutube.url}/feeds/videos.xml?channel_id=UCharbourlight__________`);
    expect(headers.get('content-type')).toBe('text/xml; charset=UTF-8');
    const ids = [...text.matchAll(/<yt:videoId>([^<]+)</g)].map(([, id]) => id);
    expect(ids).toHaveLength(15);
    expect(ids).not.toContain('hl-crew____');
    expect(text).toContain('<published>2026-10-31T19:00:00+00:00</published>');
  });

  it('is 404 for an unknown channel', async () => {
    expect((await request(`${fakeYoutube.url}/feeds/videos.xml?channel_id=UCsunkentrawler_________`)).status).toBe(404);
  });
});

describe('resolving a URL', () => {
  it.each(['@harbourlight', 'c/HarbourLightWorkshop', 'user/harbourlightboats', 'HarbourLightWorkshop'])(
    'finds %s',
    async (path) => {
      const { json } = await postInnertube(fakeYoutube.url, 'navigation/resolve_url', {
        url: `https://www.youtube.com/${path}`,
      });
      expect(valueAt(json, 'endpoint.browseEndpoint.browseId')).toBe('UCharbourlight__________');
      expect(valueAt(json, 'responseContext.visitorData')).toEqual(expect.any(String));
    },
  );

  it.each(['@港の灯台', '@%E6%B8%AF%E3%81%AE%E7%81%AF%E5%8F%B0'])('finds a Unicode handle: %s', async (path) => {
    const { json } = await postInnertube(fakeYoutube.url, 'navigation/resolve_url', {
      url: `https://www.youtube.com/${path}`,
    });
    expect(valueAt(json, 'endpoint.browseEndpoint.browseId')).toBe('UCminatonotoudai________');
  });

  it('responds with 404 for a channel that does not exist', async () => {
    const { status, json } = await postInnertube(fakeYoutube.url, 'navigation/resolve_url', {
      url: 'https://www.youtube.com/@nobody',
    });
    expect(status).toBe(404);
    expect(json).toMatchObject({ error: { code: 404, status: 'NOT_FOUND', errors: [{ reason: 'notFound' }] } });
  });

  it('returns no channel for the URL of a video or of another site', async () => {
    for (const url of ['https://www.youtube.com/watch?v=hl-dinghy__', 'https://example.com/@harbourlight']) {
      const { json } = await postInnertube(fakeYoutube.url, 'navigation/resolve_url', { url });
      expect(valueAt(json, 'endpoint.browseEndpoint')).toBeUndefined();
    }
  });

  it('issues a new visitor each time, a long one to the apps', async () => {
    const issued = async (client: Client): Promise<string> =>
      textAt((await postInnertube(fakeYoutube.url, 'visitor_id', {}, client)).json, 'responseContext.visitorData');
    const [one, two, web] = [await issued('VISIONOS'), await issued('VISIONOS'), await issued('WEB')];
    expect(one).not.toBe(two);
    expect(one.length).toBeGreaterThan(550);
    expect(web).toMatch(/^.{20,120}$/);
  });
});
