import { describe, expect, it } from '@jest/globals';
import type { IncomingMessage } from 'node:http';
import { superLinearGrowth } from '../test/linear-time.js';
import { parseLanguages } from './transcripts/dto/transcripts-query.dto.js';
import { parseChannelReference } from './domain/channel-reference.js';
import { parseUrl } from './domain/page-url.js';
import { parsePlaylistReference } from './domain/playlist-reference.js';
import { parseVideoReference } from './domain/video-reference.js';
import { requestIdFrom } from './http/request-context.js';
import { createRedactor } from './observability/logging/redaction.js';
import { bearerToken } from './http/bearer-token.js';
import { cutBefore } from './mcp/text-page.js';
import { normalized } from './mcp/transcript-search.js';
import { fieldsOf } from './messages/message-reader.js';
import { redactApiKeys } from './domain/api-key-text.js';
import { isWellFormedKey } from './organizations/api-key.js';
import { parseName } from './organizations/input-rules.js';
import { readCaptionJson3, readCaptionXml } from './platform/youtube/captions/caption-formats.js';
import { captionUrl } from './platform/youtube/captions/caption-fetch.js';
import { findHandle, readChannelPage, readHandle, readResolvedUrl } from './platform/youtube/channel/channel-page.js';
import { classifyResponse, readHtmlKind, readRetryAfter } from './platform/youtube/egress/upstream-response.js';
import { readFeedDates } from './platform/youtube/channel/list-additions.js';
import { asNumber, textOf } from './platform/youtube/response-parsing.js';
import { addressKind } from './platform/youtube/egress/platform-url.js';
import { decodeEntities, plainText } from './platform/youtube/captions/plain-text.js';
import {
  readPublishDate,
  readPlayer,
  readReel,
  readPlayabilityProblem,
} from './platform/youtube/video/player-response.js';
import { selectTracks } from './platform/youtube/video/track-selection.js';
import {
  isAnnouncementText,
  isPublishedText,
  readDurationSeconds,
  readInstant,
  readViewCount,
} from './platform/youtube/channel/displayed-values.js';
import { readPlaylistPage } from './platform/youtube/channel/playlist-page.js';
import { jsonOf } from './transcripts/cache/transcript-text.js';
import { escapeMarkdown, linkDestination, videoText } from './transcripts/formats/markdown.js';
import { srt, webVtt } from './transcripts/formats/subtitles.js';

const VIDEO_ID = 'aaaaaaaaaaa';
const CHANNEL_ID = `UC${'a'.repeat(22)}`;

/** Repeated to fill a text, between a start that makes the parser begin its work and an end that makes it fail. */
const PIECES = [
  ...[' ', '\n', '\t\u00a0', '\u200b', '<', '>', '<i a=', '<i ', '<i a= ', '<br', '<br ', '</c.', '<c.a', '<!--', '<?'],
  ...['&', '&#', '&#1', '&amp;', '&amp;amp;', '"', "'", ' t="', " t='", ' t=', '<text start="0">', '<p t="0">', '<s>'],
  ...[
    '/',
    '//',
    '@',
    '%',
    '%25',
    '%C3%A9',
    '.',
    ',',
    '-',
    ':',
    '0',
    '9,',
    '1:',
    'a',
    'en,',
    'A',
    '\u0301',
    '𝒳',
    '\ud83d',
  ],
  ...[
    '?exp=',
    '&exp=x',
    '?exp=xp',
    '&tlang',
    'youtube.com/',
    'www.',
    'http://',
    'ctk_',
    'ctk_a',
    '[',
    '{',
    '["',
    '{"a":',
  ],
  ...['class=', 'class  =  "', 'action="', 'is a private', "content isn't available, ", 'not ', 'Bearer ', ';charset='],
];
const ENDS = ['', '\u0000>x"/>'];

