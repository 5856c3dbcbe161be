import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import * as others from '../fake-youtube/catalogue/other-channels.js';
import { FOG_SIGNAL, TIDEWATER } from '../fake-youtube/catalogue/other-channels.js';
import { WITH_GAPS } from '../fake-youtube/catalogue/playlists.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import {
  type Adapter,
  allPages,
  context,
  end,
  listPlaylist,
  openAdapter,
  pageOfUploads,
  text,
  listUploads,
} from './adapter.js';
import { videoId } from '../fake-youtube/catalogue/model.js';

describe('published videos', () => {
  // The fake YouTube as a caller sees it after something was published: every place says the same.

  const { TIDEWATER } = others;
  let fakeYoutube: FakeYoutube;
  let adapter: Adapter;

  beforeAll(async () => {
    fakeYoutube = await startFakeYoutube();
  });

  beforeEach(async () => {
    fakeYoutube.reset();
    adapter = await openAdapter(fakeYoutube.url);
  });
  afterEach(() => adapter.close());
  afterAll(() => fakeYoutube.close());

  const newest = async (channelId = TIDEWATER.id) => {
    const page = await pageOfUploads(adapter.platform, channelId);
    return page.uploads.map(({ videoId, kind, failure, publishedAt }) => ({ videoId, kind, failure, publishedAt }));
  };

  const read = async (videoId: string | undefined) => {
    // A reading is remembered for a moment: each is that of an adapter of its own.
    const reader = await openAdapter(fakeYoutube.url);
    try {
      return end(await reader.platform.readVideo(videoId ?? '', [], context()));
    } finally {
      await reader.close();
    }
  };

  describe.each(['old', 'new'] as const)('a published video, in the %s shape of the list', (playlistShape) => {
    beforeEach(() => fakeYoutube.set({ playlistShape }));

    it('is on top, with its date, and has its text', async () => {
      const before = await newest();
      const publishedAt = '2026-11-20T09:30:00Z';
      const [videoId] = fakeYoutube.publish({ channel: '@tidewater', publishedAt: new Date(publishedAt) });
      expect(await newest()).toEqual([{ videoId, kind: 'video', failure: null, publishedAt }, ...before]);
      expect(await read(videoId)).toBe('ok');
    });

    it('has its age by the clock, in the list too', async () => {
      const agesMs = [0, 30 * 60_000, 5 * 3_600_000, 60 * 24 * 3_600_000];
      const publish = (ageMs: number) =>
        fakeYoutube.publish({ channel: '@tidewater', publishedAt: new Date(Date.now() - ageMs) });
      for (const ageMs of agesMs.toReversed()) publish(ageMs);
      fakeYoutube.publish({ channel: '@tidewater', as: 'past-live', below: 4, publishedAt: new Date(0) });
      const { uploads } = await pageOfUploads(adapter.platform, TIDEWATER.id);
      expect(uploads.slice(0, 5).map(({ publishedText }) => publishedText)).toEqual([
        expect.stringMatching(/^\d{1,2} seconds? ago$/),
        '30 minutes ago',
        '5 hours ago',
        '2 months ago',
        expect.stringMatching(/^Streamed \d\d years ago$/),
      ]);
    });

    it('can be a Short, which the list of Shorts has from then on', async () => {
      fakeYoutube.publish({ channel: '@tidewater' });
      const [videoId] = fakeYoutube.publish({ channel: '@tidewater', as: 'short' });
      expect(await newest()).toMatchObject([{ videoId, kind: 'short' }, {}, {}, {}, {}, {}, {}]);
    });

    it('can be announced, then live, then have ended, and get its captions at last', async () => {
      const [videoId = ''] = fakeYoutube.publish({ channel: '@tidewater', as: 'premiere' });
      const become = async (as: 'live' | 'just-ended' | 'past-live') => {
        fakeYoutube.changeVideos({ videoIds: [videoId], as });
        return [(await newest())[0], await read(videoId)];
      };
      expect((await newest())[0]).toMatchObject({ videoId, kind: 'upcoming', failure: 'video_not_live_yet' });
      expect(await read(videoId)).toBe('video_not_live_yet');
      expect(await become('live')).toMatchObject([{ videoId, kind: 'live', failure: 'video_live' }, 'video_live']);
      expect(await become('just-ended')).toMatchObject([{ videoId, failure: null }, 'video_live']);
      expect(await become('past-live')).toMatchObject([{ videoId, failure: null }, 'ok']);
    });

    it('can be without captions until they arrive', async () => {
      const [videoId = ''] = fakeYoutube.publish({ channel: '@tidewater', as: 'uncaptioned' });
      expect(await read(videoId)).toBe('transcript_unavailable');
      fakeYoutube.changeVideos({ videoIds: [videoId], as: 'video' });
      expect(await read(videoId)).toBe('ok');
    });

    it('can be for members', async () => {
      const [videoId] = fakeYoutube.publish({ channel: '@tidewater', as: 'members-only' });
      expect((await newest())[0]).toMatchObject({ videoId, failure: 'video_members_only' });
      expect(await read(videoId)).toBe('video_members_only');
    });

    it('that is private appears at its place in the list when it becomes public', async () => {
      const before = await newest();
      const [videoId = ''] = fakeYoutube.publish({ channel: '@tidewater', as: 'private', below: 2 });
      expect(await newest()).toEqual(before);
      expect(await read(videoId)).toBe('video_private');
      fakeYoutube.changeVideos({ videoIds: [videoId], as: 'video' });
      expect((await newest()).findIndex((upload) => upload.videoId === videoId)).toBe(2);
    });
  });

  describe('many published videos', () => {
    it('fill several pages, and the header states them', async () => {
      const channel = TIDEWATER.id;
      const videoIds = fakeYoutube.publish({ channel, count: 250 });
      const pages = await allPages(channel, (id, next) => pageOfUploads(adapter.platform, id, next));
      const listed = pages.flatMap(({ uploads }) => uploads.map(({ videoId }) => videoId));
      expect(listed).toEqual([...videoIds, ...TIDEWATER.uploads().map(({ id }) => id)]);
      expect(pages.map(({ incomplete }) => incomplete)).toEqual([false, false, false]);
      fakeYoutube.changeVideos({ videoIds: videoIds.slice(0, 200), deleted: true });
      expect(await newest()).toHaveLength(55);
    });

    it('can be on a generated channel and on one that had no list', async () => {
      const channelId = await adapter.platform.resolveChannel(
        { kind: 'handle', handle: '25-videos-no-907' },
        context(),
      );
      const [videoId] = fakeYoutube.publish({ channel: channelId });
      expect((await newest(channelId)).map((upload) => upload.videoId)).toHaveLength(26);
      expect((await newest(channelId))[0]).toMatchObject({ videoId });
      const [first] = fakeYoutube.publish({ channel: '@drydock' });
      expect(await newest(others.DRY_DOCK.id)).toMatchObject([{ videoId: first }]);
    });
  });

  describe('a video of the catalogue', () => {
    it('that is deleted is gone from its channel, and stays in playlists as deleted', async () => {
      const [chowder = ''] = TIDEWATER.uploads().map(({ id }) => id);
      fakeYoutube.changeVideos({ videoIds: [chowder], deleted: true });
      expect((await newest()).map(({ videoId }) => videoId)).not.toContain(chowder);
      expect(await read(chowder)).toBe('video_unavailable');
      fakeYoutube.set({ playlistShape: 'old' });
      const { uploads } = await listPlaylist(adapter.platform, WITH_GAPS.id, 25);
      expect(uploads[0]).toMatchObject({ videoId: chowder, failure: 'video_unavailable' });
    });
  });

  describe('a changed channel', () => {
    const resolve = (handle: string) => adapter.platform.resolveChannel({ kind: 'handle', handle }, context());

    it('has its new name and handle, and not the former', async () => {
      fakeYoutube.changeChannel({ channel: '@harbourlight', name: 'Pier Light', handle: '@pierlight' });
      await expect(adapter.platform.readChannel(HARBOUR_LIGHT.id, context())).resolves.toEqual({
        id: HARBOUR_LIGHT.id,
        name: 'Pier Light',
        handle: '@pierlight',
      });
      await expect(resolve('PierLight')).resolves.toBe(HARBOUR_LIGHT.id);
      await expect(resolve('harbourlight')).rejects.toMatchObject({ code: 'channel_not_found' });
      // Further changes find it by its new handle.
      expect(fakeYoutube.publish({ channel: '@pierlight' })).toHaveLength(1);
    });

    it('that was terminated has no page, list or videos', async () => {
      const [chowder] = TIDEWATER.uploads().map(({ id }) => id);
      fakeYoutube.changeChannel({ channel: '@tidewater', terminated: true });
      const notFound = { code: 'channel_not_found' };
      await expect(adapter.platform.readChannel(TIDEWATER.id, context())).rejects.toMatchObject(notFound);
      await expect(newest()).rejects.toMatchObject(notFound);
      expect(await read(chowder)).toBe('video_unavailable');
      fakeYoutube.changeChannel({ channel: TIDEWATER.id, terminated: false });
      expect(await read(chowder)).toBe('ok');
    });
  });
});

