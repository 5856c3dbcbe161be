import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RUNNING_JOB_EXAMPLE } from '../../../jobs/dto/job.dto.js';
import { anyText } from '../../../../test/any-text.js';
import { archiveFileName } from './archive-files.js';
import { progressOf } from './archive-run.js';

describe('the name of a file', () => {
  const nameOf = (title: string | null, publishedAt: string | null = null): string =>
    archiveFileName({ videoId: 'hl-regatta_', title, publishedAt }, 42, 'markdown');

  it('has the date, or the position when the date is not known, the title and the ID', () => {
    expect(nameOf('Regatta: day 1/2', '2026-05-21T11:22:05Z')).toBe('2026-05-21 Regatta day 1 2 [hl-regatta_].md');
    expect(nameOf('港の灯台')).toBe('00042 港の灯台 [hl-regatta_].md');
    for (const title of [null, ' ??? ']) expect(nameOf(title)).toBe('00042 [hl-regatta_].md');
  });

  it('is within the limits of common file systems for any title', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 300 }), (title) => {
        const name = nameOf(title);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
        expect(name).toMatch(/^00042 [^<>:"/\\|?*\p{Cc}]*\[hl-regatta_\]\.md$/u);
      }),
    );
  });
});

it('the progress has a bar, or says why nothing is fetched', () => {
  expect(progressOf(RUNNING_JOB_EXAMPLE)).toBe('[########------------] 650 of 1480 videos, 38 without a transcript');
  expect(progressOf({ ...RUNNING_JOB_EXAMPLE, state: 'listing' })).toBe('Listing uploads: 1480');
  const paused = {
    ...RUNNING_JOB_EXAMPLE,
    state: 'paused',
    reason: 'upstream_blocked',
    checkAgainSeconds: 60,
  } as const;
  expect(progressOf(paused)).toBe('YouTube blocks the requests from this address: the next attempt is in 60 s');
});
