import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ContinuationRejectedError } from '../../src/platform/video-platform.js';
import * as others from '../fake-youtube/catalogue/other-channels.js';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import * as playlists from '../fake-youtube/catalogue/playlists.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Adapter, allPages, context, listPlaylist, listUploads, openAdapter, pageOfUploads } from './adapter.js';

let fakeYoutube: FakeYoutube;
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});

beforeEach(async () => {
  fakeYoutube.reset();
  adapter = await openAdapter(fakeYoutube.url);
});

afterEach(async () => {
  await adapter.close();
  await fakeYoutube.requests.until((log) => log.sockets === 0 && log.inFlight === 0);
});

afterAll(() => fakeYoutube.close());

const resolve = (kind: 'handle' | 'custom' | 'user' | 'vanity', name: string) =>
  adapter.platform.resolveChannel(kind === 'handle' ? { kind, handle: name } : { kind, name }, context());
const list = (channelId: string, count = 25) => listUploads(adapter.platform, channelId, count);

describe('resolving a channel', () => {
  it.each([
    ['handle', 'harbourlight', HARBOUR_LIGHT.id],
    ['handle', '港の灯台', others.UNICODE_HANDLE.id],
    ['custom', 'PhareÉtoilé', others.UNICODE_HANDLE.id],
    ['vanity', 'HarbourLightWorkshop', HARBOUR_LIGHT.id],
    ['user', 'oldmooring', others.WITHOUT_HANDLE.id],
  ] as const)('by %s %s', async (kind, name, id) => {
    await expect(resolve(kind, name)).resolves.toBe(id);
  });

  it('an ID needs no request', async () => {
    await expect(adapter.platform.resolveChannel({ kind: 'id', id: HARBOUR_LIGHT.id }, context())).resolves.toBe(
      HARBOUR_LIGHT.id,
    );
    expect(fakeYoutube.requests.total).toBe(0);
  });

  it('an unknown reference is not found', async () => {
    await expect(resolve('handle', 'nobody-here')).rejects.toMatchObject({ code: 'channel_not_found' });
  });
});

describe('a channel’s page', () => {
  const read = (channelId: string) => adapter.platform.readChannel(channelId, context());

  it('has its name and handle', async () => {
    await expect(read(HARBOUR_LIGHT.id)).resolves.toEqual({
      id: HARBOUR_LIGHT.id,
      name: 'Harbour Light Workshop',
      handle: '@harbourlight',
    });
    await expect(read(others.UNICODE_HANDLE.id)).resolves.toMatchObject({ handle: '@港の灯台' });
    await expect(read(others.WITHOUT_HANDLE.id)).resolves.toMatchObject({ handle: null });
    await expect(read(others.FOG_BANK_HUB.id)).resolves.toEqual({
      id: others.FOG_BANK_HUB.id,
      name: 'Fog Banks',
      handle: null,
    });
    await expect(read(others.AGE_GATED.id)).resolves.toMatchObject({ id: others.AGE_GATED.id });
  });

  it('of a terminated or unknown channel is not found', async () => {
    await expect(read(others.TERMINATED.id)).rejects.toMatchObject({ code: 'channel_not_found' });
    await expect(read('UC0000000000000000000000')).rejects.toMatchObject({ code: 'channel_not_found' });
  });
});

