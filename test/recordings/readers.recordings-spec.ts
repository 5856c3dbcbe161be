import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readHtmlKind } from '../../src/platform/youtube/egress/upstream-response.js';
import { readCaptions } from '../../src/platform/youtube/video/captions.js';
import { readChannelPage, readResolvedUrl } from '../../src/platform/youtube/channel/channel-page.js';
import type { Upload } from '../../src/domain/transcript.js';
import { asArray, asString, at, UnreadableError } from '../../src/platform/youtube/response-parsing.js';
import { readFeed } from '../../src/platform/youtube/channel/list-additions.js';
import { readListedUpload } from '../../src/platform/youtube/channel/listed-upload.js';
import {
  readPublishDate,
  readPlayer,
  readReel,
  type PlayerResult,
} from '../../src/platform/youtube/video/player-response.js';
import { selectTracks } from '../../src/platform/youtube/video/player-tracks.js';
import { readPlaylistPage } from '../../src/platform/youtube/channel/playlist-page.js';
import { mutationsOf } from '../pages/page-mutations.js';

const folder = process.env['RECORDINGS_DIR'];
if (folder === undefined)
  throw new Error('RECORDINGS_DIR names the folder of the recordings; without it nothing is tested');

const recordingOf = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
const bodyOf = (name: string): unknown => at(recordingOf(name), 'response', 'body');

/** The requested video; recordings without a request are identified by their response. */
function videoIdOf(name: string): string {
  const recording = recordingOf(name);
  const requested =
    at(recording, 'request', 'body', 'videoId') ?? at(recording, 'request', 'body', 'playerRequest', 'videoId');
  return asString(requested) ?? asString(at(recording, 'response', 'body', 'videoDetails', 'videoId')) ?? '';
}

const text = (body: unknown): string => (typeof body === 'string' ? body : '');

type Reader = (body: unknown, name: string) => unknown;

/** The result of a reader in one line, for the table. */
function summaryOf(read: () => unknown): string {
  try {
    return JSON.stringify(read());
  } catch (error) {
    if (error instanceof UnreadableError) return 'unreadable';
    throw error;
  }
}

function uploads(body: unknown): unknown {
  const page = readPlaylistPage(body);
  if (page.kind !== 'page') return page.kind;
  const listed = page.uploads;
  const tally = (value: (upload: Upload) => unknown) => listed.filter((each) => value(each) !== null).length;
  return {
    uploads: page.uploads.length,
    titled: tally(({ title }) => title),
    dated: tally(({ publishedText }) => publishedText),
    timed: tally(({ durationSeconds }) => durationSeconds),
    viewed: tally(({ viewCount }) => viewCount),
    pictured: tally(({ thumbnailUrl }) => thumbnailUrl),
    failures: [...new Set(page.uploads.map(({ failure }) => failure))],
    more: page.next !== null,
  };
}

const playlist = (count: number, shown: number, failures: unknown[], more: boolean) =>
  JSON.stringify({
    uploads: count,
    titled: count,
    dated: shown,
    timed: count,
    viewed: shown,
    pictured: count,
    failures,
    more,
  });

function player(reading: PlayerResult): unknown {
  if (reading.kind !== 'tracks') return reading.kind;
  const chosen = selectTracks(reading.tracks, reading.defaults, []).map(
    ({ track }) => `${track.languageCode}${track.generated ? ' generated' : ''}`,
  );
  return [
    reading.tracks.length,
    reading.tracks.filter(({ needsToken }) => needsToken).length,
    reading.defaults.audioLanguage,
    ...chosen,
  ];
}

const playerReading: Reader = (body, name) => player(readPlayer(body, videoIdOf(name)));
const reelReading: Reader = (body, name) => player(readReel(body, videoIdOf(name)));
const channel: Reader = (body) => {
  const page = readChannelPage(body);
  if (page.kind === 'age-gated') return [page.kind, page.name !== null];
  return page.kind === 'channel' ? [page.kind, page.channel.handle?.startsWith('@')] : page.kind;
};
const feed: Reader = (body) => readFeed(text(body)).size;
const visitorData: Reader = (body) => asString(at(body, 'responseContext', 'visitorData')) !== null;
const resolved: Reader = (body) => readResolvedUrl(body) !== null;