describe('rare forms', () => {
  let fakeYoutube: FakeYoutube;
  let adapter: Adapter;

  beforeAll(async () => {
    fakeYoutube = await startFakeYoutube();
    adapter = await openAdapter(fakeYoutube.url);
  });
  beforeEach(() => fakeYoutube.reset());

  afterAll(async () => {
    await adapter.close();
    await fakeYoutube.close();
  });

  const read = (name: string, languages: string[] = []) =>
    adapter.platform.readVideo(videoId(name), languages, context());

  describe('the text', () => {
    it.each([
      ['of the full track and not of the forced one', 'ss-forced', /^two balls and a cone the harbour/],
      ['of a forced track when there is no other', 'ss-signs', /^SIGN: closed$/],
      ['of a track that comes as srv3 whatever is requested', 'ss-srv3', /^Short, long, short\. Salt & smoke > fog\.$/],
      ['has no entities, tags, time stamps or blank segments', 'ss-entities', /^Café — H2O Wait here$/],
      ['comes from the client that does not get a notice to update', 'ss-update', /^Two balls/],
    ])('%s', async (_case, name, expected) => {
      expect(text(await read(name), 'en')).toMatch(expected);
    });

    it('is found by the current and by the old code of its language, under the code of the platform', async () => {
      for (const language of ['he', 'iw']) expect(text(await read('ss-old-code', [language]), 'iw')).toMatch(/^שני/);
    });

    it('as srv3 costs one request', async () => {
      await read('ss-srv3');
      expect(fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(1);
    });
  });

  describe('without a text', () => {
    it.each([
      ['a track without text', 'ss-blank', 'transcript_unavailable'],
      ['a stream that has just ended', 'ss-ended', 'video_live'],
      ['an interstitial screen for members', 'ss-crew', 'video_members_only'],
      ['an interstitial screen for an age', 'ss-night', 'video_age_restricted'],
    ])('%s is reported as such', async (_case, name, code) => {
      expect(end(await read(name))).toBe(code);
    });
  });
});

describe('the version of WEB', () => {
  /** That of this release, and the one that the fake YouTube states. */
  const RELEASE = '2.20260805.01.00';
  const CURRENT = '2.20261120.01.00';
  let fakeYoutube: FakeYoutube;
  let adapter: Adapter;

  beforeAll(async () => {
    fakeYoutube = await startFakeYoutube();
  });

  beforeEach(async () => {
    fakeYoutube.reset();
    adapter = await openAdapter(fakeYoutube.url);
  });
  afterEach(() => adapter.close());
  afterAll(() => fakeYoutube.close());
  const list = async (channelId: string) => (await listUploads(adapter.platform, channelId, 25)).uploads.length;
  const resolve = () => adapter.platform.resolveChannel({ kind: 'handle', handle: 'harbourlight' }, context());
  const events = (name: string) => adapter.logged.filter(({ event }) => event === name);

  const versions = () => [
    ...new Set(
      fakeYoutube.requests.list.flatMap(({ kind, clientVersion }) =>
        kind.startsWith('browse') ? [clientVersion] : [],
      ),
    ),
  ];

  const retired = async (): Promise<unknown> => {
    const metric = await adapter.registry.getSingleMetric('ct_upstream_client_retired')?.get();
    return metric?.values.find(({ labels }) => labels['client'] === 'WEB')?.value;
  };

  describe('a version of WEB that the platform does not serve any more', () => {
    beforeEach(() => fakeYoutube.set({ webVersionsRetired: [RELEASE] }));

    it('is replaced by the current one, for lists, names and channels, without a restart', async () => {
      expect(await list(FOG_SIGNAL.id)).toBe(100);
      expect(await resolve()).toBe(HARBOUR_LIGHT.id);
      await expect(adapter.platform.readChannel(HARBOUR_LIGHT.id, context())).resolves.toMatchObject({
        handle: '@harbourlight',
      });
      expect(events('youtube_client_retired')).toEqual([
        { event: 'youtube_client_retired', client: 'WEB', replacedBy: CURRENT },
      ]);
      expect(await retired()).toBe(1);
      fakeYoutube.requests.clear();
      expect(await list(HARBOUR_LIGHT.id)).toBeGreaterThan(20);
      expect(versions()).toEqual([CURRENT]);
      expect(events('youtube_block_opened')).toEqual([]);
    });

    it('is found out once by all lists that are refused at a time, with three controls', async () => {
      const read = await Promise.all([FOG_SIGNAL, HARBOUR_LIGHT, TIDEWATER].map(({ id }) => list(id)));
      expect(read.every((count) => count > 0)).toBe(true);
      expect(fakeYoutube.requests.count({ kind: 'client-version' })).toBe(1);
      // Two with the retired version, of which one without its headers, and one with the current version.
      expect(fakeYoutube.requests.count({ kind: 'resolve' })).toBe(3);
      expect(events('youtube_client_retired')).toHaveLength(1);
    });

    it('ends no list of a job: its continuation is taken', async () => {
      fakeYoutube.set({ webVersionsRetired: [] });
      const { next } = await adapter.platform.uploads(FOG_SIGNAL.id, undefined, context());
      fakeYoutube.set({ webVersionsRetired: [RELEASE] });
      expect((await adapter.platform.uploads(FOG_SIGNAL.id, next ?? '', context())).uploads).toHaveLength(100);
    });

    it.each(['500', '429', 'not-json', 'hang'] as const)(
      'is read without the headers of the version when the current one is not stated (%s)',
      async (kind) => {
        await adapter.close();
        adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_TIMEOUT_SECONDS: 1 });
        fakeYoutube.setFaults({ kind, match: { kind: 'client-version' } });
        expect(await list(FOG_SIGNAL.id)).toBe(100);
        expect(events('youtube_client_retired')).toMatchObject([{ replacedBy: 'no version headers' }]);
        expect(await retired()).toBe(1);
        expect(events('youtube_block_opened')).toEqual([]);
      },
    );

    it.each(['2.1', 'WEB', '2.99991231.01.00', '2.20261399.00.00'])('is not replaced by %j', async (webVersion) => {
      fakeYoutube.set({ webVersion });
      expect(await list(FOG_SIGNAL.id)).toBe(100);
      expect(versions()).toEqual([RELEASE]);
    });

    it('is not replaced by one that is not served either', async () => {
      fakeYoutube.set({ webVersion: '2.20261101.01.00', webVersionsRetired: [RELEASE, '2.20261101.01.00'] });
      expect(await list(FOG_SIGNAL.id)).toBe(100);
      expect(events('youtube_client_retired')).toMatchObject([{ replacedBy: 'no version headers' }]);
    });

    it('is not sent when the operator has set another one', async () => {
      await adapter.close();
      const overrides = { WEB: { clientVersion: '2.20261001.01.00' } };
      adapter = await openAdapter(fakeYoutube.url, { YOUTUBE_CLIENT_OVERRIDES: overrides });
      expect(await list(FOG_SIGNAL.id)).toBe(100);
      expect(versions()).toEqual(['2.20261001.01.00']);
      expect([fakeYoutube.requests.count({ kind: 'client-version' }), await retired()]).toEqual([0, 0]);
      fakeYoutube.set({ webVersionsRetired: ['2.20261001.01.00'] });
      expect(await list(HARBOUR_LIGHT.id)).toBeGreaterThan(20);
      expect(await retired()).toBe(1);
    });
  });

  describe('a 400', () => {
    it('of an ID that is none concerns that ID, and costs a control', async () => {
      await expect(adapter.platform.readChannel('nothing', context())).rejects.toMatchObject({
        code: 'channel_not_found',
      });
      expect(fakeYoutube.requests.count({ kind: 'resolve' })).toBe(1);
      expect([fakeYoutube.requests.count({ kind: 'client-version' }), await retired()]).toEqual([0, 0]);
    });
  });
});
