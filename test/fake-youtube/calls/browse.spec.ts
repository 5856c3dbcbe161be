import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { postInnertube, type Reply, valueAt, valuesOf } from '../requests.js';
import type { Json } from '../json.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube.js';
import { LONG, type Playlist, PLAYLISTS, playlistId, PRIVATE, SATURDAY, WITH_GAPS } from '../catalogue/playlists.js';
import { PLAYLIST_SHAPES, type PlaylistShape } from './playlist-page.js';

const SECTIONS = 'contents.twoColumnBrowseResultsRenderer.tabs[0].tabRenderer.content.sectionListRenderer.contents';
const MAIN = 'VLUUharbourlight__________';
const LONG_UPLOADS = 'VLUUfogsignalradio________';

let fakeYoutube: FakeYoutube;
beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});
beforeEach(() => fakeYoutube.reset());
afterAll(() => fakeYoutube.close());

const browse = (body: object, query = ''): Promise<Reply> => postInnertube(fakeYoutube.url, `browse${query}`, body);

/** The list of a page and the token of the next one, read from where the platform puts them in each shape. */
const READERS: Record<PlaylistShape, (page: Json, first: boolean) => { ids: Json[]; token: Json }> = {
  old: (page, first) => {
    const items = first
      ? valueAt(page, `${SECTIONS}[0].itemSectionRenderer.contents[0].playlistVideoListRenderer.contents`)
      : valueAt(page, 'onResponseReceivedActions[0].appendContinuationItemsAction.continuationItems');
    const renderers = valuesOf(items, 'playlistVideoRenderer');
    const tokens = valuesOf(items, 'continuationItemRenderer').map((item) =>
      valueAt(item, 'continuationEndpoint.continuationCommand.token'),
    );
    return { ids: renderers.map((item) => valueAt(item, 'videoId')), token: tokens[0] };
  },
  new: (page, first) => {
    const items = first
      ? valueAt(page, `${SECTIONS}[0].itemSectionRenderer.contents`)
      : valueAt(page, 'onResponseReceivedActions[0].appendContinuationItemsAction.continuationItems');
    const lockups = valuesOf(items, 'lockupViewModel');
    const tokens = valuesOf(items, 'continuationItemViewModel').map((item) =>
      valueAt(item, 'continuationCommand.innertubeCommand.continuationCommand.token'),
    );
    return { ids: lockups.map((item) => valueAt(item, 'contentId')), token: tokens[0] };
  },
};

async function pagesOf(browseId: string, shape: PlaylistShape): Promise<Json[][]> {
  fakeYoutube.set({ playlistShape: shape });
  const first = READERS[shape]((await browse({ browseId })).json, true);
  const pages = [first.ids];
  for (let token = first.token; typeof token === 'string';) {
    const next = READERS[shape]((await browse({ continuation: token })).json, false);
    pages.push(next.ids);
    token = next.token;
  }
  return pages;
}