describe('a channel’s uploads', () => {
  const ids = (uploads: readonly { videoId: string }[]) => uploads.map(({ videoId }) => videoId);

  it.each(['old', 'new'] as const)('are listed newest first from the %s shape of the page', async (playlistShape) => {
    fakeYoutube.set({ playlistShape });
    const { uploads, complete } = await list(HARBOUR_LIGHT.id);
    expect(complete).toBe(true);
    const named = ids(uploads);
    expect(named).toEqual(
      HARBOUR_LIGHT.uploads()
        .map(({ id }) => id)
        .filter((id) => named.includes(id)),
    );
    expect(uploads.length).toBeGreaterThan(20);
    const shorts = HARBOUR_LIGHT.uploads().filter(({ short }) => short);
    expect(ids(uploads.filter(({ kind }) => kind === 'short')).sort()).toEqual(shorts.map(({ id }) => id).sort());
    expect(uploads.find(({ videoId }) => videoId === 'hl-tidecam_')).toMatchObject({ kind: 'live' });
    expect(uploads.filter(({ publishedAt }) => publishedAt !== null).length).toBeGreaterThanOrEqual(10);
  });

  it('are read until the requested number is reached, and no further', async () => {
    const first = await list(others.FOG_SIGNAL.id, 100);
    expect([first.uploads.length, first.complete]).toEqual([100, false]);
    expect(fakeYoutube.requests.count({ kind: 'browse-continuation' })).toBe(0);
    const all = await list(others.FOG_SIGNAL.id, 1_000);
    expect([all.uploads.length, all.complete]).toEqual([230, true]);
    expect(ids(all.uploads)).toEqual(others.FOG_SIGNAL.uploads().map(({ id }) => id));
    // The channel has no list of Shorts, so what can be one has no kind.
    expect(
      new Set(all.uploads.map(({ kind, durationSeconds }) => ((durationSeconds ?? 0) > 181 ? kind : null))),
    ).toEqual(new Set(all.uploads.map(({ kind }) => kind)));
  });

  it('are empty for a channel without uploads or without the playlist', async () => {
    await expect(list(others.EMPTY_SLIP.id)).resolves.toMatchObject({ uploads: [], complete: true });
    await expect(list(others.DRY_DOCK.id)).resolves.toMatchObject({ uploads: [], complete: true });
    await expect(list(others.FOG_BANK_HUB.id)).resolves.toMatchObject({ uploads: [], complete: true });
  });

  it('of an age-gated channel are listed', async () => {
    expect((await list(others.AGE_GATED.id)).uploads).toHaveLength(3);
  });

  it('of a terminated channel are not found', async () => {
    await expect(list(others.TERMINATED.id)).rejects.toMatchObject({ code: 'channel_not_found' });
  });

  it.each(['500', 'captcha', 'not-json'] as const)(
    'are listed without Shorts and dates when the list of Shorts and the feed fail with %s',
    async (kind) => {
      fakeYoutube.setFaults({ kind, match: { kind: ['browse-shorts', 'feed'] } });
      const { uploads } = await list(HARBOUR_LIGHT.id);
      expect(uploads.length).toBeGreaterThan(20);
      expect(uploads.every(({ publishedAt }) => publishedAt === null)).toBe(true);
      expect(new Set(uploads.map(({ kind }) => kind))).toEqual(new Set([null, 'video', 'live', 'upcoming']));
      expect(adapter.logged.filter(({ event }) => event === 'youtube_side_list_failed')).toHaveLength(2);
    },
  );

  it('do not wait for a list of Shorts that hangs', async () => {
    const hold = fakeYoutube.hold({ kind: 'browse-shorts' });
    expect((await list(others.WITHOUT_HANDLE.id)).uploads).toHaveLength(2);
    hold.release();
  });

  it('a second page that fails is not reported as the end of the list', async () => {
    fakeYoutube.setFaults({ kind: '500', match: { kind: 'browse-continuation' } });
    await expect(list(others.FOG_SIGNAL.id, 200)).rejects.toMatchObject({ code: 'upstream_failure' });
  });

  it('a transient failure is retried', async () => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_RETRIES: 2 });
    fakeYoutube.setFaults({ kind: '500', match: { kind: 'browse-uploads' }, times: 2 });
    expect((await list(HARBOUR_LIGHT.id)).uploads.length).toBeGreaterThan(20);
  });
});

