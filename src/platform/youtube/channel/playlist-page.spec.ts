import { describe, expect, it } from '@jest/globals';
import {
  alertPage,
  continuedPage,
  executorToken,
  lockup,
  newToken,
  oldPage,
  oldToken,
  playlistPage,
  playlistVideo,
  reelItem,
  shortsLockup,
} from '../../../../test/pages/youtube-pages.js';
import type { Upload } from '../../../domain/transcript.js';
import { IncompletePageError, UnreadableError } from '../response-parsing.js';
import { hasContents, type ParsedListPage, readPlaylistPage } from './playlist-page.js';

const A = 'aaaaaaaaaaa';
const B = 'bbbbbbbbb-_';

function read(page: unknown): ParsedListPage & { kind: 'page' } {
  const result = readPlaylistPage(page);
  if (result.kind !== 'page') throw new Error(`not a page but ${result.kind}`);
  return result;
}

const idsOf = (page: unknown) => read(page).uploads.map(({ videoId }) => videoId);
const onlyUpload = (item: unknown): Upload | undefined => read(oldPage([item])).uploads[0];

const VIDEO: Upload = {
  videoId: A,
  title: `Video ${A}`,
  url: `https://www.youtube.com/watch?v=${A}`,
  publishedAt: null,
  publishedText: '4 months ago',
  durationSeconds: 193,
  viewCount: 1200,
  thumbnailUrl: `https://i.ytimg.com/vi/${A}/hqdefault.jpg?sqp=large`,
  kind: 'video',
  failure: null,
};

describe.each([
  ['playlistVideoRenderer', 'old', playlistVideo, (items: unknown[]) => oldPage(items), oldToken],
  ['lockupViewModel', 'new', (id: string) => lockup(id), (items: unknown[]) => playlistPage(items), newToken],
] as const)('a list of %s', (_, shape, item, page, token) => {
  it('returns every displayed field', () => {
    expect(read(page([item(A)]))).toEqual({
      kind: 'page',
      title: null,
      uploads: [VIDEO],
      next: null,
      stated: null,
      unread: 'nothing',
      shape,
    });
  });

  it("preserves the list's order and reads the list's continuation token, not the one for recommendations", () => {
    const result = read(page([item(B), item(A), token('next')]));
    expect(result.uploads.map(({ videoId }) => videoId)).toEqual([B, A]);
    expect(result.next).toBe('next');
  });

  it('lists a repeated upload once', () => {
    expect(idsOf(page([item(A), item(B), item(A)]))).toEqual([A, B]);
  });

  it('returns the others beside unreadable items', () => {
    expect(idsOf(page([item('not-an-id'), item(A), { adSlotRenderer: {} }, {}, null]))).toEqual([A]);
  });

  it('is unreadable when none of its items can be read', () => {
    expect(() => readPlaylistPage(page([item('not-an-id'), token('next')]))).toThrow(UnreadableError);
    expect(() => readPlaylistPage(continuedPage([{ newShapeViewModel: {} }]))).toThrow(UnreadableError);
  });

  it('reads the same entries from a continuation page', () => {
    for (const how of ['append', 'reload'] as const) {
      expect(read(continuedPage([item(A), token('next')], how))).toEqual({
        kind: 'page',
        title: null,
        uploads: [VIDEO],
        next: 'next',
        stated: null,
        unread: 'nothing',
        shape,
      });
    }
  });
});

