import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Environment } from '../../src/config/environment.js';
import type { Upload } from '../../src/domain/transcript.js';
import { ContinuationRejectedError } from '../../src/platform/video-platform.js';
import * as others from '../fake-youtube/catalogue/other-channels.js';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import * as playlists from '../fake-youtube/catalogue/playlists.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { readExposition, sumOf } from '../metrics/exposition.js';
import { asArray, at } from '../../src/platform/youtube/response-parsing.js';
import { startService } from '../service.js';
import { type Adapter, allPages, context, end, openAdapter } from './adapter.js';

const KEY = 'fake-youtube-api-key';
const INNERTUBE = { kind: ['resolve', 'browse'] } as const;

let fakeYoutube: FakeYoutube;
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});

beforeEach(async () => {
  fakeYoutube.reset();
  adapter = await openAdapter(fakeYoutube.url, { YOUTUBE_API_KEY: KEY });
});

afterEach(async () => {
  // Whatever happened, the key is in no log line, metric or URL.
  expect(JSON.stringify(adapter.logged)).not.toContain(KEY);
  expect(await adapter.registry.metrics()).not.toContain(KEY);
  expect(fakeYoutube.requests.list.map(({ path }) => path).join()).not.toContain(KEY);
  await adapter.close();
  await fakeYoutube.requests.until((log) => log.sockets === 0 && log.inFlight === 0);
});

afterAll(() => fakeYoutube.close());

async function reopen(choices: Partial<Environment>): Promise<void> {
  await adapter.close();
  adapter = await openAdapter(fakeYoutube.url, { YOUTUBE_API_KEY: KEY, ...choices });
}

const resolve = (kind: 'handle' | 'custom' | 'user' | 'vanity', name: string) =>
  adapter.platform.resolveChannel(kind === 'handle' ? { kind, handle: name } : { kind, name }, context());
const read = (channelId: string) => adapter.platform.readChannel(channelId, context());
const list = (channelId: string, count = 25) => adapter.platform.listUploads(channelId, count, context());
const pageOf = (channelId: string, continuation?: string) =>
  adapter.platform.listUploadsPage(channelId, continuation, context());
const listPlaylist = (playlistId: string, count = 25) => adapter.platform.listPlaylist(playlistId, count, context());
const events = (event: string) => adapter.logged.filter((line) => line['event'] === event);
const innertubeRequests = () => fakeYoutube.requests.count({ kind: [...INNERTUBE.kind] });
const apiRequests = () => fakeYoutube.requests.count({ kind: 'api' });

async function metric(name: string, labels: Record<string, string> = {}): Promise<number> {
  return sumOf(readExposition(await adapter.registry.metrics()), name, labels);
}

