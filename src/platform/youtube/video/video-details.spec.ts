import { describe, expect, it } from '@jest/globals';
import { NO_DETAILS } from '../../../domain/transcript.js';
import { mergeDetails } from './video-details.js';

const track = { languageCode: 'en', name: 'English', generated: false };

describe('mergeDetails', () => {
  it('keeps what was known where nothing new is told', () => {
    const known = { ...NO_DETAILS, durationSeconds: 5, viewCount: 0, captionTracks: [track] };
    expect(mergeDetails(known, NO_DETAILS)).toEqual(known);
    expect(mergeDetails(known, { publishedAt: '2026-01-01T00:00:00.000Z' })).toEqual({
      ...known,
      publishedAt: '2026-01-01T00:00:00.000Z',
    });
  });

  it('tracks that one client has seen are not undone by one that sees none', () => {
    expect(mergeDetails({ ...NO_DETAILS, captionTracks: [track] }, { captionTracks: [] }).captionTracks).toEqual([
      track,
    ]);
    expect(mergeDetails(NO_DETAILS, { captionTracks: [] }).captionTracks).toEqual([]);
    expect(mergeDetails({ ...NO_DETAILS, captionTracks: [] }, { captionTracks: [track] }).captionTracks).toEqual([
      track,
    ]);
  });
});
