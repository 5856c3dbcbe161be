import { describe, expect, it } from '@jest/globals';
import { unlistedVideo } from '../domain/transcript.js';
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

describe('the metadata of a video', () => {
  it('comes from the video itself when no list contains it', () => {
    expect(metadataOf(unlistedVideo(ID), DETAILS)).toEqual({
      ...DETAILS,
      url: `https://www.youtube.com/watch?v=${ID}`,
      publishedText: null,
    });
  });

  it('keeps the title and the thumbnail of the list, and the exact values of the video', () => {
    const listed = { ...unlistedVideo(ID), title: 'Of the list', thumbnailUrl: 'https://i.ytimg.com/list.jpg' };
    const expected = { ...DETAILS, title: 'Of the list', thumbnailUrl: 'https://i.ytimg.com/list.jpg' };
    expect(metadataOf({ ...listed, durationSeconds: 610, viewCount: 1_200 }, DETAILS)).toMatchObject(expected);
  });

  it('is null where neither gave a value', () => {
    const { url, ...others } = metadataOf(unlistedVideo(ID));
    expect(url).toContain(ID);
    expect(new Set(Object.values(others))).toEqual(new Set([null]));
  });
});