describe('a page of uploads', () => {
  it('finds a token among the commands of an executor', () => {
    expect(read(oldPage([playlistVideo(A), executorToken('next')])).next).toBe('next');
  });

  it('finds a token behind a button', () => {
    const command = { continuationCommand: { token: 'next' } };
    const more = { continuationItemRenderer: { trigger: 'x', button: { buttonRenderer: { text: {}, command } } } };
    expect(read(oldPage([playlistVideo(A), more])).next).toBe('next');
  });

  it.each([
    ['nothing', [lockup(A), lockup(B)]],
    ['nothing', [lockup(A), { messageRenderer: { text: { simpleText: 'x' } } }]],
    ['entry', [lockup('not-an-id'), lockup(A)]],
    ['end', [lockup(A), { continuationSlotViewModel: {} }]],
    ['end', [lockup(A), {}]],
    ['end', [lockup(A), { continuationItemRenderer: { ghostCards: {} } }]],
  ])('states what it has that cannot be read: %s', (unread, items) => {
    expect(read(playlistPage(items))).toMatchObject({ next: null, unread });
    expect(read(continuedPage(items))).toMatchObject({ next: null, unread });
  });

  it.each([
    ['890 videos', [], 890],
    ['1,480 videos', [], 1480],
    ['1 video', [], 1],
    ['12 videos', ['2 unavailable videos are hidden'], 10],
    ['12 videos', ['Something else', '1 unavailable video is hidden'], 11],
    ['50 videos', ['Unavailable videos are hidden'], 45],
    ['1.2K videos', [], null],
    ['No videos', ['2 unavailable videos are hidden'], 0],
    ['Videos', [], null],
  ])('states how many videos there are: %s %j', (text, notices, stated) => {
    const [number = '', ...rest] = text.split(/(?= )/);
    const alerts = notices.map((notice) => ({
      alertWithButtonRenderer: { type: 'INFO', text: { simpleText: notice } },
    }));
    const numVideosText = { runs: [{ text: number }, { text: rest.join('') }] };
    const parts = [{ text: { content: 'A playlist' } }, { text: { content: text } }];
    const metadata = { contentMetadataViewModel: { metadataRows: [{}, { metadataParts: parts }] } };
    const stats = [{ simpleText: '38 views' }, { simpleText: text }];
    for (const fields of [
      { header: { playlistHeaderRenderer: { numVideosText } } },
      { header: { pageHeaderRenderer: { content: { pageHeaderViewModel: { metadata } } } } },
      { sidebar: { playlistSidebarRenderer: { items: [{ playlistSidebarPrimaryInfoRenderer: { stats } }] } } },
    ])
      expect(read(playlistPage([lockup(A)], { ...fields, alerts })).stated).toEqual(stated);
  });

  it('does not read a reloaded header as the list', () => {
    const slot = 'RELOAD_CONTINUATION_SLOT_HEADER';
    const header = { reloadContinuationItemsCommand: { slot, continuationItems: [{ playlistHeaderRenderer: {} }] } };
    const { onResponseReceivedActions: actions } = continuedPage([playlistVideo(A)], 'reload');
    expect(read({ onResponseReceivedActions: [header, ...actions] })).toMatchObject({
      uploads: [VIDEO],
    });
    expect(() => readPlaylistPage({ onResponseReceivedActions: [header] })).toThrow(UnreadableError);
  });

  it('reads a continuation page under onResponseReceivedEndpoints in the same way', () => {
    for (const how of ['append', 'reload'] as const) {
      const { onResponseReceivedActions, ...page } = continuedPage([playlistVideo(A), newToken('next')], how);
      expect(read({ ...page, onResponseReceivedEndpoints: onResponseReceivedActions })).toMatchObject({
        uploads: [VIDEO],
        next: 'next',
      });
    }
  });

  it('ends when a continuation page has no items', () => {
    expect(read(continuedPage([]))).toMatchObject({ uploads: [], next: null, shape: 'none' });
    expect(
      read({ onResponseReceivedActions: [{ appendContinuationItemsAction: { targetId: 'UU' } }] }).uploads,
    ).toEqual([]);
  });

  it('is the first section with a list: a notice stands before it, and recommendations after it', () => {
    const sections = (...lists: unknown[][]) => ({
      contents: {
        twoColumnBrowseResultsRenderer: {
          tabs: [
            {
              tabRenderer: {
                content: {
                  sectionListRenderer: { contents: lists.map((contents) => ({ itemSectionRenderer: { contents } })) },
                },
              },
            },
          ],
        },
      },
    });
    const notice = [{ clarificationRenderer: { contentTitle: { simpleText: 'Context' } } }];
    expect(idsOf(sections(notice, [lockup(A)], [lockup(B)]))).toEqual([A]);
    expect(idsOf(sections([{}], [{ playlistVideoListRenderer: { contents: [playlistVideo(A)] } }]))).toEqual([A]);
    const nested = (...ids: string[]) => ({
      playlistVideoListRenderer: { contents: ids.map((id) => playlistVideo(id)) },
    });
    expect(idsOf(sections([nested(A), nested(B)]))).toEqual([A]);
    expect(idsOf(sections([nested(A), lockup(B)]))).toEqual([A]);
    const empty = [{ messageRenderer: { text: { simpleText: 'No videos in this playlist yet' } } }];
    expect(idsOf(sections(empty, [lockup(B)]))).toEqual([]);
    expect(() => readPlaylistPage(sections([], [lockup(B)]))).toThrow(IncompletePageError);
    expect(() => readPlaylistPage(sections(notice))).toThrow(UnreadableError);
  });

  it('is asked for again when it is a continuation only, or states an unknown error', () => {
    for (const page of [playlistPage([newToken('next')]), continuedPage([newToken('next')])]) {
      expect(read(page)).toMatchObject({ uploads: [], next: 'next' });
      expect(hasContents(read(page))).toBe(false);
    }
    expect(hasContents(read(continuedPage([])))).toBe(true);
    expect(() => readPlaylistPage(alertPage('Unknown error'))).toThrow(IncompletePageError);
    expect(() => readPlaylistPage({ responseContext: {} })).toThrow(IncompletePageError);
  });

  it('reads Shorts in a grid', () => {
    const grid = { richGridRenderer: { contents: [shortsLockup(A), shortsLockup(B), oldToken('next')] } };
    for (const page of [
      playlistPage([grid]),
      { contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { content: grid } }] } } },
    ]) {
      const { uploads, next } = read(page);
      expect(uploads.map(({ videoId, kind }) => [videoId, kind])).toEqual([
        [A, 'short'],
        [B, 'short'],
      ]);
      expect(next).toBe('next');
    }
    const thumbnailUrl = `https://i.ytimg.com/vi/${A}/hqdefault.jpg?sqp=large`;
    expect(onlyUpload(shortsLockup(A))).toMatchObject({ title: `Short ${A}`, viewCount: 2_500_000, thumbnailUrl });
    expect(onlyUpload(shortsLockup(A, 'thumbnailViewModel'))?.thumbnailUrl).toBe(thumbnailUrl);
    const { videoId, ...short } = onlyUpload(reelItem(A)) ?? {};
    expect([videoId, short]).toMatchObject([
      A,
      { title: `Short ${A}`, viewCount: 2_500_000, kind: 'short', thumbnailUrl },
    ]);
  });

  it.each([
    ['The playlist does not exist.', 'unknown'],
    ['This playlist type is unviewable.', 'unknown'],
    ['This playlist is private.', 'private'],
  ])('reports "%s" as a missing playlist: %s', (text, state) => {
    expect(readPlaylistPage(alertPage(text))).toEqual({ kind: 'none', state });
  });

  it('does not report a transient error as a missing playlist', () => {
    expect(() => readPlaylistPage(alertPage('Something went wrong. Try again later.'))).toThrow(UnreadableError);
    expect(() => readPlaylistPage(alertPage('The playlist is temporarily unavailable.'))).toThrow(UnreadableError);
    expect(() => readPlaylistPage(alertPage('The playlist does not exist.', 'INFO'))).toThrow(UnreadableError);
  });

  it('is empty only when the page states it', () => {
    const header = (text: string) => ({ header: { playlistHeaderRenderer: { numVideosText: { runs: [{ text }] } } } });
    const message = { messageRenderer: { text: { simpleText: 'No videos in this playlist yet' } } };
    const hidden = { type: 'INFO', text: { runs: [{ text: '3 unavailable videos are hidden' }] } };
    const alerts = [{ alertWithButtonRenderer: hidden }];
    expect(idsOf(oldPage([playlistVideo(A)], { alerts }))).toEqual([A]);
    expect(idsOf(oldPage([], { alerts }))).toEqual([]);
    expect(idsOf(oldPage([], header('No videos')))).toEqual([]);
    expect(idsOf(playlistPage([message]))).toEqual([]);
    expect(() => readPlaylistPage(oldPage([], header('150 videos')))).toThrow(UnreadableError);
    expect(() => readPlaylistPage(oldPage([]))).toThrow(UnreadableError);
    expect(() => readPlaylistPage(playlistPage([]))).toThrow(UnreadableError);
  });

  it.each([
    {},
    null,
    [],
    'page',
    { contents: {} },
    { error: { code: 400 } },
    { header: {}, sidebar: {} },
    { onResponseReceivedActions: [{}] },
  ])('rejects %j', (page) => {
    expect(() => readPlaylistPage(page)).toThrow(UnreadableError);
  });
});

