import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyPathAndQuery, anyText, anyUrl } from '../../../test/texts/any-text.js';
import { mutationsOf } from '../../../test/pages/page-mutations.js';
import {
  ageGatedPage,
  alertPage,
  captionTrack,
  CHANNEL_ID,
  channelPage,
  continuedPage,
  lockup,
  microformatResponse,
  movedPage,
  newToken,
  oldPage,
  oldToken,
  playerResponse,
  playlistPage,
  playlistVideo,
  redirectedUrl,
  shortsLockup,
  VIDEO_ID,
} from '../../../test/pages/youtube-pages.js';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { readCaptions } from './video/captions.js';
import { findHandle, readChannelPage, readResolvedUrl } from './channel/channel-page.js';
import { addressOf } from './channel/channel-reader.js';
import { readPlaylistPage } from './channel/playlist-page.js';
import { at, UnreadableError } from './response-parsing.js';
import { readPlayer, readPublishDate, readReel } from './video/player-response.js';

const player = playerResponse({
  playability: {
    reason: 'x',
    messages: ['x'],
    errorScreen: { playerErrorMessageRenderer: { reason: { simpleText: 'x' } } },
  },
  captions: {
    captionTracks: [captionTrack('de'), captionTrack('en', { generated: true })],
    audioTracks: [{ audioTrackId: 'en.4', defaultCaptionTrackIndex: 0 }],
    defaultAudioTrackIndex: 0,
  },
});
const items = [
  playlistVideo(VIDEO_ID),
  lockup('bbbbbbbbb-_'),
  shortsLockup('ccccccccccc'),
  oldToken('n'),
  newToken('n'),
];
const link = { browseEndpoint: { browseId: CHANNEL_ID, canonicalBaseUrl: '/@tavern' } };
const time = fc.oneof(fc.double(), fc.string(), fc.jsonValue());
const words = fc.oneof(fc.jsonValue(), fc.array(fc.record({ utf8: anyText() })));
const event = fc.record({ tStartMs: time, dDurationMs: time, aAppend: time, segs: words }, { requiredKeys: [] });
const piece = fc.constantFrom(
  '<transcript>',
  '</transcript>',
  '<text start="1" dur="2">',
  '</text>',
  '<s>',
  '<br/>',
  '"',
  '&amp;',
  '&#',
  '<',
  '<timedtext>',
  '</timedtext>',
  '<p t="1" d="2">',
  '</p>',
  '&eacute;',
  '\ufeff',
  '\u3164',
);
const srv3Of = (cues: string) => `<timedtext format="3"><body>${cues}</body></timedtext>`;

const text = (page: unknown): string => (typeof page === 'string' ? page : (JSON.stringify(page) ?? ''));

function checkPlayer(reading: ReturnType<typeof readPlayer>, page: unknown): void {
  if (reading.kind === 'tracks') expect(reading.tracks).not.toEqual([]);
  const listed = at(page, 'captions', 'playerCaptionsTracklistRenderer', 'captionTracks');
  if (reading.kind === 'no-captions') expect(listed ?? []).toEqual([]);
}

function checkSegments(segments: ReturnType<typeof readCaptions>): void {
  let previous = 0;
  for (const { text: cue, start, duration } of segments) {
    expect(cue.trim()).not.toBe('');
    expect(start).toBeGreaterThanOrEqual(previous);
    expect([Number.isFinite(start), Number.isFinite(duration), duration >= 0]).toEqual([true, true, true]);
    previous = start;
  }
}

function checkUploads(page: ReturnType<typeof readPlaylistPage>): void {
  if (page.kind === 'none') return;
  const ids = page.uploads.map(({ videoId }) => videoId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { videoId, title, durationSeconds, viewCount } of page.uploads) {
    expect(videoId).toMatch(/^[\w-]{11}$/);
    expect(title === null || typeof title === 'string').toBe(true);
    for (const number of [durationSeconds, viewCount]) expect(number === null || Number.isFinite(number)).toBe(true);
  }
}

function checkChannel(page: ReturnType<typeof readChannelPage>): void {
  if (page.kind === 'channel') expect(page.channel.id).toMatch(/^UC[\w-]{22}$/);
  if (page.kind === 'moved') checkReference(page.to);
}

function checkReference(reference: ReturnType<typeof readResolvedUrl>): void {
  if (reference === null) return;
  const url = reference.kind === 'id' ? reference.id : addressOf(reference);
  expect(parseChannelReference(url)).toEqual(reference);
}

/** What a parser is given besides any JSON, and the parser with what holds for all that it returns. */
const PARSERS: Readonly<Record<string, [fc.Arbitrary<unknown>[], (page: unknown) => void]>> = {
  readPlayer: [
    [mutationsOf(player), mutationsOf(player.captions).map((captions) => ({ ...player, captions }))],
    (page) => checkPlayer(readPlayer(page, VIDEO_ID), page),
  ],
  readReel: [
    [mutationsOf({ playerResponse: player })],
    (page) => checkPlayer(readReel(page, VIDEO_ID), at(page, 'playerResponse')),
  ],
  readPublishDate: [
    [mutationsOf(microformatResponse())],
    (page) => expect(readPublishDate(page, VIDEO_ID) ?? '2015-01-28T05:14:36Z').toMatch(/^[^.]+Z$/),
  ],
  readPlaylistPage: [
    [oldPage(items), playlistPage(items), continuedPage(items)].map(mutationsOf),
    (page) => checkUploads(readPlaylistPage(page)),
  ],
  readChannelPage: [
    [channelPage(), ageGatedPage, movedPage(CHANNEL_ID), alertPage('This channel does not exist.')].map(mutationsOf),
    (page) => checkChannel(readChannelPage(page)),
  ],
  readResolvedUrl: [
    [
      fc.jsonValue().map((endpoint) => ({ endpoint })),
      fc.oneof(anyUrl(), anyText()).map(redirectedUrl),
      anyPathAndQuery().map((path) => redirectedUrl(`https://www.youtube.com${path}`)),
    ],
    (page) => checkReference(readResolvedUrl(page)),
  ],
  findHandle: [
    [mutationsOf(oldPage([playlistVideo(VIDEO_ID, { navigationEndpoint: link })]))],
    (page) => expect([null, '@tavern']).toContain(findHandle(page, CHANNEL_ID)),
  ],
  readCaptions: [
    [
      anyText(),
      fc.array(fc.oneof(piece, fc.string())).map((parts) => parts.join('')),
      fc.array(fc.oneof(event, fc.jsonValue())).map((events) => ({ events })),
      fc.tuple(fc.constantFrom('text', 'p'), anyText()).map(([name, cue]) => srv3Of(`<${name} t="1">${cue}</${name}>`)),
    ],
    (page) => checkSegments(readCaptions(text(page))),
  ],
};

describe('a parser returns what is valid, or throws an UnreadableError, for any page and any change of one', () => {
  it.each(Object.entries(PARSERS))('%s', (_, [pages, check]) => {
    const run = (page: unknown): void => {
      try {
        check(page);
      } catch (error) {
        if (!(error instanceof UnreadableError)) throw error;
      }
    };
    fc.assert(fc.property(fc.oneof(fc.jsonValue(), ...pages), run), { numRuns: 500 });
  });
});
