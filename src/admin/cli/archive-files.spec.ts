import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../test/texts/any-text.js';
import { archiveFileName } from './archive-files.js';

describe('the name of a file', () => {
  const nameOf = (title: string | null, publishedAt: string | null = null): string =>
    archiveFileName({ videoId: 'hl-regatta_', title, publishedAt }, 'markdown');

  it('has the date when it is known, the title and the ID', () => {
    expect(nameOf('Regatta: day 1/2', '2026-05-21T11:22:05Z')).toBe('2026-05-21 Regatta day 1 2 [hl-regatta_].md');
    expect(nameOf('港の灯台')).toBe('港の灯台 [hl-regatta_].md');
    for (const title of [null, ' ??? ', ' - ', '. .']) expect(nameOf(title)).toBe('[hl-regatta_].md');
  });

  it('is neither an option of a command nor hidden', () => {
    expect(nameOf('-rf --help')).toBe('rf --help [hl-regatta_].md');
    expect(nameOf('? - .NET in 100 seconds')).toBe('NET in 100 seconds [hl-regatta_].md');
    expect(nameOf('.NET', '2026-05-21T11:22:05Z')).toBe('2026-05-21 .NET [hl-regatta_].md');
  });

  it('is within the limits of common file systems for any title', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 300 }), (title) => {
        const name = nameOf(title);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
        expect(name).toMatch(/^(?![-. ])[^<>:"/\\|?*\p{Cc}]*\[hl-regatta_\]\.md$/u);
      }),
    );
  });
});
