import { describe, expect, it } from '@jest/globals';
import { unlistedVideo } from '../../domain/transcript.js';
import { metadataOf } from './transcript-events.js';

const ID = 'aaaaaaaaaaa';
const DETAILS = {
  title: 'Of the video',
  thumbnailUrl: 'https://i.ytimg.com/video.jpg',
  publishedAt: '2026-05-21T11:22:05Z',
  durationSeconds: 612,
  viewCount: 1_234,
  kind: 'video' as const,
  captionTracks: [],
};
const CHANNEL = { id: 'UCtidewater_____________', name: 'Tidewater Kitchen' };
const READ = { ...DETAILS, channel: CHANNEL, description: '0:00 Rye\n1:00 Salt\n2:00 Oven', tags: ['bread'] };

describe('the metadata of a video', () => {
  it('comes from the video itself when no list contains it', () => {
    expect(metadataOf(unlistedVideo(ID), READ)).toEqual({
      ...DETAILS,
      url: `https://www.youtube.com/watch?v=${ID}`,
      publishedText: null,
    });
  });

  it('keeps the thumbnail of the list, and has the title and the exact values of the video', () => {
    const listed = { ...unlistedVideo(ID), title: 'Of the list', thumbnailUrl: 'https://i.ytimg.com/list.jpg' };
    const expected = { ...DETAILS, thumbnailUrl: 'https://i.ytimg.com/list.jpg' };
    expect(metadataOf({ ...listed, durationSeconds: 610, viewCount: 1_200 }, READ)).toMatchObject(expected);
  });

  it('is null where neither gave a value', () => {
    const { url, ...others } = metadataOf(unlistedVideo(ID));
    expect(url).toContain(ID);
    expect(new Set(Object.values(others))).toEqual(new Set([null]));
  });

  it('has the channel where the response has none, and what is included', () => {
    const form = { withChannel: true, include: ['description', 'chapters', 'tags'] as const };
    expect(metadataOf(unlistedVideo(ID), READ, form)).toMatchObject({
      channel: CHANNEL,
      description: READ.description,
      chapters: [
        { title: 'Rye', start: 0 },
        { title: 'Salt', start: 60 },
        { title: 'Oven', start: 120 },
      ],
      tags: ['bread'],
    });
    const without = { ...READ, channel: null, description: '', tags: [] };
    const none = { channel: null, description: null, chapters: [], tags: [] };
    expect(metadataOf(unlistedVideo(ID), without, form)).toMatchObject(none);
    const unread = { channel: null, description: null, chapters: null, tags: null };
    expect(metadataOf(unlistedVideo(ID), undefined, form)).toMatchObject(unread);
  });
});
