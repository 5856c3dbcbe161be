import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { YoutubeClient } from '../../src/config/environment.js';
import { DomainError } from '../../src/domain/errors.js';
import { at, asString } from '../../src/platform/youtube/response-parsing.js';
import { type Adapter, context, end, openAdapter } from '../youtube/adapter.js';
import { readRecordings, type Replay, startReplay } from './replay.js';

const folder = process.env['RECORDINGS_DIR'];
if (!folder) throw new Error('Set RECORDINGS_DIR to the folder of the recordings.');
const recordings = readRecordings(folder);

type Read = (name: string) => Promise<string>;

let replay: Replay;
let adapter: Adapter | undefined;

beforeAll(async () => {
  replay = await startReplay(folder, {});
});

beforeEach(() => replay.respondAs(null));
afterEach(() => adapter?.close());
afterAll(() => replay.close());

async function open(clients: YoutubeClient[] = ['VISIONOS']): Promise<Adapter['platform']> {
  adapter = await openAdapter(replay.url, { YOUTUBE_CLIENTS: clients, PUBLISH_DATES: 'exact' });
  return adapter.platform;
}

/** The argument of the recorded request, or the video that the response names when the request was not recorded. */
function argumentOf(name: string, ...path: string[]): string {
  const { request, body } = recordings.get(name) ?? { request: null, body: 'null' };
  const response: unknown = body.startsWith('{') ? JSON.parse(body) : null;
  return asString(at(request, ...path)) ?? asString(at(response, 'videoDetails', 'videoId')) ?? 'aaaaaaaaaaa';
}

