import { describe, expect, it } from '@jest/globals';
import type { Json } from '../fake-youtube/json.js';
import { project as projectJson } from '../fake-youtube/partial-response.js';
import {
  ageGatedPage,
  alertPage,
  captionTrack,
  channelPage,
  continuedPage,
  lockup,
  microformatResponse,
  newToken,
  oldPage,
  oldToken,
  playerResponse,
  playlistPage,
  playlistVideo,
  reelItem,
  shortsLockup,
  topicChannelPage,
  VIDEO_ID,
} from '../pages/youtube-pages.js';
import { readChannelPage } from '../../src/platform/youtube/channel/channel-page.js';
import {
  CHANNEL_FIELDS,
  MICROFORMAT_FIELDS,
  PLAYER_FIELDS,
  PLAYLIST_FIELDS,
  REEL_FIELDS,
  UPLOADS_FIELDS,
} from '../../src/platform/youtube/innertube/field-masks.js';
import { at } from '../../src/platform/youtube/response-parsing.js';
import { readPublishDate, readPlayer, readReel } from '../../src/platform/youtube/video/player-response.js';
import { readPlaylistPage } from '../../src/platform/youtube/channel/playlist-page.js';

/** What the mask leaves of a page, as the fake YouTube reads masks. */
const project = (page: unknown, fields: string) => projectJson(page as Json, fields);

const A = 'aaaaaaaaaaa';
const hidden = {
  alerts: [{ alertWithButtonRenderer: { type: 'INFO', text: { simpleText: '1 unavailable video is hidden' } } }],
};
const empty = { header: { playlistHeaderRenderer: { title: {}, numVideosText: { runs: [{ text: 'No videos' }] } } } };
const titled = { metadata: { playlistMetadataRenderer: { title: 'From the metadata', description: 'x' } } };
const oldItems = [
  playlistVideo(A),
  playlistVideo('bbbbbbbbbbb', { badges: [{ metadataBadgeRenderer: { style: 'BADGE_STYLE_TYPE_MEMBERS_ONLY' } }] }),
  playlistVideo('ccccccccccc', { upcomingEventData: { startTime: '1' }, lengthSeconds: undefined }),
  oldToken('next'),
];
const newItems = [lockup(A), lockup('bbbbbbbbbbb', { badge: 'BADGE_MEMBERS_ONLY' }), newToken('next')];
const shorts = { richGridRenderer: { contents: [shortsLockup(A), oldToken('next')] } };
const title = { dynamicTextViewModel: { text: { content: 'Sailing' } } };
const endpoint = { watchEndpoint: { videoId: A, playlistId: 'PLx' } };
const tapped = { contentId: 'PLx', rendererContext: { commandContext: { onTap: { innertubeCommand: endpoint } } } };
const watched = { lockupViewModel: { ...lockup(A).lockupViewModel, ...tapped } };
const podcast = { lockupViewModel: { ...watched.lockupViewModel, contentType: 'LOCKUP_CONTENT_TYPE_PODCAST' } };
const watchedOld = { playlistVideoRenderer: { navigationEndpoint: endpoint, thumbnailOverlays: [] } };
const command = { continuationCommand: { token: 'next' } };
const button = { continuationItemRenderer: { button: { buttonRenderer: { command } } } };
const metadataRows = [{ metadataParts: [{ text: { content: '12 videos' } }] }];
const pageHeaderViewModel = { metadata: { contentMetadataViewModel: { metadataRows } } };
const counted = { header: { pageHeaderRenderer: { content: { pageHeaderViewModel } } } };
const stats = [{ runs: [{ text: '150' }, { text: ' videos' }] }];
const sidebar = { playlistSidebarRenderer: { items: [{ playlistSidebarPrimaryInfoRenderer: { stats } }] } };
const captions = {
  captionTracks: [captionTrack('en'), captionTrack('en', { generated: true })],
  audioTracks: [{ audioTrackId: 'en.4', defaultCaptionTrackIndex: 0 }],
  defaultAudioTrackIndex: 0,
};
const refusals = [
  { status: 'LOGIN_REQUIRED', reason: 'x', desktopLegacyAgeGateReason: 1 },
  { status: 'LOGIN_REQUIRED', messages: ['This is a private video.'] },
  {
    status: 'UNPLAYABLE',
    errorScreen: { playerErrorMessageRenderer: { subreason: { simpleText: 'Join this channel' } } },
  },
  { status: 'ERROR', reason: 'Video unavailable', errorScreen: { playerCaptchaViewModel: {} } },
  {
    status: 'ERROR',
    errorScreen: { playerErrorMessageRenderer: { reason: { simpleText: 'The page needs to be reloaded.' } } },
  },
];
const players = [
  playerResponse(),
  playerResponse({ captions }),
  ...refusals.map((playability) => playerResponse({ playability })),
];

