import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { storedText } from '../../test/stored-text.js';
import type { Entry } from '../transcripts/transcript-events.js';
import { cutBefore, TextPage, type PageForm } from './text-page.js';

const metadata = {
  title: 'A title',
  url: 'https://www.youtube.com/watch?v=abcdefghijk',
  publishedAt: null,
  publishedText: null,
  durationSeconds: null,
  viewCount: null,
  thumbnailUrl: null,
  kind: null,
  captionTracks: null,
};

function entry(videoId: string, lines: readonly string[] | undefined): Entry {
  if (!lines) {
    const error = { code: 'video_private' as const, message: 'This video is private.', retryable: false };
    return { videoId, ok: false, metadata, error };
  }
  const segments = lines.map((text, index) => ({ text, start: index * 7, duration: 7 }));
  return { videoId, ok: true, metadata, transcript: storedText(JSON.stringify({ en: segments })), cached: true };
}

const FORM: PageForm = { maxChars: 2_000, headingLevel: 2, languages: [], range: [0, null] };

/** All pages of the entries, as a client reads them with cursors. */
async function pagesOf(entries: readonly Entry[], maxChars: number): Promise<string[]> {
  const pages: string[] = [];
  let rest = entries;
  let page: TextPage | undefined;
  do {
    page = new TextPage({ ...FORM, maxChars }, page?.next);
    for (const one of rest) await page.add(one);
    pages.push(page.text);
    const { next } = page;
    if (next) rest = rest.slice(rest.findIndex(({ videoId }) => videoId === next.videoId));
  } while (page.next && pages.length < 2_000);
  return pages;
}

const line = fc.oneof(
  fc.constantFrom('Good morning.', 'and', '今日は世界', '*#[x](y)', '\n'),
  fc.nat(900).map((length) => 'x'.repeat(length)),
  fc.nat(400).map((length) => '😀'.repeat(length)),
);
const lines = fc.option(fc.array(line, { maxLength: 20 }), { nil: undefined });

describe('the pages of a text', () => {
  it('together are the whole text, each within its maximum, whatever the texts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(lines, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 900, max: 4_000 }),
        async (texts, maxChars) => {
          const entries = texts.map((text, index) => entry(`video-${index}`.padEnd(11, '_'), text));
          const [whole = '', ...more] = await pagesOf(entries, 1_000_000);
          expect(more).toEqual([]);
          const pages = await pagesOf(entries, maxChars);
          for (const page of pages) {
            expect(page.length).toBeLessThanOrEqual(maxChars);
            expect(page.length).toBeGreaterThan(0);
            expect(page.isWellFormed()).toBe(true);
          }
          const joined = pages.map((page) => page.replace(/^… /, '')).join('');
          expect(joined.replace(/\s/g, '')).toBe(whole.replace(/\s/g, ''));
        },
      ),
      { numRuns: 150 },
    );
  });

  it('are stale when the transcript has changed', async () => {
    const page = new TextPage(FORM, { offset: 10, crc32: 1 });
    await expect(page.add(entry('abcdefghijk', ['Other words.']))).rejects.toThrow('the text has changed');
  });

  it('fail when a video fails of which earlier pages have a part, so that the same cursor can be retried', async () => {
    const failed = entry('abcdefghijk', undefined);
    await expect(new TextPage(FORM, { offset: 10, crc32: 1 }).add(failed)).rejects.toThrow('This video is private.');
    const page = new TextPage(FORM, { offset: 0, crc32: null });
    await page.add(failed);
    expect(page.text).toContain('no transcript');
  });

  it('say so when nothing is said in the range', async () => {
    const page = new TextPage({ ...FORM, range: [100, 200] });
    await page.add(entry('abcdefghijk', ['Good morning.']));
    expect(page.text).toContain('Nothing is said in this part of the video.');
  });

  it('end at a paragraph, else at a word, else at a character', () => {
    expect(cutBefore('one\n\ntwo three', 9)).toBe(4);
    expect(cutBefore('one two three', 9)).toBe(7);
    expect(cutBefore('onetwothree', 9)).toBe(9);
    expect(cutBefore('a😀b', 2)).toBe(1);
    expect(cutBefore('a\\*b', 2)).toBe(1);
    expect(cutBefore('a\\\\b', 3)).toBe(3);
    expect(cutBefore('\\\\\\*b', 3)).toBe(2);
  });
});
