import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../../test/any-text.js';
import { archivedVideoId, archiveFileName } from './file-name.js';

const nameOf = (title: string | null, publishedAt: string | null = null): string =>
  archiveFileName({ videoId: 'hl-regatta_', title, publishedAt }, 42, 'markdown');

describe('the name of a file in an archive', () => {
  it('begins with the date, or with the position from the oldest when the date is not known', () => {
    expect(nameOf('Regatta', '2026-05-21T11:22:05Z')).toBe('2026-05-21 Regatta [hl-regatta_].md');
    expect(nameOf('Regatta')).toBe('00042 Regatta [hl-regatta_].md');
  });

  it.each<[what: string, title: string | null, inName: string]>([
    ['separators and reserved characters', '../a/b\\c: "d" <e> | f? *', '.. a b c d e f'],
    ['line breaks and control characters', 'a\r\nb\u0000\u001bc', 'a bc'],
    ['characters that hide or reverse text', 'a\u202egpj.exe\u200b', 'agpj.exe'],
    ['half a surrogate pair', 'a\ud83d', 'a\ufffd'],
    ['decomposed letters', 'Bru\u0308cke', 'Br\u00fccke'],
    ['other scripts and emoji', '港の灯台 🚣', '港の灯台 🚣'],
  ])('has no %s', (_what, title, inName) => {
    expect(nameOf(title)).toBe(`00042 ${inName} [hl-regatta_].md`);
  });

  it('consists of the position and the ID for a video without a title', () => {
    expect(nameOf(null)).toBe('00042 [hl-regatta_].md');
    expect(nameOf(' ??? ')).toBe('00042 [hl-regatta_].md');
  });

  it('is within the limits of file systems and names its video, for any title', () => {
    const title = fc.oneof(anyText({ maxLength: 300 }), fc.constant('👩‍👩‍👧‍👦'.repeat(40)));
    fc.assert(
      fc.property(title, fc.constantFrom(null, '2026-05-21T11:22:05Z'), (text, publishedAt) => {
        const name = nameOf(text, publishedAt);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(140);
        expect(name).not.toMatch(/[<>:"/\\|?*\p{Cc}]|[. ]$|^\./u);
        expect(name.isWellFormed()).toBe(true);
        expect(archivedVideoId(name, 'markdown')).toBe('hl-regatta_');
      }),
    );
  });

  it('is recognized among other files', () => {
    expect(archivedVideoId('00042 Regatta [hl-regatta_].json', 'json')).toBe('hl-regatta_');
    expect(archivedVideoId('00042 Regatta [hl-regatta_].json', 'markdown')).toBeUndefined();
    expect(archivedVideoId('.12-hl-regatta_.part', 'json')).toBeUndefined();
    expect(archivedVideoId('._00042 Regatta [hl-regatta_].json', 'json')).toBeUndefined();
    expect(archivedVideoId('index.json', 'json')).toBeUndefined();
  });
});
