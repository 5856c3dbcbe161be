import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { mutationsOf } from '../../../../test/pages/page-mutations.js';
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
  shortsLockup,
} from '../../../../test/pages/youtube-pages.js';
import type { Upload } from '../../../domain/transcript.js';
import { UnreadableError } from '../response-parsing.js';
import { readPlaylistPage, readUploadsPage, type UploadsPage } from './uploads-page.js';

const A = 'aaaaaaaaaaa';
const B = 'bbbbbbbbb-_';

function read(page: unknown): UploadsPage & { kind: 'page' } {
  const result = readUploadsPage(page);
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
  kind: null,
  failure: null,
};

describe.each([
  ['playlistVideoRenderer', 'old', playlistVideo, (items: unknown[]) => oldPage(items), oldToken],
  ['lockupViewModel', 'new', (id: string) => lockup(id), (items: unknown[]) => playlistPage(items), newToken],
] as const)('a list of %s', (_, shape, item, page, token) => {
  it('returns every displayed field', () => {
    expect(read(page([item(A)]))).toEqual({
      ...{ kind: 'page', uploads: [VIDEO], continuation: null, unreadableItems: 0, shape },
    });
  });

  it("preserves the list's order and reads the list's continuation token, not the one for recommendations", () => {
    const result = read(page([item(B), item(A), token('next')]));
    expect(result.uploads.map(({ videoId }) => videoId)).toEqual([B, A]);
    expect(result.continuation).toBe('next');
    expect(read(page([item(A)])).continuation).toBeNull();
  });

  it('lists a repeated upload once', () => {
    expect(idsOf(page([item(A), item(B), item(A)]))).toEqual([A, B]);
  });

  it('counts unreadable items and returns the others', () => {
    const result = read(page([item('not-an-id'), item(A), { adSlotRenderer: {} }, {}, null]));
    expect([result.uploads.length, result.unreadableItems]).toEqual([1, 4]);
  });

  it('is unreadable when none of its items can be read', () => {
    expect(() => readUploadsPage(page([item('not-an-id'), token('next')]))).toThrow(UnreadableError);
    expect(() => readUploadsPage(continuedPage([{ newShapeViewModel: {} }]))).toThrow(UnreadableError);
  });

  it('reads the same entries from a continuation page', () => {
    for (const how of ['append', 'reload'] as const) {
      expect(read(continuedPage([item(A), token('next')], how))).toEqual({
        kind: 'page',
        uploads: [VIDEO],
        continuation: 'next',
        unreadableItems: 0,
        shape,
      });
    }
  });
});