const overlay = (style: string) => ({ thumbnailOverlays: [{ thumbnailOverlayTimeStatusRenderer: { style } }] });
const badge = (style: string) => ({ badges: [{ metadataBadgeRenderer: { style } }] });
const LIVE_NOW = { text: 'LIVE', badgeStyle: 'THUMBNAIL_OVERLAY_BADGE_STYLE_LIVE' };
const LIVE_ICON = {
  badgeStyle: 'THUMBNAIL_OVERLAY_BADGE_STYLE_DEFAULT',
  icon: { sources: [{ clientResource: { imageName: 'LIVE' } }] },
};
const overlayIcon = (iconType: string) => ({
  thumbnailOverlays: [{ thumbnailOverlayTimeStatusRenderer: { style: 'DEFAULT', icon: { iconType } } }],
});
const waiting = ['12 waiting', 'Scheduled for 6/1/26, 8:00 PM'];
const title = (simpleText: string) => ({ title: { simpleText }, isPlayable: false });

describe('an upload', () => {
  it.each([
    ['members-only', playlistVideo(A, badge('BADGE_STYLE_TYPE_MEMBERS_ONLY')), 'video', 'video_members_only'],
    ['members-only', lockup(A, { badge: 'BADGE_MEMBERS_ONLY' }), 'video', 'video_members_only'],
    ['live', playlistVideo(A, { ...overlay('LIVE'), lengthSeconds: undefined }), 'live', 'video_live'],
    ['live', playlistVideo(A, badge('BADGE_STYLE_TYPE_LIVE_NOW')), 'live', 'video_live'],
    ['live', lockup(A, { time: LIVE_NOW, parts: ['88 watching'] }), 'live', 'video_live'],
    ['live', lockup(A, { time: LIVE_ICON, parts: ['41 watching'] }), 'live', 'video_live'],
    ['live', playlistVideo(A, overlayIcon('LIVE')), 'live', 'video_live'],
    ['upcoming', playlistVideo(A, { upcomingEventData: { startTime: '1' } }), 'upcoming', 'video_not_live_yet'],
    ['upcoming', playlistVideo(A, overlay('UPCOMING')), 'upcoming', 'video_not_live_yet'],
    [
      'upcoming',
      lockup(A, { parts: waiting, time: { text: 'Upcoming', badgeStyle: 'x' } }),
      'upcoming',
      'video_not_live_yet',
    ],
    ['upcoming', lockup(A, { parts: ['Premieres 6/1/26, 8:00 PM'] }), 'upcoming', 'video_not_live_yet'],
    ['private', playlistVideo(A, title('[Private video]')), 'video', 'video_private'],
    ['deleted', playlistVideo(A, title('[Deleted video]')), 'video', 'video_unavailable'],
    ['a Short', lockup(A, { time: { text: 'SHORTS', badgeStyle: 'x' } }), 'short', null],
    ['playable elsewhere', playlistVideo(A, { isPlayable: false }), 'video', null],
    ['with a badge of another kind', lockup(A, { badge: 'BADGE_COMMERCE' }), 'video', null],
  ])('that is %s is reported so', (_, item, kind, failure) => {
    expect(onlyUpload(item)).toMatchObject({ videoId: A, kind, failure });
  });

  it('has null for values that the list does not display', () => {
    const uncounted = { durationSeconds: null, viewCount: null, kind: null };
    const nothing = { title: null, publishedText: null, thumbnailUrl: null, ...uncounted };
    expect(onlyUpload({ playlistVideoRenderer: { videoId: A } })).toEqual({ ...VIDEO, ...nothing });
    expect(onlyUpload({ lockupViewModel: { contentId: A } })).toEqual({ ...VIDEO, ...nothing });
    expect(onlyUpload(lockup(A, { title: null }))?.title).toBeNull();
  });

  it('is a video when it is longer than any Short, and of no kind when it can be one', () => {
    const kindOf = (lengthSeconds: string) => onlyUpload(playlistVideo(A, { lengthSeconds }))?.kind;
    expect(['182', '181', '45'].map(kindOf)).toEqual(['video', null, null]);
    expect(onlyUpload(lockup(A, { time: { text: '3:02', badgeStyle: 'x' } }))?.kind).toBe('video');
  });

  it('has neither duration nor views while it is live', () => {
    const live = onlyUpload(lockup(A, { time: LIVE_NOW, parts: ['1,234 watching'] }));
    expect(live).toMatchObject({ durationSeconds: null, viewCount: null, publishedText: null });
  });

  it.each(['Premiere', 'Upcoming', '10 years ago', '1M views', 'Premiered Films', 'Premieres Weekly'])(
    'has no facts from the byline %j',
    (name) => {
      const facts = { viewCount: 1200, publishedText: '4 months ago', kind: 'video', failure: null };
      expect(onlyUpload(lockup(A, { byline: name }))).toMatchObject(facts);
      // A byline in the row of the facts, and one without them.
      const inRow = lockup(A, { byline: name, sameRow: true });
      expect(onlyUpload(inRow)).toMatchObject(facts);
      const nothing = { viewCount: null, publishedText: null, kind: 'video' };
      expect(onlyUpload(lockup(A, { byline: name, parts: [], badge: 'BADGE_MEMBERS_ONLY' }))).toMatchObject({
        ...nothing,
        failure: 'video_members_only',
      });
    },
  );

  it('can have its ID in the watch endpoint only, unless it is a list', () => {
    const watched = (contentType: string, contentId?: string, endpoint = 'watchEndpoint') => {
      const onTap = { innertubeCommand: { [endpoint]: { videoId: A } } };
      const { lockupViewModel } = lockup(B);
      const rendererContext = { commandContext: { onTap } };
      return {
        lockupViewModel: {
          ...lockupViewModel,
          contentId,
          contentType: `LOCKUP_CONTENT_TYPE_${contentType}`,
          rendererContext,
        },
      };
    };
    expect(onlyUpload(watched('VIDEO'))?.videoId).toBe(A);
    expect(onlyUpload(watched('STATION', 'station-of-a-channel'))?.videoId).toBe(A);
    expect(onlyUpload(watched('MOVIE', B))?.videoId).toBe(B);
    expect(onlyUpload(watched('SHORTS', B))).toMatchObject({ videoId: B, kind: 'short' });
    expect(onlyUpload(watched('VIDEO', undefined, 'reelWatchEndpoint'))).toMatchObject({ videoId: A, kind: 'short' });
    for (const type of ['PODCAST', 'COURSE', 'PLAYLIST', 'ALBUM'])
      expect(read(playlistPage([watched(type, 'PL0123456789abcdef'), lockup(B)]))).toMatchObject({
        uploads: [{ videoId: B }],
        unread: 'nothing',
      });
    const { playlistVideoRenderer } = playlistVideo(A);
    const navigationEndpoint = { watchEndpoint: { videoId: A } };
    expect(
      onlyUpload({ playlistVideoRenderer: { ...playlistVideoRenderer, videoId: undefined, navigationEndpoint } })
        ?.videoId,
    ).toBe(A);
  });

  it.each([
    ['views above the date', [['12K views'], ['3 days ago']]],
    ['the date above the views', [['3 days ago'], ['12K views']]],
    [
      'a row of words below them',
      [
        ['12K views', '3 days ago'],
        ['CC', '4K'],
      ],
    ],
    ['an empty row', [[], ['12K views'], [], ['3 days ago'], []]],
    ['a name without a link', [['Premiere'], ['12K views', '3 days ago']]],
    ['a name like views', [['1M views'], ['12K views'], ['3 days ago']]],
    ['a name like a date', [['10 years ago'], ['3 days ago', '12K views']]],
  ])('has views and date in rows of any number and order: %s', (_, rows) => {
    expect(onlyUpload(lockup(A, { rows }))).toMatchObject({
      viewCount: 12_000,
      publishedText: '3 days ago',
      failure: null,
    });
  });

  it("does not read the channel's name as a view count", () => {
    expect(onlyUpload(lockup(A, { parts: ['1984', '3 views', '1 day ago'] }))).toMatchObject({
      viewCount: 3,
      publishedText: '1 day ago',
    });
  });

  it('returns the displayed date of a past live stream', () => {
    expect(onlyUpload(lockup(A, { parts: ['43k views', 'Streamed 6 months ago'] }))).toMatchObject({
      publishedText: 'Streamed 6 months ago',
      kind: 'video',
    });
  });
});

it.each([
  ['From the header', 'From the metadata', 'From the metadata'],
  ['From the header', '', 'From the header'],
  [undefined, undefined, null],
])('a playlist has the title that the page states: %j, %j', (header, metadata, title) => {
  const fields = {
    header: { playlistHeaderRenderer: { title: { simpleText: header } } },
    metadata: { playlistMetadataRenderer: { title: metadata } },
  };
  expect(read(oldPage([playlistVideo(A)], fields)).title).toBe(title);
  expect(read(playlistPage([lockup(A)], fields)).title).toBe(title);
});
