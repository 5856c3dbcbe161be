import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  channelList,
  CHANNEL_ID,
  playlistItemList,
  VIDEO_ID,
  videoList,
} from '../../../../test/pages/data-api-responses.js';
import { mutationsOf } from '../../../../test/pages/page-mutations.js';
import { UnreadableError } from '../response-parsing.js';
import {
  readChannel,
  readChannelId,
  readDuration,
  readPlaylistItems,
  readVideoCount,
  readVideos,
} from './data-api-responses.js';

const EMPTY = { kind: 'youtube#channelListResponse', pageInfo: { totalResults: 0 } };

describe('a list of channels', () => {
  it('returns the channel', () => {
    const channel = { id: CHANNEL_ID, name: 'A channel', handle: '@a.channel' };
    expect(readChannel(channelList(), CHANNEL_ID)).toEqual(channel);
    expect(readChannelId(channelList())).toBe(CHANNEL_ID);
    expect(readVideoCount(channelList(), CHANNEL_ID)).toBe(12);
  });

  it('without items is a channel that does not exist', () => {
    expect(readChannel(EMPTY, CHANNEL_ID)).toBeNull();
    expect(readChannelId(EMPTY)).toBeNull();
    expect(readVideoCount(EMPTY, CHANNEL_ID)).toBeUndefined();
  });

  it('has no handle for an older custom URL, and no count when it is hidden', () => {
    expect(readChannel(channelList({ customUrl: 'achannel' }), CHANNEL_ID)).toMatchObject({ handle: null });
    expect(readVideoCount(channelList({}, {}), CHANNEL_ID)).toBeNull();
  });

  it.each([{}, null, [], { items: [] }, { kind: 'youtube#videoListResponse', items: [] }, { ...EMPTY, items: {} }])(
    'refuses %j, which states nothing about a channel',
    (response) => {
      expect(() => readChannelId(response)).toThrow(UnreadableError);
      expect(() => readChannel(response, CHANNEL_ID)).toThrow(UnreadableError);
    },
  );

  it('refuses another channel than the requested one', () => {
    expect(() => readChannel(channelList(), `UC${'d'.repeat(22)}`)).toThrow(UnreadableError);
    expect(() => readVideoCount(channelList(), `UC${'d'.repeat(22)}`)).toThrow(UnreadableError);
  });
});

describe('a list of playlist items', () => {
  it('returns the videos, and why one is hidden', () => {
    expect(readPlaylistItems(playlistItemList())).toEqual({
      items: [
        { videoId: VIDEO_ID, title: 'A video', publishedAt: '2026-05-21T11:22:05Z', failure: null },
        { videoId: 'bbbbbbbbb-_', title: null, publishedAt: null, failure: 'video_private' },
        { videoId: 'ccccccccccc', title: null, publishedAt: null, failure: 'video_unavailable' },
      ],
      nextPageToken: 'next',
    });
  });

  it('is unreadable when none of its entries can be read', () => {
    expect(() => readPlaylistItems({ kind: 'youtube#playlistItemListResponse', items: [{}] })).toThrow(UnreadableError);
  });
});

describe('a list of videos', () => {
  const video = (fields: object) => readVideos(videoList(fields)).get(VIDEO_ID);

  it('returns every field', () => {
    expect(video({})).toEqual({
      videoId: VIDEO_ID,
      title: 'A video',
      url: `https://www.youtube.com/watch?v=${VIDEO_ID}`,
      publishedAt: '2026-05-21T11:22:05Z',
      publishedText: null,
      durationSeconds: 754,
      viewCount: 1234,
      thumbnailUrl: 'https://i.ytimg.com/vi/x/maxres.jpg',
      kind: null,
      failure: null,
    });
  });

  it('distinguishes live, upcoming and past streams', () => {
    const stream = (liveBroadcastContent: string, liveStreamingDetails: object = {}) =>
      video({ snippet: { liveBroadcastContent }, contentDetails: { duration: 'P0D' }, liveStreamingDetails });
    expect(stream('live')).toMatchObject({ kind: 'live', failure: 'video_live', durationSeconds: null });
    expect(stream('upcoming')).toMatchObject({ kind: 'upcoming', failure: 'video_not_live_yet' });
    const actualEndTime = '2026-05-21T12:22:05Z';
    expect(stream('live', { actualEndTime })).toMatchObject({ kind: null, failure: null });
  });

  it('leaves what the API does not state null', () => {
    expect(readVideos({ kind: 'youtube#videoListResponse', items: [{ id: VIDEO_ID }] }).get(VIDEO_ID)).toMatchObject({
      ...{ title: null, publishedAt: null, durationSeconds: null, viewCount: null, thumbnailUrl: null, kind: null },
    });
  });

  it.each([
    ['PT45S', 45],
    ['PT12M34S', 754],
    ['PT1H2M3S', 3723],
    ['P1DT2H', 93_600],
    ['P0D', 0],
    ['PT', null],
    ['P', null],
    ['12:34', null],
    ['PT-5S', null],
    ['', null],
  ])('reads the duration %j as %j seconds', (text, seconds) => {
    expect(readDuration(text)).toBe(seconds);
  });
});

it('every reader returns valid values or an UnreadableError, for any JSON', () => {
  const responses = fc.oneof(fc.jsonValue(), ...[channelList(), playlistItemList(), videoList()].map(mutationsOf));
  const readers: ((response: unknown) => unknown)[] = [
    readChannelId,
    (response) => readChannel(response, CHANNEL_ID),
    (response) => readVideoCount(response, CHANNEL_ID),
    (response) => readPlaylistItems(response).items.every(({ videoId }) => /^[\w-]{11}$/.test(videoId)),
    (response) =>
      [...readVideos(response).values()].every(
        ({ durationSeconds: seconds, viewCount, thumbnailUrl }) =>
          (seconds === null || seconds > 0) &&
          (viewCount === null || viewCount >= 0) &&
          (thumbnailUrl === null || thumbnailUrl.startsWith('https://')),
      ),
  ];
  fc.assert(
    fc.property(responses, (response) => {
      for (const read of readers) {
        try {
          expect(read(response)).not.toBe(false);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableError);
        }
      }
    }),
    { numRuns: 500 },
  );
});