describe('the Data API as the first source', () => {
  it('gives a channel, and a hundred uploads with the list of Shorts for five units, without a request to InnerTube', async () => {
    const id = await resolve('handle', 'fogsignalradio');
    await expect(read(id)).resolves.toEqual({ id, name: others.FOG_SIGNAL.name, handle: '@fogsignalradio' });
    const unitsBefore = fakeYoutube.dataApi.units;
    const { uploads, complete } = await list(id, 100);
    expect([uploads.length, complete]).toEqual([100, false]);
    // Two pages, two lists of details, and the list of Shorts, because some uploads are short enough to be one.
    expect(fakeYoutube.dataApi.units - unitsBefore).toBe(5);
    expect(await metric('ct_data_api_units_total')).toBe(fakeYoutube.dataApi.units);
    expect(innertubeRequests()).toBe(0);
  });

  it.each([
    ['user', 'oldmooring', others.WITHOUT_HANDLE.id],
    ['handle', '港の灯台', others.UNICODE_HANDLE.id],
  ] as const)('resolves the %s %s', async (kind, name, id) => {
    await expect(resolve(kind, name)).resolves.toBe(id);
    expect(innertubeRequests()).toBe(0);
  });

  it('lists the same uploads as InnerTube, with the same kinds and failures, and exact dates and counts', async () => {
    const byApi = (await list(HARBOUR_LIGHT.id)).uploads;
    await reopen({ YOUTUBE_API_KEY: undefined });
    const byPages = (await list(HARBOUR_LIGHT.id)).uploads;
    expect(byApi.map(({ videoId }) => videoId)).toEqual(byPages.map(({ videoId }) => videoId));
    // Only the API lists which videos are private or deleted, and only the pages which are for members.
    const hidden = new Set(
      [...byApi, ...byPages].flatMap(({ videoId, failure }) =>
        failure?.match(/private|unavailable|members/) ? [videoId] : [],
      ),
    );
    expect(hidden.size).toBe(3);
    const shown = (uploads: readonly Upload[]) => uploads.filter(({ videoId }) => !hidden.has(videoId));
    const compared = ({ videoId, kind, failure }: Upload) => [videoId, kind, failure];
    expect(shown(byApi).map(compared)).toEqual(shown(byPages).map(compared));
    expect(byApi.filter(({ kind }) => kind === 'short').length).toBeGreaterThan(0);
    const catalogue = new Map(HARBOUR_LIGHT.uploads().map((video) => [video.id, video]));
    for (const upload of shown(byApi).filter(({ failure }) => failure === null)) {
      const video = catalogue.get(upload.videoId);
      expect(upload).toMatchObject({
        title: video?.title,
        publishedAt: video?.publishedAt.toISOString().replace('.000Z', 'Z'),
        publishedText: null,
        durationSeconds: video?.durationSeconds,
        viewCount: video?.viewCount,
        thumbnailUrl: expect.stringContaining(upload.videoId),
      });
    }
  });

  it('lists all uploads page by page, with exact dates, for a unit a page', async () => {
    const pages = await allPages(others.FOG_SIGNAL.id, pageOf);
    expect(pages.map(({ uploads }) => uploads.length)).toEqual([50, 50, 50, 50, 30]);
    const uploads = pages.flatMap((page) => page.uploads);
    expect(uploads.map(({ videoId }) => videoId)).toEqual(others.FOG_SIGNAL.uploads().map(({ id }) => id));
    expect(uploads.every(({ title, publishedAt }) => title !== null && publishedAt !== null)).toBe(true);
    expect(fakeYoutube.dataApi.units).toBe(5);
    expect(innertubeRequests()).toBe(0);
  });

  it('dates every video exactly without a further request', async () => {
    await reopen({ PUBLISH_DATES: 'exact' });
    const { uploads } = await list(HARBOUR_LIGHT.id);
    const upload = uploads.find(({ videoId }) => videoId === 'hl-island__');
    const outcome = await adapter.platform.readVideo('hl-island__', [], context(), upload?.publishedAt);
    expect([end(outcome), outcome.details.publishedAt]).toEqual(['ok', upload?.publishedAt]);
    expect(upload?.publishedAt).toMatch(/Z$/);
    expect(fakeYoutube.requests.count({ kind: 'player', client: 'WEB' })).toBe(0);
  });

  it('lists a playlist with its title, and private and deleted videos as such, for three units', async () => {
    const { playlist, uploads, complete } = await listPlaylist(playlists.WITH_GAPS.id);
    expect([playlist.title, complete]).toEqual([playlists.WITH_GAPS.title, true]);
    expect(uploads.map(({ videoId, failure }) => [videoId, failure])).toEqual([
      ['tw-chowder_', null],
      ['hl-private_', 'video_private'],
      ['tw-bread___', null],
      ['hl-deleted_', 'video_unavailable'],
      ['ps-gone____', 'video_unavailable'],
      // Only the video's page tells that it is for members.
      ['hl-crew____', null],
      ['hl-tidecam_', 'video_live'],
      ['tw-pickles_', null],
    ]);
    expect(fakeYoutube.dataApi.units).toBe(3);
    expect(await metric('ct_data_api_units_total', { method: 'playlists' })).toBe(1);
    expect(innertubeRequests()).toBe(0);
  });

  it('lists a long playlist in its order', async () => {
    const { uploads, complete } = await listPlaylist(playlists.LONG.id, 120);
    expect([uploads.length, complete]).toEqual([150, false]);
    expect(uploads.map(({ videoId }) => videoId)).toEqual(
      playlists.LONG.videos()
        .slice(0, 150)
        .map(({ id }) => id),
    );
    expect(uploads.every(({ kind, publishedAt }) => kind !== 'short' && publishedAt !== null)).toBe(true);
  });

  it('lists a channel without uploads as empty', async () => {
    for (const { id } of [others.EMPTY_SLIP, others.DRY_DOCK]) {
      await expect(list(id)).resolves.toEqual({ uploads: [], complete: true });
      await expect(pageOf(id)).resolves.toEqual({ uploads: [], next: null });
    }
    expect(innertubeRequests()).toBe(0);
  });

  it('is used while InnerTube refuses every request', async () => {
    fakeYoutube.setFaults({ kind: 'captcha', match: { kind: [...INNERTUBE.kind] } });
    // Names of the older form need InnerTube; they open its circuit breaker.
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await expect(resolve('custom', name)).rejects.toMatchObject({ code: 'upstream_blocked' });
    expect(events('youtube_block_opened')).toHaveLength(1);
    expect((await list(HARBOUR_LIGHT.id)).uploads.length).toBeGreaterThan(20);
  });
});