describe('a list of uploads', () => {
  it('has pages of 100, each video once, identical in both shapes', async () => {
    const pages = await pagesOf(LONG_UPLOADS, 'old');
    expect(pages.map((page) => page.length)).toEqual([100, 100, 30]);
    expect(new Set(pages.flat()).size).toBe(230);
    expect(await pagesOf(LONG_UPLOADS, 'new')).toEqual(pages);
    expect(await pagesOf(MAIN, 'new')).toEqual(await pagesOf(MAIN, 'old'));
  });

  it.each(PLAYLIST_SHAPES)('is followed by another token that leads to other channels: %s', async (playlistShape) => {
    fakeYoutube.set({ playlistShape });
    const { json } = await browse({ browseId: LONG_UPLOADS });
    const decoy = valueAt(
      json,
      `${SECTIONS}[1].continuationItemRenderer.continuationEndpoint.continuationCommand.token`,
    );
    const recommended = READERS[playlistShape]((await browse({ continuation: decoy })).json, false);
    expect(recommended.ids).toContain('hl-dinghy__');
  });

  it('contains the metadata of an upload in the old shape', async () => {
    fakeYoutube.set({ playlistShape: 'old' });
    const items = valuesOf((await browse({ browseId: MAIN })).json, 'playlistVideoRenderer');
    const byId = (id: string): Json => items.find((item) => valueAt(item, 'videoId') === id);
    expect(byId('hl-dinghy__')).toMatchObject({
      title: { runs: [{ text: 'We rebuilt a 1962 dinghy from the keel up' }] },
      lengthSeconds: '612',
      lengthText: { simpleText: '10:12' },
      isPlayable: true,
      videoInfo: { runs: [{ text: '1.2M views' }, { text: ' • ' }, { text: '17 hours ago' }] },
    });
    expect(valueAt(byId('hl-tidecam_'), 'lengthText')).toBeUndefined();
    expect(valuesOf(byId('hl-tidecam_'), 'style')).toContain('LIVE');
    expect(byId('hl-regatta_')).toMatchObject({ upcomingEventData: { startTime: '1899741600' } });
    expect(valuesOf(byId('hl-crew____'), 'style')).toContain('BADGE_STYLE_TYPE_MEMBERS_ONLY');
    expect(byId('hl-private_')).toMatchObject({ isPlayable: false, title: { runs: [{ text: '[Private video]' }] } });
  });

  it('contains the metadata of an upload in the new shape', async () => {
    const items = valuesOf((await browse({ browseId: MAIN })).json, 'lockupViewModel');
    const byId = (id: string): Json => items.find((item) => valueAt(item, 'contentId') === id);
    const metadata = 'metadata.lockupMetadataViewModel';
    const badge =
      'contentImage.thumbnailViewModel.overlays[0].thumbnailBottomOverlayViewModel.badges[0].thumbnailBadgeViewModel';
    const rows = `${metadata}.metadata.contentMetadataViewModel.metadataRows`;
    const dinghy = byId('hl-dinghy__');
    expect(valueAt(dinghy, 'contentType')).toBe('LOCKUP_CONTENT_TYPE_VIDEO');
    expect(valueAt(dinghy, `${metadata}.title.content`)).toBe('We rebuilt a 1962 dinghy from the keel up');
    expect(valueAt(dinghy, `${badge}.text`)).toBe('10:12');
    expect(valuesOf(valueAt(dinghy, rows), 'content')).toEqual([
      'Harbour Light Workshop',
      '1.2M views',
      '17 hours ago',
    ]);
    expect(valueAt(byId('hl-tidecam_'), `${badge}.badgeStyle`)).toBe('THUMBNAIL_OVERLAY_BADGE_STYLE_LIVE');
    expect(valuesOf(valueAt(byId('hl-regatta_'), rows), 'content')).toContain('Scheduled for 3/14/30, 6:00 PM');
    expect(valuesOf(byId('hl-crew____'), 'badgeStyle')).toContain('BADGE_MEMBERS_ONLY');
    expect(valueAt(byId('hl-deleted_'), `${metadata}.title`)).toBeUndefined();
  });

  it('lists the Shorts alone under UUSH', async () => {
    expect(await pagesOf('VLUUSHharbourlight__________', 'new')).toEqual([['hl-bowline_', 'hl-glue____']]);
  });

  it.each([
    ['no uploads playlist', 'VLUUdrydock_______________', 'The playlist does not exist.'],
    ['no Shorts', 'VLUUSHtidewater_____________', 'The playlist does not exist.'],
    ['no such channel', 'VLUUnobody________________', 'The playlist does not exist.'],
    ['no list of uploads', 'VLPLsomething', 'This playlist type is unviewable.'],
  ])('is an alert with status 200 for a channel with %s', async (_, browseId, text) => {
    const { status, json } = await browse({ browseId });
    expect(status).toBe(200);
    expect(json).toMatchObject({ alerts: [{ alertRenderer: { type: 'ERROR', text: { runs: [{ text }] } } }] });
    expect(json).not.toHaveProperty('contents');
  });

  it('is a page without videos for a channel that has a list and nothing in it', async () => {
    const { json } = await browse({ browseId: 'VLUUemptyslip_____________' });
    expect(json).not.toHaveProperty('alerts');
    expect(valuesOf(json, 'contentId')).toEqual([]);
    expect(valueAt(json, `${SECTIONS}[0].itemSectionRenderer.contents[0]`)).toHaveProperty('messageRenderer');
  });
});

