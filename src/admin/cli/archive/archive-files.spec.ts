import { describe, expect, it } from '@jest/globals';
import { readIndex, writeIndex, type ArchiveIndex } from './archive-files.js';

const NOW = new Date('2026-11-22T10:00:00Z');
const VIDEO = { videoId: 'hl-regatta_', title: null, url: 'https://www.youtube.com/watch?v=hl-regatta_' };

describe('the index of an archive', () => {
  const index: ArchiveIndex = {
    channel: { id: 'UCharbourlight__________', name: 'Harbour "Light"', handle: null },
    format: 'markdown',
    languages: ['en'],
    limit: null,
    since: 'hl-tidecam_',
    complete: true,
    videos: [
      { ...VIDEO, publishedAt: null, file: '00001 [hl-regatta_].md', error: null },
      { ...VIDEO, publishedAt: null, file: null, error: { code: 'video_private', message: 'No.', retryable: false } },
    ],
  };

  it('is read as it was written, with its counts', () => {
    const text = writeIndex(index, NOW);
    expect(readIndex(Buffer.from(text))).toEqual(index);
    expect(JSON.parse(text)).toMatchObject({
      updatedAt: NOW.toISOString(),
      summary: { total: 2, succeeded: 1, failed: 1 },
    });
  });

  it.each(['', '{}', '[]', '{"channel":', JSON.stringify({ ...index, format: 'srt' })])(
    'is not read from %j',
    (text) => {
      expect(readIndex(Buffer.from(text))).toBeUndefined();
    },
  );
});
