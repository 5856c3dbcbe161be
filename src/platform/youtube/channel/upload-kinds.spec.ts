import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Upload, VideoKind } from '../../../domain/transcript.js';
import { withDates, withKinds } from './upload-kinds.js';

function upload(videoId: string, kind: VideoKind | null = null): Upload {
  return {
    ...{ videoId, kind, title: null, url: '', publishedAt: null, publishedText: null, durationSeconds: null },
    ...{ viewCount: null, thumbnailUrl: null, failure: null },
  };
}

const kinds = (uploads: readonly Upload[]) => uploads.map(({ kind }) => kind);

describe('withKinds', () => {
  const uploads = ['a', 'b', 'c', 'd'].map((id) => upload(id));

  it('distinguishes Shorts from videos within the range of the list of Shorts', () => {
    expect(kinds(withKinds(uploads, { ids: ['b'], complete: false }))).toEqual(['video', 'short', null, null]);
    expect(kinds(withKinds(uploads, { ids: ['b'], complete: true }))).toEqual(['video', 'short', 'video', 'video']);
    expect(kinds(withKinds(uploads, { ids: ['b', 'older'], complete: false }))).toEqual([
      'video',
      'short',
      'video',
      'video',
    ]);
  });

  it('marks all uploads of a channel without Shorts as videos, and none without a list of Shorts', () => {
    expect(kinds(withKinds(uploads, { ids: [], complete: true }))).toEqual(Array(4).fill('video'));
    expect(kinds(withKinds(uploads, { ids: [], complete: false }))).toEqual(Array(4).fill(null));
    expect(kinds(withKinds(uploads, null))).toEqual(Array(4).fill(null));
  });

  it('does not change live and upcoming videos', () => {
    const live = [upload('a', 'live'), upload('b', 'upcoming')];
    expect(kinds(withKinds(live, { ids: ['a', 'b'], complete: true }))).toEqual(['live', 'upcoming']);
  });

  it('never marks a Short as a video, for any length of the list', () => {
    const channel = fc.array(fc.boolean(), { maxLength: 60 });
    fc.assert(
      fc.property(channel, fc.nat(60), fc.nat(60), (shortFlags, listedCount, readCount) => {
        const all = shortFlags.map((_, index) => `v${index}`);
        const shorts = all.filter((_, index) => shortFlags[index]);
        const ids = shorts.slice(0, readCount);
        const listed = withKinds(
          all.slice(0, listedCount).map((id) => upload(id)),
          { ids, complete: ids.length === shorts.length },
        );
        for (const { videoId, kind } of listed) {
          if (shorts.includes(videoId)) expect(kind).not.toBe('video');
          else expect(kind).not.toBe('short');
        }
      }),
    );
  });
});

describe('withDates', () => {
  it('adds only the dates in the feed', () => {
    const dated = withDates([upload('a'), upload('b')], new Map([['a', '2026-05-21T11:22:05.000Z']]));
    expect(dated.map(({ publishedAt }) => publishedAt)).toEqual(['2026-05-21T11:22:05.000Z', null]);
    expect(withDates([upload('a')], null)).toEqual([upload('a')]);
  });
});