describe('a page of uploads', () => {
  it('finds a token among the commands of an executor', () => {
    expect(read(oldPage([playlistVideo(A), executorToken('next')])).continuation).toBe('next');
  });

  it('does not read a reloaded header as the list', () => {
    const slot = 'RELOAD_CONTINUATION_SLOT_HEADER';
    const header = { reloadContinuationItemsCommand: { slot, continuationItems: [{ playlistHeaderRenderer: {} }] } };
    const { onResponseReceivedActions: actions } = continuedPage([playlistVideo(A)], 'reload');
    expect(read({ onResponseReceivedActions: [header, ...actions] })).toMatchObject({
      uploads: [VIDEO],
      unreadableItems: 0,
    });
    expect(() => readUploadsPage({ onResponseReceivedActions: [header] })).toThrow(UnreadableError);
  });

  it('reads a continuation page under onResponseReceivedEndpoints in the same way', () => {
    for (const how of ['append', 'reload'] as const) {
      const { onResponseReceivedActions, ...page } = continuedPage([playlistVideo(A), newToken('next')], how);
      expect(read({ ...page, onResponseReceivedEndpoints: onResponseReceivedActions })).toMatchObject({
        uploads: [VIDEO],
        continuation: 'next',
      });
    }
  });

  it('ends when a continuation page has no items', () => {
    expect(read(continuedPage([]))).toEqual({
      ...{ kind: 'page', uploads: [], continuation: null, unreadableItems: 0, shape: 'none' },
    });
    expect(
      read({ onResponseReceivedActions: [{ appendContinuationItemsAction: { targetId: 'UU' } }] }).uploads,
    ).toEqual([]);
  });

  it('reads Shorts in a grid', () => {
    const grid = { richGridRenderer: { contents: [shortsLockup(A), shortsLockup(B), oldToken('next')] } };
    for (const page of [
      playlistPage([grid]),
      { contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { content: grid } }] } } },
    ]) {
      const { uploads, continuation } = read(page);
      expect(uploads.map(({ videoId, kind }) => [videoId, kind])).toEqual([
        [A, 'short'],
        [B, 'short'],
      ]);
      expect(continuation).toBe('next');
    }
    expect(onlyUpload(shortsLockup(A))).toMatchObject({ title: `Short ${A}`, viewCount: 2_500_000 });
    expect(onlyUpload({ reelItemRenderer: { videoId: A, headline: { simpleText: 'x' } } })).toMatchObject({
      title: 'x',
      kind: 'short',
    });
  });

  it.each(['The playlist does not exist.', 'This playlist type is unviewable.', 'This playlist is private.'])(
    'reports "%s" as a missing playlist',
    (text) => {
      expect(readUploadsPage(alertPage(text))).toEqual({ kind: 'no-playlist' });
    },
  );

  it('does not report a transient error as a missing playlist', () => {
    expect(() => readUploadsPage(alertPage('Something went wrong. Try again later.'))).toThrow(UnreadableError);
    expect(() => readUploadsPage(alertPage('The playlist is temporarily unavailable.'))).toThrow(UnreadableError);
    expect(() => readUploadsPage(alertPage('The playlist does not exist.', 'INFO'))).toThrow(UnreadableError);
  });

  it('ignores the notice of hidden videos', () => {
    const alerts = [
      { alertWithButtonRenderer: { type: 'INFO', text: { simpleText: 'Unavailable videos are hidden' } } },
    ];
    expect(idsOf(oldPage([playlistVideo(A)], { alerts }))).toEqual([A]);
    expect(idsOf(oldPage([], { alerts }))).toEqual([]);
    const plain = [{ alertRenderer: { type: 'INFO', text: { runs: [{ text: '3 unavailable videos are hidden' }] } } }];
    expect(idsOf(oldPage([], { alerts: plain }))).toEqual([]);
  });

  it('is empty only when the page states it', () => {
    const header = (text: string) => ({ header: { playlistHeaderRenderer: { numVideosText: { runs: [{ text }] } } } });
    const message = { messageRenderer: { text: { simpleText: 'No videos in this playlist yet' } } };
    expect(idsOf(oldPage([], header('No videos')))).toEqual([]);
    expect(idsOf(playlistPage([message]))).toEqual([]);
    expect(() => readUploadsPage(oldPage([], header('150 videos')))).toThrow(UnreadableError);
    expect(() => readUploadsPage(oldPage([]))).toThrow(UnreadableError);
    expect(() => readUploadsPage(playlistPage([]))).toThrow(UnreadableError);
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
    expect(() => readUploadsPage(page)).toThrow(UnreadableError);
  });

  it('returns valid uploads, no playlist or an UnreadableError for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (page) => expectValidOrUnreadable(page)),
      { numRuns: 200 },
    );
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (items) => expectValidOrUnreadable(oldPage(items))),
      { numRuns: 200 },
    );
  });

  it('returns valid uploads, no playlist or an UnreadableError for a page that has changed', () => {
    const items = [playlistVideo(A), lockup(B), shortsLockup('ccccccccccc'), oldToken('next'), newToken('next')];
    for (const page of [oldPage(items), playlistPage(items), continuedPage(items)]) {
      fc.assert(
        fc.property(mutationsOf(page), (mutated) => expectValidOrUnreadable(mutated)),
        { numRuns: 300 },
      );
    }
  });
});