describe('the page of a channel', () => {
  it('contains the metadata of the channel', async () => {
    const { json } = await browse({ browseId: 'UCharbourlight__________' }, '?$fields=metadata,alerts,header');
    expect(valueAt(json, 'metadata.channelMetadataRenderer')).toMatchObject({
      title: 'Harbour Light Workshop',
      externalId: 'UCharbourlight__________',
      vanityChannelUrl: 'http://www.youtube.com/@harbourlight',
    });
    expect(json).not.toHaveProperty('contents');
  });

  it('gives the address by ID for a channel without a handle', async () => {
    const { json } = await browse({ browseId: 'UCunnamedmooring________' });
    expect(valuesOf(json, 'vanityChannelUrl')).toEqual(['http://www.youtube.com/channel/UCunnamedmooring________']);
  });

  it.each(['UCsunkentrawler_________', 'UCdoesnotexist__________'])(
    'is an alert with status 200: %s',
    async (browseId) => {
      const { status, json } = await browse({ browseId });
      expect(status).toBe(200);
      expect(valueAt(json, 'alerts[0].alertRenderer.text.simpleText')).toEqual(expect.any(String));
      expect(json).not.toHaveProperty('metadata');
    },
  );

  it('has no metadata for an age-gated channel, whose uploads can be listed', async () => {
    const { json } = await browse({ browseId: 'UCnightwatchtavern______' });
    expect(json).not.toHaveProperty('metadata');
    expect(valueAt(json, `${SECTIONS}[0].channelAgeGateRenderer.channelTitle`)).toBe('Night Watch Tavern');
    expect((await pagesOf('VLUUnightwatchtavern______', 'new'))[0]).toHaveLength(3);
  });

  it.each([{ browseId: 'DOESNT-EXIST' }, {}, { continuation: 'nonsense' }])('refuses %j with 400', async (body) => {
    const { status, json } = await browse(body);
    expect(status).toBe(400);
    expect(json).toMatchObject({
      error: { code: 400, status: 'INVALID_ARGUMENT', errors: [{ reason: 'badRequest' }] },
    });
  });
});

describe('a playlist', () => {
  const WITH_HIDDEN = { params: 'wgYCCAA%3D' };
  const idsOf = async (playlist: Playlist, shape: PlaylistShape, more: object = {}): Promise<Json[]> => {
    fakeYoutube.set({ playlistShape: shape });
    return READERS[shape]((await browse({ browseId: `VL${playlist.id}`, ...more })).json, true).ids;
  };

  it('has IDs of the platform’s form, each once', () => {
    const ids = PLAYLISTS.map(({ id }) => id);
    expect(ids.filter((id) => !/^(?:PL[\w-]{32}|OLAK5uy_[\w-]{33})$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each(PLAYLIST_SHAPES)('lists its videos in its own order, with its title: %s', async (shape) => {
    expect(await idsOf(SATURDAY, shape)).toEqual(SATURDAY.videos().map(({ id }) => id));
    const { json } = await browse({ browseId: `VL${SATURDAY.id}` });
    expect(valueAt(json, 'metadata.playlistMetadataRenderer.title')).toBe(SATURDAY.title);
    expect(json).not.toHaveProperty('alerts');
  });

  it.each(PLAYLIST_SHAPES)('hides deleted and private videos unless they are requested: %s', async (shape) => {
    const all = WITH_GAPS.videos().map(({ id }) => id);
    const shown = await idsOf(WITH_GAPS, shape);
    expect(all.filter((id) => !shown.includes(id))).toEqual(['hl-private_', 'hl-deleted_', 'ps-gone____']);
    const { json } = await browse({ browseId: `VL${WITH_GAPS.id}` });
    expect(valuesOf(json, 'simpleText')).toContain('3 unavailable videos are hidden');
    expect(await idsOf(WITH_GAPS, shape, WITH_HIDDEN)).toEqual(all);
  });

  it('has pages of 100', async () => {
    const pages = await pagesOf(`VL${LONG.id}`, 'new');
    expect(pages.map((page) => page.length)).toEqual([100, 100, 30]);
    expect(pages.flat()).toEqual(LONG.videos().map(({ id }) => id));
  });

  it.each([
    [PRIVATE.id, 'This playlist is private.'],
    [playlistId('nothing-of-the-kind'), 'The playlist does not exist.'],
    ['RDhl-dinghy__', 'This playlist type is unviewable.'],
  ])('that cannot be viewed is an alert: %s', async (id, text) => {
    const { json } = await browse({ browseId: `VL${id}` });
    expect(json).toMatchObject({ alerts: [{ alertRenderer: { type: 'ERROR', text: { runs: [{ text }] } } }] });
  });
});