describe('an incomplete page', () => {
  const retrying = async (retries: number) => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_RETRIES: retries });
  };

  it.each(['incomplete', 'unknown-error'] as const)('(%s) is asked for again like a 5xx', async (kind) => {
    await retrying(2);
    fakeYoutube.setFaults({ kind, match: { kind: 'browse-uploads' }, times: 2 });
    expect((await list(others.FOG_SIGNAL.id)).uploads).toHaveLength(100);
    expect(fakeYoutube.requests.count({ kind: 'browse-uploads' })).toBe(3);
    fakeYoutube.setFaults({ kind, match: { kind: 'browse-channel' }, times: 1 });
    await expect(adapter.platform.readChannel(others.FOG_SIGNAL.id, context())).resolves.toMatchObject({
      name: 'Fog Signal Radio',
    });
    // The field mask is not at fault.
    expect(adapter.logged.filter(({ event }) => event === 'youtube_fields_not_honoured')).toEqual([]);
  });

  it('that stays incomplete serves what does not need it, and is a failure otherwise', async () => {
    fakeYoutube.setFaults({ kind: 'incomplete', match: { kind: 'browse-continuation' } });
    expect((await list(others.FOG_SIGNAL.id, 100)).uploads).toHaveLength(100);
    await expect(list(others.FOG_SIGNAL.id, 101)).rejects.toMatchObject({ code: 'upstream_failure' });
  });
});

