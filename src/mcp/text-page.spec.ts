import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { storedText } from '../../test/texts/stored-text.js';
import type { Entry } from '../transcripts/delivery/transcript-events.js';
import { TextPage, type PageForm } from './text-page.js';

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
  return {
    videoId,
    ok: true,
    metadata,
    transcript: storedText(JSON.stringify({ en: segments })),
    cached: true,
    tracks: {},
  };
}

const FORM: PageForm = { maxChars: 2_000, headingLevel: 2, languages: [], range: [0, null] };

/** All pages of the entries, as a client reads them with cursors. */
async function pagesOf(entries: readonly Entry[], maxChars: number): Promise<string[]> {
  const pages: string[] = [];
  let page = new TextPage({ ...FORM, maxChars });
  for (const one of entries) {
    let sent = await page.add(one, 0);
    while (sent !== undefined && pages.length < 2_000) {
      pages.push(page.text);
      page = new TextPage({ ...FORM, maxChars });
      sent = await page.add(one, sent);
    }
  }
  pages.push(page.text);
  return pages;
}

const line = fc.oneof(
  fc.constantFrom('Good morning.', 'and', '今日は世界', '*#[x](y)', '\n'),
  fc.nat(900).map((length) => 'x'.repeat(length)),
  fc.nat(900).map((length) => '*'.repeat(length)),
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
            // No page ends within an escaped character.
            expect(page).not.toMatch(/(?<!\\)(?:\\\\)*\\$/);
          }
          const joined = pages.map((page) => page.replace(/^… /, '')).join('');
          expect(joined.replace(/\s/g, '')).toBe(whole.replace(/\s/g, ''));
        },
      ),
      { numRuns: 150 },
    );
  });

  it('have the chunks of what is said in the range, each as a paragraph', async () => {
    const page = new TextPage({ ...FORM, range: [7, 28], chunkSeconds: 15 });
    await page.add(entry('abcdefghijk', ['One', 'two', 'three', 'four', 'five']), 0);
    const link = 'https://youtu.be/abcdefghijk?t=';
    expect(page.text).toContain(`[0:07](${link}7) two three\n\n[0:21](${link}21) four\n`);
    expect(page.text).not.toContain('One');
  });

  it('say so when nothing is said in the range', async () => {
    const page = new TextPage({ ...FORM, range: [100, 200] });
    await page.add(entry('abcdefghijk', ['Good morning.']), 0);
    expect(page.text).toContain('Nothing is said in this part of the video.');
  });
});