describe('what the Data API does not state', () => {
  it('a playlist that is private, empty or does not exist is what InnerTube says', async () => {
    const notFound = { code: 'playlist_not_found' };
    const isPrivate = { ...notFound, message: expect.stringContaining('is private') };
    await expect(listPlaylist(playlists.PRIVATE.id)).rejects.toMatchObject(isPrivate);
    await expect(listPlaylist(playlists.playlistId('nothing'))).rejects.toMatchObject(notFound);
    await expect(listPlaylist(playlists.EMPTY.id)).resolves.toMatchObject({ uploads: [], complete: true });
    fakeYoutube.setFaults({ kind: 'captcha', match: { kind: [...INNERTUBE.kind] } });
    for (const { id } of [playlists.PRIVATE, playlists.EMPTY])
      await expect(listPlaylist(id)).rejects.toMatchObject({ code: 'upstream_blocked' });
    // The API refuses the private playlist, not the key.
    expect(events('youtube_data_api_rested')).toEqual([]);
  });

  it('the title of a list that the platform makes is InnerTube’s', async () => {
    const { playlist, uploads } = await listPlaylist(`UUSH${HARBOUR_LIGHT.id.slice(2)}`);
    expect([playlist.title, uploads.map(({ kind }) => kind)]).toEqual(['Videos', ['short', 'short']]);
    expect(await metric('ct_data_api_fallbacks_total', { reason: 'doubtful' })).toBe(1);
  });

  it('an unknown or terminated ID is not found only when InnerTube agrees', async () => {
    const ids = [others.TERMINATED.id, 'UC0000000000000000000000'];
    for (const id of ids) {
      await expect(read(id)).rejects.toMatchObject({ code: 'channel_not_found' });
      await expect(list(id)).rejects.toMatchObject({ code: 'channel_not_found' });
      await expect(pageOf(id)).rejects.toMatchObject({ code: 'channel_not_found' });
    }
    expect(await metric('ct_data_api_fallbacks_total', { reason: 'doubtful' })).toBe(6);
    fakeYoutube.setFaults({ kind: 'captcha', match: { kind: [...INNERTUBE.kind] } });
    for (const id of ids) await expect(read(id)).rejects.toMatchObject({ code: 'upstream_blocked' });
  });

  it('an unknown handle is not found only when InnerTube agrees', async () => {
    await expect(resolve('handle', 'nobody-here')).rejects.toMatchObject({ code: 'channel_not_found' });
    expect(await metric('ct_data_api_fallbacks_total', { reason: 'unknown_name' })).toBe(1);
    fakeYoutube.setFaults({ kind: 'captcha', match: { kind: 'resolve' } });
    await expect(resolve('handle', 'nobody-here')).rejects.toMatchObject({ code: 'upstream_blocked' });
  });

  it.each([
    ['custom', 'PhareÉtoilé', others.UNICODE_HANDLE.id],
    ['vanity', 'HarbourLightWorkshop', HARBOUR_LIGHT.id],
  ] as const)('the %s name %s is resolved by InnerTube', async (kind, name, id) => {
    await expect(resolve(kind, name)).resolves.toBe(id);
    expect(apiRequests()).toBe(0);
    expect(await metric('ct_data_api_fallbacks_total', { reason: 'unsupported' })).toBe(1);
  });
});