/** Every recording, its reader, and the expected result. */
const RECORDINGS: Readonly<Record<string, [Reader, string]>> = {
  'channel-age-restricted': [channel, '["age-gated",true]'],
  'channel-bad-browse-id': [channel, 'unreadable'],
  // A topic channel of the platform has no handle.
  'channel-carousel-header': [channel, '"topic"'],
  'channel-gone-3': [channel, '"terminated"'],
  'channel-gone-4': [channel, '"terminated"'],
  'channel-gone-6': [channel, '"terminated"'],
  'channel-livestreams': [channel, '["channel",true]'],
  'channel-terminated-1': [channel, '"terminated"'],
  'channel-terminated-2': [channel, '"terminated"'],
  'channel-videos-creativecommons': [channel, '["channel",true]'],
  'channel-videos-creativecommons-page2': [uploads, playlist(30, 30, [null], true)],
  'channel-videos-gronkh': [channel, '["channel",true]'],
  'feed-kurzgesagt': [feed, '15'],
  'feed-not-found': [feed, 'unreadable'],
  'html-consent-page': [(body) => readHtmlKind(text(body)), '"consent"'],
  'html-too-many-requests': [(body) => readHtmlKind(text(body)), '"captcha"'],
  'player-android-age-restricted': [playerReading, '"age-restricted"'],
  'player-android-ok': [playerReading, '[9,0,null,"en"]'],
  'player-android-po-token-required': [playerReading, '[9,1,null,"en"]'],
  'player-android-reel-cclicensed': [reelReading, '[2,0,null,"en"]'],
  'player-android-reel-live': [reelReading, '"live"'],
  'player-android-reel-made-for-kids': [reelReading, '[1,0,null,"en generated"]'],
  'player-android-reel-music-premium': [reelReading, '"unplayable"'],
  'player-android-reel-nonexistent': [reelReading, '"unavailable"'],
  'player-android-reel-paid': [reelReading, '"members-only"'],
  'player-android-reel-private': [reelReading, '"private"'],
  'player-android-reel-restricted': [reelReading, '"country-restricted"'],
  'player-android-request-blocked': [playerReading, '"bot-check"'],
  'player-android-transcripts-disabled': [playerReading, '"no-captions"'],
  'player-visionos-audio-languages': [playerReading, '[19,0,"en","en"]'],
  'player-visionos-cclicensed': [playerReading, '[2,0,null,"en"]'],
  'player-visionos-live': [playerReading, '"live"'],
  'player-visionos-made-for-kids-unplayable': [playerReading, '"unplayable"'],
  // The recorded date has an offset of -08:00.
  'player-web-microformat-cclicensed': [
    (body, name) => readPublishDate(body, videoIdOf(name)),
    '"2015-01-28T05:14:36Z"',
  ],
  'player-web-microformat-made-for-kids': [
    (body, name) => readPublishDate(body, videoIdOf(name)),
    '"2023-01-13T21:53:57Z"',
  ],
  'playlist-members-only-header': [uploads, 'unreadable'],
  'playlist-members-only-page1': [uploads, playlist(100, 0, ['video_members_only'], true)],
  'playlist-shorts-none': [uploads, '"none"'],
  'playlist-unavailable': [uploads, '"none"'],
  'resolve-c-name-jeffgeerling': [resolved, 'true'],
  'resolve-handle-gronkh': [resolved, 'true'],
  'resolve-handle-unknown': [resolved, 'unreadable'],
  'resolve-user-creativecommons': [resolved, 'true'],
  // Four cues: one is empty and one has markup.
  'timedtext-xml': [
    (body) => readCaptions(text(body)).map((cue) => [cue.start, cue.duration, /[<>&]/.test(cue.text)]),
    '[[0,1.54,false],[1.54,4.16,false],[5.7,3.239,false]]',
  ],
  'uploads-playlist-header': [uploads, 'unreadable'],
  'uploads-playlist-page1': [uploads, playlist(100, 100, [null], true)],
  'uploads-playlist-page2': [uploads, playlist(50, 50, [null], false)],
  'visitor-id-android': [visitorData, 'true'],
  'visitor-id-visionos': [visitorData, 'true'],
  'visitor-id-web': [visitorData, 'true'],
};

describe('the recorded traffic', () => {
  it('has exactly one row in the table for each file', () => {
    const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
    expect(files.map((file) => file.slice(0, -5)).sort()).toEqual(Object.keys(RECORDINGS).sort());
  });

  it.each(Object.entries(RECORDINGS))('%s is read as the row of the table states', (name, [read, outcome]) => {
    expect(summaryOf(() => read(bodyOf(name), name))).toBe(outcome);
  });

  it.each(['channel-livestreams', 'channel-videos-gronkh', 'channel-videos-creativecommons'])(
    '%s has 30 lockups, each with every displayed field',
    (name) => {
      const tabs = asArray(at(bodyOf(name), 'contents', 'twoColumnBrowseResultsRenderer', 'tabs'));
      const grid = tabs.flatMap((tab) => asArray(at(tab, 'tabRenderer', 'content', 'richGridRenderer', 'contents')));
      const read = grid.map(readListedUpload).filter((upload) => upload !== null);
      expect(read).toHaveLength(30);
      for (const { publishedAt, kind, failure, ...shown } of read) {
        // The list of Shorts tells what is no longer than one.
        const expected = (shown.durationSeconds ?? 0) > 181 ? 'video' : null;
        expect([publishedAt, kind, failure]).toEqual([null, expected, null]);
        expect(Object.values(shown)).not.toContain(null);
      }
    },
  );

  it('gives the same tracks for a video on VISIONOS and on ANDROID', () => {
    const videoId = videoIdOf('player-visionos-cclicensed');
    const one = readPlayer(bodyOf('player-visionos-cclicensed'), videoId);
    const other = readReel(bodyOf('player-android-reel-cclicensed'), videoId);
    // Each client names another size of the thumbnail.
    const compared = (reading: PlayerResult) => 'details' in reading && { ...reading.details, thumbnailUrl: null };
    expect(compared(one)).toEqual(compared(other));
  });

  it('is read as a value or an UnreadableError, after any mutation', () => {
    for (const [name, [read]] of Object.entries(RECORDINGS)) {
      fc.assert(
        fc.property(mutationsOf(bodyOf(name)), (body) => {
          expect(typeof summaryOf(() => read(body, name) ?? null)).toBe('string');
        }),
        { numRuns: 150 },
      );
    }
  });
});