/** Parsers of untrusted text, with starts that each of them accepts. */
const TEXT_READERS: Readonly<Record<string, { begin: readonly string[]; read: (text: string) => unknown }>> = {
  plainText: { begin: ['', '<i', '<font a=', '</c.', '<br'], read: plainText },
  decodeEntities: { begin: ['', '&'], read: decodeEntities },
  readCaptionXml: {
    begin: ['', '<?xml ', '<transcript>', '<transcript><text start="0" dur="1">', '<timedtext><body><p t="0">'],
    read: readCaptionXml,
  },
  readCaptionJson3: { begin: ['', '{"events":', '{"events":[{"segs":[{"utf8":"<i '], read: readCaptionJson3 },
  readFeedDates: { begin: ['', '<feed><entry><published>', '<feed><entry '], read: readFeedDates },
  classify: {
    begin: ['', '<html>', '<!doctype html'],
    read: (text) => classifyResponse(200, { 'content-type': text }, text),
  },
  readHtmlKind: { begin: ['', 'class', 'action="https://consent.'], read: readHtmlKind },
  readRetryAfter: { begin: ['', 'Mon, '], read: (text) => readRetryAfter(text, 0) },
  readHandle: { begin: ['', 'https://www.youtube.com/@'], read: readHandle },
  readViewCount: { begin: ['', '1,', 'no views'], read: readViewCount },
  readDurationSeconds: { begin: ['', '1:'], read: readDurationSeconds },
  isPublishedText: { begin: ['', 'Streamed 4 '], read: isPublishedText },
  isAnnouncementText: { begin: ['', 'Premiere'], read: isAnnouncementText },
  readInstant: { begin: ['', '2026-01-01T00:00:00.'], read: readInstant },
  asNumber: { begin: ['', '-1.'], read: asNumber },
  addressKind: { begin: ['https://consent.'], read: (text) => addressKind(parseUrl(text) ?? new URL('invalid:')) },
  captionUrl: {
    begin: ['https://www.youtube.com/api/timedtext?v=', '/api'],
    read: (text) => captionUrl(text, 'json3', VIDEO_ID),
  },
  readPlayabilityProblem: {
    begin: [''],
    read: (text) => readPlayabilityProblem('ERROR', { reason: text, messages: [text] }, undefined),
  },
  readPlayer: { begin: ['', '/api?', 'a.'], read: (text) => readPlayer(playerOf([text], text), VIDEO_ID) },
  readListedUpload: {
    begin: [''],
    read: (text) => readPlaylistPage(playlistOf([lockupOf(text), oldVideoOf(text)], text)),
  },
  readChannelPage: {
    begin: ['', 'http://www.youtube.com/@'],
    read: (text) => readChannelPage(channelOf([text])),
  },
  parseChannelReference: { begin: ['', '@', 'https://www.youtube.com/', 'youtube.com/@'], read: parseChannelReference },
  parseVideoReference: {
    begin: ['', 'https%3A%2F%2F', 'https://youtu.be/', 'youtube.com/watch?v='],
    read: parseVideoReference,
  },
  parsePlaylistReference: { begin: ['', 'PL', 'youtube.com/playlist?list='], read: parsePlaylistReference },
  parseLanguages: { begin: ['', 'en-'], read: parseLanguages },
  parseName: { begin: [''], read: parseName },
  isWellFormedKey: { begin: ['', 'ctk_'], read: isWellFormedKey },
  redactApiKeys: { begin: ['', 'ctk_'], read: redactApiKeys },
  createRedactor: { begin: [''], read: createRedactor('a'.repeat(32), '"'.repeat(32)) },
  requestIdFrom: { begin: [''], read: (text) => requestIdFrom(text) },
  bearerToken: { begin: ['', 'Bearer '], read: (text) => bearerToken(requestWith(text)) },
  escapeMarkdown: { begin: ['', '&', 'www'], read: escapeMarkdown },
  linkDestination: { begin: ['', 'https://youtu.be/'], read: linkDestination },
  srt: { begin: ['', '<', '{'], read: (text) => [...srt([{ text, start: 0, duration: 1 }])] },
  webVtt: { begin: ['', '<'], read: (text) => [...webVtt([{ text, start: 0, duration: 1 }])] },
  videoText: { begin: ['', '.'], read: (text) => [...videoText({ videoId: VIDEO_ID, transcript: spokenTwice(text) })] },
  normalized: { begin: [''], read: normalized },
  cutBefore: { begin: [''], read: (text) => cutBefore(text, text.length - 1) },
  fieldsOf: { begin: ['{"id":"'], read: (text) => fieldsOf(JSON.parse(text)) },
};

function spokenTwice(text: string): Buffer {
  return jsonOf(
    new Map([
      [
        'en',
        [
          { text, start: 0, duration: 1 },
          { text, start: 50, duration: 1 },
        ],
      ],
    ]),
  );
}

