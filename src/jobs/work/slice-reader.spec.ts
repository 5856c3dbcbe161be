import { describe, expect, it } from '@jest/globals';
import { unlistedVideo, type VideoKind } from '../../domain/transcript.js';
import { requestedPart } from './slice-reader.js';

const NOW_MS = Date.parse('2026-11-20T00:00:00Z');
const ALL = { since: null, kinds: [], publishedAfter: null };
const uploads = ['a', 'b', 'a', 'c'].map(unlistedVideo);

function requested(since: string | null, next: string | null = 'next'): [string[], string | null, boolean?] {
  const part = requestedPart({ uploads, next, incomplete: next === null }, { ...ALL, since }, NOW_MS);
  return [part.uploads.map(({ videoId }) => videoId), part.next];
}

describe('a page of the list', () => {
  it('is taken whole, each video once', () => {
    expect(requested(null)).toEqual([['a', 'b', 'c'], 'next']);
    expect(requested('other')).toEqual([['a', 'b', 'c'], 'next']);
  });

  it('ends the list before the video that the request names', () => {
    expect(requested('b')).toEqual([['a'], null]);
    expect(requested('a')).toEqual([[], null]);
  });

  it('is taken without other kinds, and ends at the video of since whatever its kind', () => {
    const kinds: (VideoKind | null)[] = ['short', 'video', null, 'live'];
    const mixed = kinds.map((kind, index) => ({ ...unlistedVideo(String(index)), kind }));
    const idsOf = (request: Parameters<typeof requestedPart>[1]): string[] =>
      requestedPart({ uploads: mixed, next: null, incomplete: false }, request, NOW_MS).uploads.map(
        ({ videoId }) => videoId,
      );
    expect(idsOf({ ...ALL, kinds: ['video'] })).toEqual(['1', '2']);
    expect(idsOf({ ...ALL, publishedAfter: '2026-11-01T00:00:00.000Z' })).toEqual(['0', '1', '2', '3']);
    expect(idsOf({ ...ALL, since: '3', kinds: ['short', 'live'] })).toEqual(['0', '2']);
  });
});