describe.each<[string, string, (page: unknown) => unknown, unknown[]]>([
  ['PLAYER_FIELDS', PLAYER_FIELDS, (page) => readPlayer(page, VIDEO_ID), players],
  [
    'REEL_FIELDS',
    REEL_FIELDS,
    (page) => readReel(page, VIDEO_ID),
    [{}, ...players.map((each) => ({ playerResponse: each }))],
  ],
  [
    'MICROFORMAT_FIELDS',
    MICROFORMAT_FIELDS,
    (page) => readPublishDate(page, VIDEO_ID),
    [
      microformatResponse(),
      microformatResponse({ liveBroadcastDetails: { isLiveNow: true } }),
      microformatResponse({}, { isUpcoming: true }),
    ],
  ],
  [
    'CHANNEL_FIELDS',
    CHANNEL_FIELDS,
    readChannelPage,
    [
      channelPage(),
      channelPage({ vanityChannelUrl: undefined }),
      ageGatedPage,
      topicChannelPage,
      { header: { pageHeaderRenderer: { pageTitle: 'Sailing' } } },
      { header: { pageHeaderRenderer: { content: { pageHeaderViewModel: { title } } } } },
      { header: { interactiveTabbedHeaderRenderer: { title: { simpleText: 'Sailing' } } } },
      alertPage('This channel does not exist.'),
    ],
  ],
  [
    'UPLOADS_FIELDS',
    UPLOADS_FIELDS,
    readPlaylistPage,
    [
      oldPage(oldItems),
      playlistPage(newItems, hidden),
      playlistPage([shorts]),
      playlistPage([
        reelItem(A).richItemRenderer.content,
        shortsLockup('bbbbbbbbbbb', 'thumbnailViewModel').richItemRenderer.content,
      ]),
      playlistPage([lockup(A, { byline: 'Premiere' }), watched, podcast, button], counted),
      oldPage([watchedOld, button], { sidebar }),
      playlistPage([{ continuationSlotViewModel: {} }, lockup(A), { adSlotRenderer: {} }]),
      playlistPage([{ messageRenderer: { text: { simpleText: 'No videos in this playlist yet' } } }]),
      oldPage([], empty),
      continuedPage(oldItems),
      continuedPage(newItems, 'reload'),
      alertPage('The playlist does not exist.'),
    ],
  ],
  [
    'PLAYLIST_FIELDS',
    PLAYLIST_FIELDS,
    readPlaylistPage,
    [
      oldPage(oldItems, titled),
      playlistPage(newItems, { ...titled, ...hidden }),
      playlistPage(newItems, { header: { playlistHeaderRenderer: { title: { simpleText: 'From the header' } } } }),
      oldPage([], empty),
      continuedPage(newItems),
      alertPage('This playlist is private.'),
    ],
  ],
])('the mask %s', (_, fields, read, pages) => {
  it('does not change any parsed value', () => {
    for (const page of pages) expect(read(project(page, fields))).toEqual(read(page));
  });

  it('removes the other fields', () => {
    const context = { serviceTrackingParams: [], maxAgeSeconds: 0 };
    const removed = project({ responseContext: context, trackingParams: 'x' }, fields);
    expect(removed).toEqual(fields.startsWith('responseContext') ? { responseContext: {} } : {});
  });

  it('is short enough for a URL', () => {
    expect(encodeURIComponent(fields).length).toBeLessThan(6_000);
  });
});

describe('the masks of player responses', () => {
  it('let the visitor data through that a bot check issues', () => {
    const context = { responseContext: { visitorData: 'issued', maxAgeSeconds: 0 } };
    expect(at(project(context, PLAYER_FIELDS), 'responseContext')).toEqual({ visitorData: 'issued' });
    const reel = project({ ...context, playerResponse: context }, REEL_FIELDS);
    expect(at(reel, 'responseContext')).toEqual({ visitorData: 'issued' });
    expect(at(reel, 'playerResponse', 'responseContext')).toEqual({ visitorData: 'issued' });
  });
});