describe('the time of a parser of untrusted text is linear in the length of the text', () => {
  it.each(Object.entries(TEXT_READERS))('%s', (_name, { begin, read }) => {
    for (const start of begin) {
      for (const piece of PIECES) for (const end of ENDS) expectLinear(read, start, piece, end);
    }
  });

  it.each([
    ['an unfinished attribute', '<i a=', ' ', ''],
    ['a tag of spaces', '<font', ' ', 'x'],
    ['opened tags', '', '<i a=', ''],
    ['opened brackets before one end', '', '<', '>'],
  ])('a caption of a megabyte is parsed in milliseconds: %s', (_case, start, piece, end) => {
    const cue = start + piece.repeat(1_000_000 / piece.length) + end;
    const escaped = cue.replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    expect(superLinearGrowth((length) => () => plainText(cue.slice(0, length)), 1_048_576)).toBeUndefined();
    for (const body of [
      `<transcript><text start="0" dur="1">${escaped}</text></transcript>`,
      `<timedtext><body><p t="0">${escaped}</p></body></timedtext>`,
      JSON.stringify({ events: [{ segs: [{ utf8: cue }] }] }),
    ]) {
      const read = body.startsWith('{') ? readCaptionJson3 : readCaptionXml;
      // The cue is longer than the maximum, so the parser rejects it in the end.
      expect(() => read(body)).toThrow('a cue of at most');
    }
  });
});

/** Quadratic work on so many parts takes more than the limit even at a nanosecond for each pair. */
const PARTS_MAX = 16 * 1024;

const LINE = ` ${'x '.repeat(20)}`;

/** Parsers of untrusted documents and JSON, by the part that is repeated. */
const PART_READERS: Readonly<Record<string, (count: number) => () => unknown>> = {
  'captions of many events': reading(readCaptionJson3, (count) =>
    JSON.stringify({ events: many(count, (index) => ({ tStartMs: -index, segs: [{ utf8: 'a' }] })) }),
  ),
  'captions of many segments': reading(readCaptionJson3, (count) =>
    JSON.stringify({ events: [{ segs: many(count, () => ({ utf8: '<i ' })) }] }),
  ),
  'captions of many cues in the wrong order': reading(readCaptionXml, (count) => {
    const cues = many(count, (index) => `<text start="${count - index}">a</text>`);
    return `<transcript>${cues.join('')}</transcript>`;
  }),
  'a cue of many tags': reading(
    readCaptionXml,
    (count) => `<timedtext><p t="0">${'a<br/>&amp;'.repeat(count / 4)}</p></timedtext>`,
  ),
  'a cue of many attributes': reading(
    readCaptionXml,
    (count) => `<timedtext><p ${' t= xt="1"'.repeat(count)}>a</p></timedtext>`,
  ),
  'captions of many cues with two attributes': reading(
    readCaptionXml,
    (count) => `<timedtext>${'<p a="t" t="1">a</p>'.repeat(count)}</timedtext>`,
  ),
  'a feed of many entries': reading(
    readFeedDates,
    (count) => `<feed>${'<entry><yt:videoId>aaaaaaaaaaa</yt:videoId></entry>'.repeat(count)}</feed>`,
  ),
  'a list of many entries': reading(readPlaylistPage, (count) => playlistOf(repeated(count, lockupOf(LINE)), LINE)),
  'a list in many actions': reading(readPlaylistPage, (count) => {
    const action = { appendContinuationItemsAction: { continuationItems: [lockupOf(LINE)] } };
    return { onResponseReceivedActions: repeated(count, action) };
  }),
  'a list of many tabs': reading(readPlaylistPage, (count) => ({
    contents: { twoColumnBrowseResultsRenderer: { tabs: repeated(count, {}) } },
  })),
  'a page of many links to other channels': reading(
    (page) => findHandle(page, CHANNEL_ID),
    (count) => repeated(count, { browseEndpoint: { browseId: 'UC', canonicalBaseUrl: LINE } }),
  ),
  'a channel of many alerts': reading(readChannelPage, (count) => ({
    alerts: repeated(count, { alertRenderer: { type: 'ERROR', text: { simpleText: LINE } } }),
  })),
  'a channel of many addresses': reading(readChannelPage, (count) => channelOf(repeated(count, LINE))),
  'an address that leads to many endpoints': reading(readResolvedUrl, (count) => ({ endpoint: fields(count) })),
  'a text of many runs': reading(textOf, (count) => ({ runs: repeated(count, { text: LINE }) })),
  'a video of many tracks': reading(
    (player) => readPlayer(player, VIDEO_ID),
    (count) => playerOf(repeated(count, LINE), 'x'.repeat(count)),
  ),
  'a choice among many tracks, one with a long code': reading(chooseAmong, (count) =>
    playerOf(repeated(count, LINE), 'x'.repeat(8 * count)),
  ),
  'a reel of many fields': reading((reel) => readReel(reel, VIDEO_ID), fields),
  'a microformat of a long date': reading(
    (response) => readPublishDate(response, VIDEO_ID),
    (count) => ({ microformat: { playerMicroformatRenderer: { publishDate: '1'.repeat(count) } } }),
  ),
  'a refusal of many messages': reading(
    (playability) => readPlayabilityProblem('ERROR', playability, undefined),
    (count) => ({ messages: repeated(count, LINE) }),
  ),
  'a message of many fields': reading(fieldsOf, fields),
};