describe('all uploads of a channel, page by page', () => {
  const ids = (uploads: readonly { videoId: string }[]) => uploads.map(({ videoId }) => videoId);
  const pageOf = (channelId: string, continuation?: string) => pageOfUploads(adapter.platform, channelId, continuation);

  it.each(['old', 'new'] as const)('are read to the end from the %s shape of the page', async (playlistShape) => {
    fakeYoutube.set({ playlistShape });
    const pages = await allPages(others.FOG_SIGNAL.id, pageOf);
    expect(pages.map(({ uploads }) => uploads.length)).toEqual([100, 100, 30]);
    expect(pages.flatMap(({ uploads }) => ids(uploads))).toEqual(others.FOG_SIGNAL.uploads().map(({ id }) => id));
    // The feed and one page of Shorts beside the first page only.
    expect(fakeYoutube.requests.count({ kind: ['feed', 'browse-shorts'] })).toBe(2);
    expect(fakeYoutube.requests.count({ kind: 'browse-continuation' })).toBe(2);
    const [first] = pages;
    expect(first?.uploads.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(15);
  });

  it.each(['old', 'new'] as const)(
    'are incomplete when the list ends early, in the %s shape',
    async (playlistShape) => {
      fakeYoutube.set({ playlistShape, listEndsAt: 200 });
      const pages = await allPages(others.FOG_SIGNAL.id, pageOf);
      expect(pages.map(({ uploads, incomplete }) => [uploads.length, incomplete])).toEqual([
        [100, false],
        [100, true],
      ]);
      fakeYoutube.set({ listEndsAt: null });
      expect((await allPages(others.FOG_SIGNAL.id, pageOf)).map(({ incomplete }) => incomplete)).toEqual(
        Array(3).fill(false),
      );
    },
  );

  it('are incomplete when a page stays so', async () => {
    const { next } = await pageOf(others.FOG_SIGNAL.id);
    fakeYoutube.setFaults({ kind: 'incomplete', match: { kind: 'browse' } });
    const nothing = { uploads: [], next: null, incomplete: true, hidden: null };
    await expect(pageOf(others.FOG_SIGNAL.id, next ?? undefined)).resolves.toEqual({ ...nothing, pages: 1 });
    await expect(pageOf(others.FOG_SIGNAL.id)).resolves.toEqual({ ...nothing, pages: 0 });
  });

  it('end at the page 5,000, since a list that goes on repeats itself', async () => {
    const { next } = await pageOf(others.FOG_SIGNAL.id);
    expect((await pageOf(others.FOG_SIGNAL.id, next?.replace(/^2:/, '4999:')))?.next).toMatch(/^5000:/);
    const last = await pageOf(others.FOG_SIGNAL.id, next?.replace(/^2:/, '5000:'));
    expect([last.uploads.length, last.next, last.incomplete]).toEqual([100, null, true]);
  });

  it('are to be read again from the first page when the platform refuses the continuation', async () => {
    const foreign = Buffer.from('nothing:UUx:100').toString('base64url');
    await expect(pageOf(others.FOG_SIGNAL.id, foreign)).rejects.toThrow(ContinuationRejectedError);
    // The platform refused the token and not the address.
    expect(adapter.logged.filter(({ event }) => event === 'youtube_block_opened')).toEqual([]);
  });

  it.each([
    ['captcha', 'upstream_blocked'],
    ['truncated', 'upstream_failure'],
  ] as const)('%s is %s, never an end or a refused continuation', async (kind, code) => {
    const { next } = await pageOf(others.FOG_SIGNAL.id);
    fakeYoutube.setFaults({ kind, match: { kind: 'browse' } });
    await expect(pageOf(others.FOG_SIGNAL.id)).rejects.toMatchObject({ code });
    await expect(pageOf(others.FOG_SIGNAL.id, next ?? undefined)).rejects.toMatchObject({ code });
  });
});

describe('the newest uploads by themselves', () => {
  const newest = (channelId: string) => adapter.platform.uploads(channelId, undefined, context());

  it.each(['old', 'new'] as const)('are one request, and described they are the first page (%s)', async (shape) => {
    fakeYoutube.set({ playlistShape: shape });
    const page = await newest(others.FOG_SIGNAL.id);
    // Beside the one that starts a session.
    expect(fakeYoutube.requests.list.map(({ kind }) => kind)).toEqual(['visitor', 'browse-uploads']);
    expect(page.uploads).toHaveLength(100);
    expect(page.uploads.every(({ publishedAt }) => publishedAt === null)).toBe(true);
    const { settled, ...described } = await adapter.platform.describe(others.FOG_SIGNAL.id, page, context());
    expect(settled).toBe(true);
    expect(fakeYoutube.requests.count({ kind: ['feed', 'browse-shorts'] })).toBe(2);
    expect(fakeYoutube.requests.total).toBe(4);
    expect(described.uploads.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(15);
    expect(described).toEqual(await pageOfUploads(adapter.platform, others.FOG_SIGNAL.id));
  });

  it('stay as they are when the feed and the Shorts cannot be read, which are not requested again for a while', async () => {
    fakeYoutube.setFaults({ kind: '429', match: { kind: ['feed', 'browse-shorts'] } });
    const page = await newest(HARBOUR_LIGHT.id);
    await expect(pageOfUploads(adapter.platform, HARBOUR_LIGHT.id)).resolves.toEqual(page);
    fakeYoutube.requests.clear();
    await expect(pageOfUploads(adapter.platform, HARBOUR_LIGHT.id)).resolves.toEqual(page);
    expect(fakeYoutube.requests.list.map(({ kind }) => kind)).toEqual(['browse-uploads']);
  });

  it('are none for a channel without uploads, and channel_not_found for one that does not exist', async () => {
    const nothing = { uploads: [], next: null, incomplete: false, hidden: 0, pages: 1 };
    for (const { id } of [others.EMPTY_SLIP, others.DRY_DOCK]) {
      await expect(newest(id)).resolves.toEqual(nothing);
      await expect(pageOfUploads(adapter.platform, id)).resolves.toEqual(nothing);
    }
    await expect(newest('UCnobody________________')).rejects.toMatchObject({ code: 'channel_not_found' });
  });
});

describe('a playlist, page by page', () => {
  const pageOf = (id: string, continuation?: string) => adapter.platform.playlist(id, continuation, context());
  const ids = (videos: readonly { videoId?: string; id?: string }[]) => videos.map(({ videoId, id }) => videoId ?? id);

  it.each(['old', 'new'] as const)(
    'is read to its end in its order, and named with its first page (%s)',
    async (shape) => {
      fakeYoutube.set({ playlistShape: shape });
      const { id, title } = playlists.LONG;
      const pages = await allPages(id, pageOf);
      expect(pages.flatMap(({ uploads }) => ids(uploads))).toEqual(ids(playlists.LONG.videos()));
      expect(pages.length).toBeGreaterThan(1);
      expect(pages).toMatchObject(pages.map((_, index) => ({ playlist: index === 0 ? { id, title } : null })));
      expect(fakeYoutube.requests.count({ kind: 'browse' })).toBe(pages.length);
    },
  );

  it('lists deleted and private videos with their failures', async () => {
    fakeYoutube.set({ playlistShape: 'old' });
    const { uploads } = await listPlaylist(adapter.platform, playlists.WITH_GAPS.id, 25);
    expect((await pageOf(playlists.WITH_GAPS.id)).uploads).toEqual(uploads);
  });

  it('is incomplete when it ends early or with a page that cannot be read, and can be empty', async () => {
    fakeYoutube.set({ listEndsAt: 100 });
    expect((await allPages(playlists.LONG.id, pageOf)).at(-1)).toMatchObject({ next: null, incomplete: true });
    fakeYoutube.set({ listEndsAt: null });
    const { next } = await pageOf(playlists.LONG.id);
    fakeYoutube.setFaults({ kind: 'incomplete', match: { kind: 'browse' } });
    const nothing = { uploads: [], next: null, incomplete: true, hidden: null };
    await expect(pageOf(playlists.LONG.id, next ?? undefined)).resolves.toEqual({
      ...nothing,
      pages: 1,
      playlist: null,
      stated: null,
    });
    const unnamed = { id: playlists.LONG.id, title: null };
    await expect(pageOf(playlists.LONG.id)).resolves.toEqual({
      ...nothing,
      pages: 0,
      playlist: unnamed,
      stated: null,
    });
    fakeYoutube.setFaults();
    const { id, title } = playlists.EMPTY;
    await expect(pageOf(id)).resolves.toMatchObject({
      incomplete: false,
      hidden: 0,
      pages: 1,
      playlist: { id, title },
    });
  });

  it('is to be read again from its first page when the platform refuses the continuation', async () => {
    const foreign = Buffer.from('nothing:UUx:100').toString('base64url');
    for (const continuation of [foreign, `2:${foreign}`, ''])
      await expect(pageOf(playlists.LONG.id, continuation)).rejects.toThrow(ContinuationRejectedError);
  });

  it('is not found when it is private or does not exist, and without a request when the ID names none', async () => {
    await expect(pageOf('WL')).rejects.toMatchObject({ code: 'playlist_not_found' });
    expect(fakeYoutube.requests.total).toBe(0);
    for (const id of [playlists.PRIVATE.id, playlists.playlistId('nothing-of-the-kind')])
      await expect(pageOf(id)).rejects.toMatchObject({ code: 'playlist_not_found' });
  });
});

describe('a playlist', () => {
  const playlist = (id: string, count = 25) => listPlaylist(adapter.platform, id, count);
  const ids = (videos: readonly { videoId?: string; id?: string }[]) => videos.map(({ videoId, id }) => videoId ?? id);

  it.each(['old', 'new'] as const)(
    'is listed in its own order, from the %s shape of the page',
    async (playlistShape) => {
      fakeYoutube.set({ playlistShape });
      const { playlist: read, uploads, complete } = await playlist(playlists.SATURDAY.id);
      expect([read, complete]).toEqual([{ id: playlists.SATURDAY.id, title: playlists.SATURDAY.title }, true]);
      expect(ids(uploads)).toEqual(ids(playlists.SATURDAY.videos()));
      for (const [index, video] of playlists.SATURDAY.videos().entries()) {
        expect(uploads[index]).toMatchObject({
          title: video.title,
          url: `https://www.youtube.com/watch?v=${video.id}`,
          durationSeconds: video.durationSeconds,
          thumbnailUrl: expect.stringContaining(video.id),
          failure: null,
        });
      }
    },
  );

  it('is read until the requested number is reached, and no further', async () => {
    const first = await playlist(playlists.LONG.id, 100);
    expect([first.uploads.length, first.complete]).toEqual([100, false]);
    expect(fakeYoutube.requests.count({ kind: 'browse' })).toBe(1);
    const all = await playlist(playlists.LONG.id, 1_000);
    expect([ids(all.uploads), all.complete]).toEqual([ids(playlists.LONG.videos()), true]);
    expect(all.playlist?.title).toBe(playlists.LONG.title);
  });

  it('lists deleted and private videos, which the platform hides by default', async () => {
    fakeYoutube.set({ playlistShape: 'old' });
    const { uploads } = await playlist(playlists.WITH_GAPS.id);
    expect(uploads.map(({ videoId, failure }) => [videoId, failure])).toEqual([
      ['tw-chowder_', null],
      ['hl-private_', 'video_private'],
      ['tw-bread___', null],
      ['hl-deleted_', 'video_unavailable'],
      ['ps-gone____', 'video_unavailable'],
      ['hl-crew____', 'video_members_only'],
      ['hl-tidecam_', 'video_live'],
      ['tw-pickles_', null],
    ]);
    // Pages of the newer shape do not state all of these: the video itself does.
    fakeYoutube.set({ playlistShape: 'new' });
    expect(ids((await playlist(playlists.WITH_GAPS.id)).uploads)).toEqual(ids(uploads));
  });

  it('without videos is an empty list', async () => {
    for (const playlistShape of ['old', 'new'] as const) {
      fakeYoutube.set({ playlistShape });
      await expect(playlist(playlists.EMPTY.id)).resolves.toEqual({
        playlist: { id: playlists.EMPTY.id, title: playlists.EMPTY.title },
        uploads: [],
        next: null,
        complete: true,
      });
    }
  });

  it('can be an album or a list of a channel’s uploads of one kind', async () => {
    await expect(playlist(playlists.ALBUM.id)).resolves.toMatchObject({ playlist: { title: playlists.ALBUM.title } });
    expect((await playlist(playlists.SHORTS_ONLY.id)).uploads).toHaveLength(2);
    const suffix = HARBOUR_LIGHT.id.slice(2);
    expect((await playlist(`UUSH${suffix}`)).uploads.length).toBeGreaterThan(0);
    expect((await playlist(`UU${suffix}`)).uploads.length).toBeGreaterThan(25);
  });

  it('that is private is distinguished from one that does not exist', async () => {
    const notFound = { code: 'playlist_not_found' };
    await expect(playlist(playlists.PRIVATE.id)).rejects.toMatchObject({
      ...notFound,
      message: expect.stringContaining('is private'),
    });
    for (const id of [playlists.playlistId('nothing-of-the-kind'), 'UUnobody________________']) {
      const reading = playlist(id);
      await expect(reading).rejects.toMatchObject({ ...notFound, message: expect.stringContaining('not found') });
    }
  });

  it.each(['RD', 'RDhl-dinghy__', 'WL', 'LL', 'UCharbourlight__________', '', '../x', 'https://youtu.be/x?list=PLx'])(
    'is not found without a request for %j, which is none',
    async (id) => {
      await expect(playlist(id)).rejects.toMatchObject({ code: 'playlist_not_found' });
      expect(fakeYoutube.requests.total).toBe(0);
    },
  );

  it.each([
    ['empty', 'upstream_blocked'],
    ['not-json', 'upstream_failure'],
  ] as const)('%s is %s, never a short or empty list or a playlist that does not exist', async (kind, code) => {
    fakeYoutube.setFaults({ kind, match: { kind: 'browse-playlist' } });
    await expect(playlist(playlists.SATURDAY.id)).rejects.toMatchObject({ code });
    fakeYoutube.setFaults({ kind, match: { kind: 'browse-continuation' } });
    await expect(playlist(playlists.LONG.id, 200)).rejects.toMatchObject({ code });
  });
});
