import { describe, expect, it } from '@jest/globals';
import type { VideoFailureCode } from '../../../domain/transcript.js';
import { isWorthRetrying, readIndex, writeIndex, type ArchiveIndex, type IndexedVideo } from './archive-index.js';

const NOW = new Date('2026-11-22T10:00:00Z');
const VIDEO = { videoId: 'hl-regatta_', title: null, url: 'https://www.youtube.com/watch?v=hl-regatta_' };

function failed(code: VideoFailureCode, retryable: boolean, publishedAt: string | null = null): IndexedVideo {
  return { ...VIDEO, publishedAt, file: null, error: { code, message: 'No.', retryable } };
}

describe('the index of an archive', () => {
  const index: ArchiveIndex = {
    channel: { id: 'UCharbourlight__________', name: 'Harbour "Light"', handle: null },
    format: 'markdown',
    languages: ['en'],
    videos: [
      { ...VIDEO, publishedAt: null, file: '00001 [hl-regatta_].md', error: null },
      failed('video_private', false),
      { ...VIDEO, publishedAt: null, file: null, error: null },
    ],
  };

  it('is read as it was written, with its counts', () => {
    const text = writeIndex(index, NOW);
    expect(readIndex(Buffer.from(text))).toEqual(index);
    expect(JSON.parse(text)).toMatchObject({
      updatedAt: NOW.toISOString(),
      summary: { total: 3, succeeded: 1, failed: 1, pending: 1 },
    });
  });

  it.each(['', '{}', '[]', '{"channel":', JSON.stringify({ ...index, format: 'srt' })])(
    'is not read from %j',
    (text) => {
      expect(readIndex(Buffer.from(text))).toBeUndefined();
    },
  );
});

describe('a video without a file', () => {
  it.each<[what: string, video: IndexedVideo, again: boolean]>([
    ['was not fetched yet', { ...VIDEO, publishedAt: null, file: null, error: null }, true],
    ['failed for a reason that passes', failed('video_live', true), true],
    ['is private', failed('video_private', false), false],
    ['has no captions', failed('transcript_unavailable', false, '2026-11-21T09:59:59Z'), false],
    ['has no captions, of an unknown date', failed('transcript_unavailable', false), false],
    ['has no captions yet', failed('transcript_unavailable', false, '2026-11-21T10:00:01Z'), true],
    ['lacks a language and is new', failed('language_unavailable', false, '2026-11-22T09:00:00Z'), true],
  ])('is fetched by the next run unless its failure lasts (one that %s)', (_what, video, again) => {
    expect(isWorthRetrying(video, NOW)).toBe(again);
  });
});
