import { describe, expect, it } from '@jest/globals';
import { unlistedVideo } from '../domain/transcript.js';
import { requestedPart } from './slice-reader.js';

const uploads = ['a', 'b', 'a', 'c'].map(unlistedVideo);

function requested(since: string | null, next: string | null = 'next'): [string[], string | null, boolean?] {
  const part = requestedPart({ uploads, next, incomplete: next === null }, since);
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
});