describe('the time of a parser of untrusted documents is linear in the number of their parts', () => {
  it.each(Object.entries(PART_READERS))('%s', (_name, prepare) => {
    const growth = superLinearGrowth((count) => {
      const read = prepare(count);
      return () => attempt(read);
    }, PARTS_MAX);
    expect(growth).toBeUndefined();
  });
});

function reading<Input>(read: (input: Input) => unknown, write: (count: number) => Input) {
  return (count: number): (() => unknown) => {
    const input = write(count);
    return () => read(input);
  };
}

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function repeated<T>(count: number, value: T): T[] {
  return many(count, () => value);
}

function fields(count: number): object {
  return Object.fromEntries(many(count, (index) => [`field${index}`, {}]));
}

function expectLinear(read: (text: string) => unknown, start: string, piece: string, end: string): void {
  const growth = superLinearGrowth((length) => {
    const text = start + piece.repeat(Math.ceil(length / piece.length)) + end;
    return () => attempt(() => read(text));
  }, 64 * 1024);
  expect({ start, piece, end, growth }).toEqual({ start, piece, end, growth: undefined });
}

/** An error is as valid as a result here, except a stack overflow. */
function attempt(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof Error) || error instanceof RangeError) throw error;
  }
}

function requestWith(authorization: string): Parameters<typeof bearerToken>[0] {
  const headers: IncomingMessage['headers'] = { authorization };
  return { headers } as Parameters<typeof bearerToken>[0];
}

function playerOf(addresses: readonly string[], languageCode: string): unknown {
  const track = (baseUrl: string, index: number): unknown => ({
    baseUrl: `/api/timedtext?${baseUrl}`,
    languageCode: index % 2 === 0 ? languageCode : 'en',
    name: { simpleText: baseUrl },
  });
  return {
    playabilityStatus: { status: 'OK', reason: languageCode },
    videoDetails: { videoId: VIDEO_ID, lengthSeconds: languageCode },
    captions: {
      playerCaptionsTracklistRenderer: {
        captionTracks: addresses.map(track),
        audioTracks: addresses.map(() => ({ audioTrackId: languageCode, defaultCaptionTrackIndex: 0 })),
      },
    },
  };
}

function chooseAmong(player: unknown): void {
  const reading = readPlayer(player, VIDEO_ID);
  if (reading.kind !== 'tracks') throw new Error(reading.kind);
  selectTracks(reading.tracks, reading.defaults, []);
  selectTracks(reading.tracks, reading.defaults, ['de', 'fr', 'en']);
}

function channelOf(ownerUrls: readonly string[]): unknown {
  return { metadata: { channelMetadataRenderer: { externalId: CHANNEL_ID, title: 'x', ownerUrls } } };
}

function playlistOf(items: readonly unknown[], count: string): unknown {
  const contents = [{ itemSectionRenderer: { contents: items } }];
  return {
    header: { playlistHeaderRenderer: { title: { simpleText: count }, numVideosText: { simpleText: count } } },
    contents: {
      twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { content: { sectionListRenderer: { contents } } } }] },
    },
  };
}

function lockupOf(text: string): unknown {
  const badge = { thumbnailBadgeViewModel: { text, badgeStyle: text } };
  const overlays = [{ thumbnailBottomOverlayViewModel: { badges: [badge] } }];
  const image = { sources: [{ url: text, width: text }] };
  const metadataRows = [{ metadataParts: [{ text: { content: text } }] }];
  return {
    lockupViewModel: {
      contentId: VIDEO_ID,
      contentImage: { thumbnailViewModel: { image, overlays } },
      metadata: {
        lockupMetadataViewModel: {
          title: { content: text },
          metadata: { contentMetadataViewModel: { metadataRows } },
        },
      },
    },
  };
}

function oldVideoOf(text: string): unknown {
  const videoInfo = { runs: [{ text }, { text }] };
  return {
    playlistVideoRenderer: {
      videoId: VIDEO_ID,
      title: { runs: [{ text }] },
      lengthText: { simpleText: text },
      videoInfo,
    },
  };
}
