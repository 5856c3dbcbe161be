import { describe, expect, it } from '@jest/globals';
import { superLinearGrowth } from '../test/cpu/linear-time.js';
import { areLanguages, normalizeLanguages } from './domain/language-codes.js';
import { parseChannelReference } from './domain/references/channel-reference.js';
import type { Segment } from './domain/transcript.js';
import { parsePlaylistReference } from './domain/references/playlist-reference.js';
import { parseVideoReference } from './domain/references/video-reference.js';
import { createRedactor } from './observability/logging/logger.js';
import { normalized } from './mcp/tools/search-tool.js';
import { redactApiKeys } from './domain/api-key-text.js';
import { decodeEntities, plainText, readCaptions } from './platform/youtube/video/captions.js';
import { findHandle } from './platform/youtube/channel/channel-page.js';
import { classifyResponse, readHtmlKind } from './platform/youtube/egress/upstream-response.js';
import { readFeed } from './platform/youtube/channel/list-additions.js';
import { readPlayerId, readSignatureTimestamp } from './platform/youtube/video/web-proofs.js';
import { readPlayer } from './platform/youtube/video/player-response.js';
import { selectTracks } from './platform/youtube/video/player-tracks.js';
import { escapeMarkdown, paragraphs } from './transcripts/formats/markdown.js';

const VIDEO_ID = 'aaaaaaaaaaa';
const CHANNEL_ID = `UC${'a'.repeat(22)}`;

/** Repeated to fill a text, between a start that makes the parser begin its work and an end that makes it fail. */
const PIECES = [
  ' ',
  '\n',
  '\t\u00a0',
  '\u200b',
  '\u0301',
  '𝒳',
  '\ud83d',
  '<i ',
  '<i a= ',
  '<br ',
  " t='",
  ' t="',
  ' t=',
  '<text start="0">',
  '<p t="0">',
  'class  =  "',
  'is a private',
  "content isn't available, ",
  'not ',
  'Bearer ',
  ...'< > <i a= <br </c. <c.a <!-- <? & &# &#1 &amp; &amp;amp; " \' <s> / // @ % %25 %C3%A9 . , - : 0 9, 1: a en, A'.split(
    ' ',
  ),
  ...'?exp= &exp=x ?exp=xp &tlang youtube.com/ www. http:// ctk_ ctk_a [ { [" {"a": class= action=" ;charset='.split(
    ' ',
  ),
];
const ENDS = ['', '\u0000>x"/>'];

/** Parsers of untrusted text, with starts that each of them accepts. */
const TEXT_READERS: Readonly<Record<string, { begin: readonly string[]; read: (text: string) => unknown }>> = {
  plainText: { begin: ['', '<i', '<font a=', '</c.', '<br', '<v', '<00'], read: plainText },
  decodeEntities: { begin: ['', '&', '&#xd'], read: decodeEntities },
  readCaptions: {
    begin: [
      '',
      '<?xml ',
      '<transcript>',
      '<transcript><text start="0" dur="1">',
      '<timedtext><p t="0">',
      '{"events":',
      '{"events":[{"segs":[{"utf8":"<i ',
    ],
    read: readCaptions,
  },
  readFeed: { begin: ['', '<feed><entry><published>', '<feed><entry '], read: readFeed },
  classify: {
    begin: ['', '<html>', '<!doctype html'],
    read: (text) => classifyResponse(200, { 'content-type': text }, text),
  },
  readHtmlKind: { begin: ['', 'class', 'action="https://consent.'], read: readHtmlKind },
  readPlayerId: { begin: ['', '/s/player/', '\\/s\\/player\\/a'], read: readPlayerId },
  readSignatureTimestamp: { begin: ['', 'sts:', 'signatureTimestamp '], read: readSignatureTimestamp },
  parseChannelReference: { begin: ['', '@', 'https://www.youtube.com/', 'youtube.com/@'], read: parseChannelReference },
  parseVideoReference: {
    begin: ['', 'https%3A%2F%2F', 'https://youtu.be/', 'youtube.com/watch?v='],
    read: parseVideoReference,
  },
  parsePlaylistReference: { begin: ['', 'PL', 'youtube.com/playlist?list='], read: parsePlaylistReference },
  areLanguages: { begin: ['', 'en-'], read: (text) => areLanguages(text.split(',')) && normalizeLanguages([text]) },
  redactApiKeys: { begin: ['', 'ctk_', 'eyJ', 'eyJhbGciOiJS.'], read: redactApiKeys },
  createRedactor: { begin: ['', '://', 'whsec_'], read: createRedactor('a'.repeat(32), '"'.repeat(32)) },
  escapeMarkdown: { begin: ['', '&', 'www'], read: escapeMarkdown },
  paragraphs: { begin: ['', '.'], read: (text) => paragraphs(VIDEO_ID, spokenTwice(text)) },
  normalized: { begin: [''], read: normalized },
};

function spokenTwice(text: string): Segment[] {
  return [0, 50].map((start) => ({ text, start, duration: 1 }));
}

describe('the time of a parser of untrusted text is linear in the length of the text', () => {
  it.each(Object.entries(TEXT_READERS))('%s', (_name, { begin, read }) => {
    for (const start of begin) {
      for (const piece of PIECES) for (const end of ENDS) expectLinear(read, start, piece, end);
    }
  });
});

/** Quadratic work on so many parts takes more than the limit even at a nanosecond for each pair. */
const PARTS_MAX = 16 * 1024;

const LINE = ` ${'x '.repeat(20)}`;

/** Parsers of untrusted documents and JSON, by the part that is repeated. */
const PART_READERS: Readonly<Record<string, (count: number) => () => unknown>> = {
  'captions of many events': reading(readCaptions, (count) =>
    JSON.stringify({ events: many(count, (index) => ({ tStartMs: -index, segs: [{ utf8: 'a' }] })) }),
  ),
  'captions of many cues in the wrong order': reading(readCaptions, (count) => {
    const cues = many(count, (index) => `<text start="${count - index}">a</text>`);
    return `<transcript>${cues.join('')}</transcript>`;
  }),
  'a cue of many attributes': reading(
    readCaptions,
    (count) => `<transcript><text ${' start= xstart="1"'.repeat(count)}>a</text></transcript>`,
  ),
  'captions of many cues with two attributes': reading(
    readCaptions,
    (count) => `<transcript>${'<text a="start" start="1">a</text>'.repeat(count)}</transcript>`,
  ),
  'a playability of many texts': reading(
    (player) => readPlayer(player, VIDEO_ID),
    (count) => ({
      playabilityStatus: { status: 'ERROR', messages: repeated(count, LINE), screen: 'is a '.repeat(count) },
    }),
  ),
  'a feed of many entries': reading(
    readFeed,
    (count) => `<feed>${'<entry><yt:videoId>aaaaaaaaaaa</yt:videoId></entry>'.repeat(count)}</feed>`,
  ),
  'a page of many links to other channels': reading(
    (page) => findHandle(page, CHANNEL_ID),
    (count) => repeated(count, { browseEndpoint: { browseId: 'UC', canonicalBaseUrl: LINE } }),
  ),
  'a video of many tracks': reading(
    (player) => readPlayer(player, VIDEO_ID),
    (count) => playerOf(repeated(count, LINE), 'x'.repeat(count)),
  ),
  'a choice among many tracks, one with a long code': reading(chooseAmong, (count) =>
    playerOf(repeated(count, LINE), 'x'.repeat(8 * count)),
  ),
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
