import { describe, expect, it } from '@jest/globals';
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
  shortsLockup,
  topicChannelPage,
  VIDEO_ID,
} from '../../../../test/pages/youtube-pages.js';
import { readChannelPage } from '../channel/channel-page.js';
import {
  CHANNEL_FIELDS,
  MICROFORMAT_FIELDS,
  PLAYER_FIELDS,
  PLAYLIST_FIELDS,
  REEL_FIELDS,
  UPLOADS_FIELDS,
} from './field-masks.js';
import { at } from '../response-parsing.js';
import { readPublishDate, readPlayer, readReel } from '../video/player-response.js';
import { readPlaylistPage } from '../channel/playlist-page.js';

/** Names that are kept, each with what is kept of its value; an empty one keeps all. */
type Mask = Map<string, Mask>;

function parseMask(text: string): Mask {
  let position = 0;
  const list = (into: Mask): void => {
    do {
      let inner = into;
      for (;;) {
        const name = /[A-Za-z]+/y;
        name.lastIndex = position;
        const found = name.exec(text)?.[0];
        if (found === undefined) throw new Error(`no name at ${position} of ${text}`);
        position += found.length;
        const next = inner.get(found) ?? new Map<string, Mask>();
        inner.set(found, next);
        inner = next;
        if (text[position] !== '/') break;
        position++;
      }
      if (text[position] === '(') {
        position++;
        list(inner);
        if (text[position++] !== ')') throw new Error(`no ) before ${position} of ${text}`);
      }
    } while (text[position] === ',' && ++position);
  };
  const mask: Mask = new Map();
  list(mask);
  if (position !== text.length) throw new Error(`rest at ${position} of ${text}`);
  return mask;
}

function project(value: unknown, mask: Mask): unknown {
  if (mask.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((element) => project(element, mask));
  const stored = Object.entries(value).filter(([key]) => mask.has(key));
  return Object.fromEntries(
    stored.map(([key, inner]) => [key, project(inner, mask.get(key) ?? new Map<string, Mask>())]),
  );
}

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
    for (const page of pages) expect(read(project(page, parseMask(fields)))).toEqual(read(page));
  });

  it('removes the other fields', () => {
    const context = { serviceTrackingParams: [], maxAgeSeconds: 0 };
    const removed = project({ responseContext: context, trackingParams: 'x' }, parseMask(fields));
    expect(removed).toEqual(fields.startsWith('responseContext') ? { responseContext: {} } : {});
  });

  it('is short enough for a URL', () => {
    expect(encodeURIComponent(fields).length).toBeLessThan(6_000);
  });
});

describe('the masks of player responses', () => {
  it('let the visitor data through that a bot check issues', () => {
    const context = { responseContext: { visitorData: 'issued', maxAgeSeconds: 0 } };
    expect(at(project(context, parseMask(PLAYER_FIELDS)), 'responseContext')).toEqual({ visitorData: 'issued' });
    const reel = project({ ...context, playerResponse: context }, parseMask(REEL_FIELDS));
    expect(at(reel, 'responseContext')).toEqual({ visitorData: 'issued' });
    expect(at(reel, 'playerResponse', 'responseContext')).toEqual({ visitorData: 'issued' });
  });
});