async function outcomeOf<T>(reading: Promise<T>, say: (value: T) => string): Promise<string> {
  try {
    return say(await reading);
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
}

const channel: Read = async (name) => {
  replay.respondAs(name);
  const reading = (await open()).readChannel(argumentOf(name, 'browseId'), context());
  return outcomeOf(reading, (read) =>
    read.name !== '' && read.handle?.startsWith('@') ? 'named, with a handle' : 'named',
  );
};

const uploads: Read = async (name) => {
  replay.respondAs(name);
  const reading = (await open()).listUploads(`UC${'x'.repeat(22)}`, 25, context());
  return outcomeOf(reading, ({ uploads, complete }) => {
    const failures = new Set(uploads.map(({ failure }) => failure ?? 'free'));
    return `${uploads.length} ${[...failures].join()}${complete ? '' : ', and more'}`;
  });
};

const resolve: Read = async (name) => {
  replay.respondAs(name);
  const reading = (await open()).resolveChannel({ kind: 'handle', handle: 'whoever' }, context());
  return outcomeOf(reading, (id) => (/^UC[\w-]{22}$/.test(id) ? 'an ID' : id));
};

/** One video through one client; its text is the recorded one, unless every response is a page. */
const video =
  (client: YoutubeClient, everything = false): Read =>
  async (name) => {
    const path = recordings.get(name)?.path.includes('reel') ? ['playerRequest', 'videoId'] : ['videoId'];
    if (everything) replay.respondAs(name);
    else replay.playAs(name);
    const outcome = await (await open([client])).readVideo(argumentOf(name, ...path), [], context());
    return `${end(outcome)}${outcome.details.publishedAt === null ? '' : ', dated'}`;
  };

const watched = video('VISIONOS');
const reel = video('ANDROID_REEL', true);
const page = video('VISIONOS', true);

/** Every recording: how it is parsed as a response of the platform, and what the adapter reports. */
const OUTCOMES: Readonly<Record<string, readonly [Read, string]>> = {
  'channel-age-restricted': [channel, 'named'],
  // Every request gets this 400, as those of a version that is no longer served.
  'channel-bad-browse-id': [channel, 'upstream_failure'],
  'channel-carousel-header': [channel, 'named'],
  'channel-gone-3': [channel, 'channel_not_found'],
  'channel-gone-4': [channel, 'channel_not_found'],
  'channel-gone-6': [channel, 'channel_not_found'],
  'channel-livestreams': [channel, 'named, with a handle'],
  'channel-terminated-1': [channel, 'channel_not_found'],
  'channel-terminated-2': [channel, 'channel_not_found'],
  'channel-videos-creativecommons': [channel, 'named, with a handle'],
  'channel-videos-creativecommons-page2': [uploads, '30 free, and more'],
  'channel-videos-gronkh': [channel, 'named, with a handle'],
  // A feed only adds dates: neither one nor its 404 is a list of uploads.
  'feed-kurzgesagt': [uploads, 'upstream_failure'],
  'feed-not-found': [uploads, 'upstream_failure'],
  'html-consent-page': [page, 'upstream_blocked'],
  'html-too-many-requests': [page, 'upstream_blocked'],
  'player-android-age-restricted': [watched, 'video_age_restricted'],
  'player-android-ok': [watched, 'ok'],
  // The original language's track is the one that needs the token; the others are no replacement for it.
  'player-android-po-token-required': [watched, 'upstream_blocked'],
  // The caption response is the reel itself, which is not a caption document.
  'player-android-reel-cclicensed': [reel, 'upstream_failure'],
  'player-android-reel-live': [reel, 'video_live'],
  'player-android-reel-made-for-kids': [reel, 'upstream_failure'],
  // Every response is the recording, so no client plays the video.
  'player-android-reel-music-premium': [reel, 'video_unavailable'],
  'player-android-reel-nonexistent': [reel, 'video_unavailable'],
  'player-android-reel-paid': [reel, 'video_members_only'],
  'player-android-reel-private': [reel, 'video_private'],
  'player-android-reel-restricted': [reel, 'video_unavailable'],
  'player-android-request-blocked': [watched, 'upstream_blocked'],
  'player-android-transcripts-disabled': [watched, 'transcript_unavailable'],
  'player-visionos-audio-languages': [watched, 'ok'],
  'player-visionos-cclicensed': [watched, 'ok'],
  'player-visionos-live': [watched, 'video_live'],
  // Only VISIONOS is used here; the reel plays this video.
  'player-visionos-made-for-kids-unplayable': [watched, 'video_unavailable'],
  // Made for its dates alone: it has no playability.
  'player-web-microformat-cclicensed': [watched, 'upstream_failure, dated'],
  'player-web-microformat-made-for-kids': [watched, 'upstream_failure, dated'],
  'playlist-members-only-header': [uploads, 'upstream_failure'],
  'playlist-members-only-page1': [uploads, '100 video_members_only, and more'],
  // The channel's page has the same alert.
  'playlist-shorts-none': [uploads, 'channel_not_found'],
  // There is no list, so the channel is requested; the same response has no information about it.
  'playlist-unavailable': [uploads, 'upstream_failure'],
  'resolve-c-name-jeffgeerling': [resolve, 'an ID'],
  'resolve-handle-gronkh': [resolve, 'an ID'],
  'resolve-handle-unknown': [resolve, 'channel_not_found'],
  'resolve-user-creativecommons': [resolve, 'an ID'],
  'timedtext-xml': [() => video('VISIONOS')('player-visionos-cclicensed'), 'ok'],
  'uploads-playlist-header': [uploads, 'upstream_failure'],
  'uploads-playlist-page1': [uploads, '100 free, and more'],
  'uploads-playlist-page2': [uploads, '50 free'],
  // Visitor data instead of a player response.
  'visitor-id-android': [watched, 'upstream_failure'],
  'visitor-id-visionos': [watched, 'upstream_failure'],
  'visitor-id-web': [watched, 'upstream_failure'],
};

describe('every recording through the whole adapter', () => {
  it('has a row in the table of outcomes', () => {
    expect([...recordings.keys()].sort()).toEqual(Object.keys(OUTCOMES).sort());
  });

  it.each(Object.entries(OUTCOMES))('has the outcome of the table: %s', async (name, [read, outcome]) => {
    await expect(read(name)).resolves.toBe(outcome);
    expect(adapter?.logged.filter(({ event }) => event === 'youtube_internal_error')).toEqual([]);
  });
});