describe('an upload', () => {
  it.each([
    [
      'members-only',
      playlistVideo(A, { badges: [{ metadataBadgeRenderer: { style: 'BADGE_STYLE_TYPE_MEMBERS_ONLY' } }] }),
      null,
      'video_members_only',
    ],
    ['members-only', lockup(A, { badge: 'BADGE_MEMBERS_ONLY' }), null, 'video_members_only'],
    [
      'live',
      playlistVideo(A, {
        thumbnailOverlays: [{ thumbnailOverlayTimeStatusRenderer: { style: 'LIVE' } }],
        lengthSeconds: undefined,
        lengthText: undefined,
      }),
      'live',
      'video_live',
    ],
    [
      'live',
      playlistVideo(A, { badges: [{ metadataBadgeRenderer: { style: 'BADGE_STYLE_TYPE_LIVE_NOW' } }] }),
      'live',
      'video_live',
    ],
    [
      'live',
      lockup(A, { time: { text: 'LIVE', badgeStyle: 'THUMBNAIL_OVERLAY_BADGE_STYLE_LIVE' }, parts: ['88 watching'] }),
      'live',
      'video_live',
    ],
    [
      'upcoming',
      playlistVideo(A, { upcomingEventData: { startTime: '1780000000' } }),
      'upcoming',
      'video_not_live_yet',
    ],
    [
      'upcoming',
      playlistVideo(A, { thumbnailOverlays: [{ thumbnailOverlayTimeStatusRenderer: { style: 'UPCOMING' } }] }),
      'upcoming',
      'video_not_live_yet',
    ],
    [
      'upcoming',
      lockup(A, {
        parts: ['12 waiting', 'Scheduled for 6/1/26, 8:00 PM'],
        time: { text: 'Upcoming', badgeStyle: 'x' },
      }),
      'upcoming',
      'video_not_live_yet',
    ],
    ['upcoming', lockup(A, { parts: ['Premieres 6/1/26, 8:00 PM'] }), 'upcoming', 'video_not_live_yet'],
    [
      'private',
      playlistVideo(A, { title: { simpleText: '[Private video]' }, isPlayable: false }),
      null,
      'video_private',
    ],
    [
      'deleted',
      playlistVideo(A, { title: { runs: [{ text: '[Deleted video]' }] }, isPlayable: false }),
      null,
      'video_unavailable',
    ],
    ['a Short', lockup(A, { time: { text: 'SHORTS', badgeStyle: 'x' } }), 'short', null],
    ['playable elsewhere', playlistVideo(A, { isPlayable: false }), null, null],
    ['with a badge of another kind', lockup(A, { badge: 'BADGE_COMMERCE' }), null, null],
  ])('that is %s is reported so', (_, item, kind, failure) => {
    expect(onlyUpload(item)).toMatchObject({ videoId: A, kind, failure });
  });

  it('has null for values that the list does not display', () => {
    const nothing = { title: null, publishedText: null, durationSeconds: null, viewCount: null, thumbnailUrl: null };
    expect(onlyUpload({ playlistVideoRenderer: { videoId: A } })).toEqual({ ...VIDEO, ...nothing });
    expect(onlyUpload({ lockupViewModel: { contentId: A } })).toEqual({ ...VIDEO, ...nothing });
    expect(onlyUpload(lockup(A, { title: null }))?.title).toBeNull();
  });

  it('has neither duration nor views while it is live', () => {
    expect(
      onlyUpload(
        lockup(A, {
          time: { text: 'LIVE', badgeStyle: 'THUMBNAIL_OVERLAY_BADGE_STYLE_LIVE' },
          parts: ['1,234 watching'],
        }),
      ),
    ).toMatchObject({ durationSeconds: null, viewCount: null, publishedText: null });
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
      kind: null,
    });
  });
});

function expectValidOrUnreadable(page: unknown): void {
  let result: UploadsPage | undefined;
  try {
    result = readUploadsPage(page);
  } catch (error) {
    expect(error).toBeInstanceOf(UnreadableError);
  }
  if (result?.kind !== 'page') return;
  const ids = result.uploads.map(({ videoId }) => videoId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const upload of result.uploads) {
    expect(upload.videoId).toMatch(/^[\w-]{11}$/);
    expect(upload.title === null || typeof upload.title === 'string').toBe(true);
    for (const number of [upload.durationSeconds, upload.viewCount])
      expect(number === null || Number.isFinite(number)).toBe(true);
  }
}

describe('the header of a playlist', () => {
  const header = { playlistHeaderRenderer: { title: { simpleText: 'From the header' } } };
  const metadata = { playlistMetadataRenderer: { title: 'From the metadata' } };

  it.each([
    [{ header, metadata }, 'From the metadata'],
    [{ metadata }, 'From the metadata'],
    [{ header }, 'From the header'],
    [{ header: { playlistHeaderRenderer: { title: { runs: [{ text: 'In ' }, { text: 'runs' }] } } } }, 'In runs'],
    [{ metadata: { playlistMetadataRenderer: { title: '' } } }, null],
    [{}, null],
  ])('has the title that the page states: %j', (fields, title) => {
    expect(readPlaylistPage(oldPage([playlistVideo(A)], fields)).header).toEqual({ title, isPrivate: false });
    expect(readPlaylistPage(playlistPage([lockup(A)], fields)).header).toEqual({ title, isPrivate: false });
  });

  it.each([
    ['This playlist is private.', true],
    ['The playlist does not exist.', false],
    ['This playlist type is unviewable.', false],
  ])('distinguishes a private playlist from one that does not exist: %s', (alert, isPrivate) => {
    const page = readPlaylistPage(alertPage(alert));
    expect(page).toEqual({ header: { title: null, isPrivate }, list: { kind: 'no-playlist' } });
  });

  it('does not take a notice about one private video for a private playlist', () => {
    const notice = { alertWithButtonRenderer: { type: 'INFO', text: { simpleText: '1 video is private' } } };
    expect(readPlaylistPage(oldPage([playlistVideo(A)], { alerts: [notice] })).header.isPrivate).toBe(false);
  });
});