describe('when the Data API does not answer', () => {
  it('InnerTube takes over after the quota is exceeded, in the same call and without further requests to the API', async () => {
    fakeYoutube.set({ apiUnitsMax: 1 });
    const { uploads } = await list(HARBOUR_LIGHT.id);
    expect(uploads.filter(({ kind }) => kind === 'short').length).toBeGreaterThan(0);
    const sent = apiRequests();
    await expect(read(HARBOUR_LIGHT.id)).resolves.toMatchObject({ handle: '@harbourlight' });
    expect(apiRequests()).toBe(sent);
    expect(await metric('ct_data_api_resting', { reason: 'quota' })).toBe(1);
    expect(await metric('ct_data_api_fallbacks_total', { reason: 'quota' })).toBeGreaterThan(0);
    expect(events('youtube_data_api_rested')).toEqual([
      expect.objectContaining({ reason: 'quota', detail: 'quotaExceeded' }),
    ]);
    // Until midnight in Pacific time.
    expect(Number(events('youtube_data_api_rested')[0]?.['restSeconds'])).toBeLessThanOrEqual(25 * 3_600);
  });

  it('a list that is read page by page starts again with InnerTube, and goes on with it while the key is back', async () => {
    const { next } = await pageOf(others.FOG_SIGNAL.id);
    fakeYoutube.set({ apiUnitsMax: 1 });
    await expect(pageOf(others.FOG_SIGNAL.id, next ?? undefined)).rejects.toThrow(ContinuationRejectedError);
    const pages = await allPages(others.FOG_SIGNAL.id, pageOf);
    expect(pages.map(({ uploads }) => uploads.length)).toEqual([100, 100, 30]);
    fakeYoutube.set({ apiUnitsMax: 10_000 });
    await reopen({});
    const [first] = pages;
    expect((await pageOf(others.FOG_SIGNAL.id, first?.next ?? undefined)).uploads).toHaveLength(100);
    await reopen({ YOUTUBE_API_KEY: undefined });
    await expect(pageOf(others.FOG_SIGNAL.id, next ?? undefined)).rejects.toThrow(ContinuationRejectedError);
  });

  it('the API’s refusal of a page of a list leads to its first page', async () => {
    await expect(pageOf(others.FOG_SIGNAL.id, 'data-api:2:not-a-token')).rejects.toThrow(ContinuationRejectedError);
    await expect(pageOf('UC0000000000000000000000', 'data-api:2:NTA')).rejects.toThrow(ContinuationRejectedError);
  });

  it('the list stays without the kinds of short videos when the quota ends before the list of Shorts', async () => {
    fakeYoutube.set({ apiUnitsMax: 2 });
    const { uploads } = await list(HARBOUR_LIGHT.id);
    expect(innertubeRequests()).toBe(0);
    expect(uploads.some(({ kind }) => kind === 'short')).toBe(false);
    for (const { kind, durationSeconds } of uploads) if (kind === 'video') expect(durationSeconds).toBeGreaterThan(180);
    expect(events('youtube_side_list_failed')).toHaveLength(1);
  });

  it('an invalid key is reported once, and everything works without it', async () => {
    fakeYoutube.set({ apiKey: 'another-key' });
    await expect(resolve('handle', 'harbourlight')).resolves.toBe(HARBOUR_LIGHT.id);
    expect((await list(HARBOUR_LIGHT.id)).uploads.length).toBeGreaterThan(20);
    expect(events('youtube_data_api_rested')).toEqual([
      expect.objectContaining({ reason: 'refused', detail: 'API_KEY_INVALID', restSeconds: 600 }),
    ]);
    expect(apiRequests()).toBe(1);
  });

  it.each(['429', '500', 'reset', 'cut', 'empty', 'not-json', 'truncated', 'captcha', 'redirect'] as const)(
    '%s leads to InnerTube, never to a wrong answer',
    async (kind) => {
      fakeYoutube.setFaults({ kind, match: { kind: 'api' }, location: '/youtubei/v1/browse' });
      await expect(resolve('handle', 'harbourlight')).resolves.toBe(HARBOUR_LIGHT.id);
      await expect(read(HARBOUR_LIGHT.id)).resolves.toMatchObject({ name: HARBOUR_LIGHT.name });
      await expect(read('UC0000000000000000000000')).rejects.toMatchObject({ code: 'channel_not_found' });
      expect((await list(HARBOUR_LIGHT.id)).uploads.length).toBeGreaterThan(20);
      expect(events('youtube_data_api_rested')).toHaveLength(1);
      // The key is in the header of requests to the API only, also after a redirect.
      const withKey = fakeYoutube.requests.list.filter(({ headers }) => headers['x-goog-api-key'] !== undefined);
      expect(withKey.every(({ path }) => path.startsWith('/youtube/v3/'))).toBe(true);
    },
  );

  it('neither source answers: the error is that of InnerTube', async () => {
    fakeYoutube.setFaults({ kind: '500', match: { kind: 'api' } }, { kind: 'captcha' });
    await expect(list(HARBOUR_LIGHT.id)).rejects.toMatchObject({ code: 'upstream_blocked' });
  });

  it('a caller that disconnects ends the lookup', async () => {
    const hold = fakeYoutube.hold({ kind: 'api' });
    const leaving = new AbortController();
    const reading = adapter.platform.readChannel(HARBOUR_LIGHT.id, context({ signal: leaving.signal }));
    await fakeYoutube.requests.until((log) => log.count({ kind: 'api' }) === 1);
    leaving.abort(new Error('left'));
    await expect(reading).rejects.toThrow('left');
    hold.release();
    expect(innertubeRequests()).toBe(0);
    expect(events('youtube_data_api_rested')).toEqual([]);
  });
});

describe('the service with a key', () => {
  it('returns an exact date for every entry without a request for it, also from the cache', async () => {
    const service = await startService({ environment: { YOUTUBE_API_KEY: KEY, PUBLISH_DATES: 'exact' } });
    try {
      const { key } = await service.organization();
      for (const cached of [false, true]) {
        const { body } = await service.get('/channels/@fogsignalradio/transcripts?limit=20', key);
        const dates = asArray(at(body, 'results')).map((entry) => at(entry, 'metadata', 'publishedAt'));
        expect(dates).toHaveLength(20);
        expect(dates.every((date) => typeof date === 'string' && date.endsWith('Z'))).toBe(true);
        expect(at(body, 'results', 0, 'cached')).toBe(cached);
      }
      expect(service.fakeYoutube.requests.count({ kind: 'player', client: 'WEB' })).toBe(0);
    } finally {
      await service.close();
    }
  });
});

describe('without a key', () => {
  it('no request is sent to the Data API', async () => {
    await reopen({ YOUTUBE_API_KEY: undefined });
    await list(HARBOUR_LIGHT.id);
    expect(apiRequests()).toBe(0);
    expect(await metric('ct_data_api_fallbacks_total')).toBe(0);
  });
});
