import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Segment } from '../../domain/transcript.js';
import { entryError, type SucceededEntry } from '../delivery/transcript-events.js';
import type { Chapter } from './chapters.js';
import { documentLines, documentsOf, type DocumentDto } from './documents.js';

const METADATA = {
  ...{ title: 'Tides', url: 'https://www.youtube.com/watch?v=abcdefghijk', publishedAt: '2026-10-31T19:00:00Z' },
  ...{ publishedText: null, durationSeconds: null, viewCount: null, thumbnailUrl: null, kind: null },
  captionTracks: null,
};

const segments = fc
  .array(
    fc.record({
      text: fc.constantFrom('The tide', 'comes in.', 'Is it high?', '潮が', '満ちる。', 'So'),
      gap: fc.integer({ min: 0, max: 20_000 }),
      ms: fc.integer({ min: 0, max: 100_000 }),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((parts) => {
    let startMs = 0;
    return parts.map(({ text, gap, ms }) => ({ text, start: (startMs += gap) / 1000, duration: ms / 1000 }));
  });
const chapters = fc
  .uniqueArray(fc.integer({ min: 1, max: 600 }), { minLength: 2, maxLength: 8 })
  .map((starts) => [0, ...starts.sort((a, b) => a - b)].map((start) => ({ title: `From ${start}`, start })));
const seconds = fc.integer({ min: 15, max: 600 });

const entryOf = (
  transcript: Record<string, readonly Segment[]>,
  listed?: readonly Chapter[],
): SucceededEntry<ReadonlyMap<string, readonly Segment[]>> => ({
  ...{ videoId: 'abcdefghijk', ok: true, cached: false },
  metadata: { ...METADATA, ...(listed && { chapters: [...listed] }) },
  transcript: new Map(Object.entries(transcript)),
  tracks: { en: { name: 'English', generated: true } },
});

const isDocument = (one: object): one is DocumentDto => 'text' in one;
const withoutSpaces = (parts: readonly { text: string }[]): string =>
  parts.map(({ text }) => text.replaceAll(' ', '')).join('');

describe('the documents of an entry', () => {
  it('have the whole text once, in its order, with unique IDs and within its times', async () => {
    await fc.assert(
      fc.asyncProperty(segments, segments, chapters, seconds, async (en, de, listed, chunkSeconds) => {
        const documents = (await documentsOf(entryOf({ en, de }, listed), { chunkSeconds })).filter(isDocument);
        const of = (wanted: string) => documents.filter(({ metadata }) => metadata.language === wanted);
        expect(withoutSpaces(of('en'))).toBe(withoutSpaces(en));
        expect(withoutSpaces(of('de'))).toBe(withoutSpaces(de));
        expect(new Set(documents.map(({ id }) => id)).size).toBe(documents.length);
        for (const { metadata } of documents) expect(metadata.end).toBeGreaterThanOrEqual(metadata.start);
      }),
    );
  });

  it('end where a chapter begins, and name theirs', async () => {
    await fc.assert(
      fc.asyncProperty(segments, chapters, seconds, async (en, listed, chunkSeconds) => {
        const chapterAt = (start: number) => listed.findLast((chapter) => chapter.start <= start)?.title;
        const documents = (await documentsOf(entryOf({ en }, listed), { chunkSeconds })).filter(isDocument);
        let rest = en.map(({ text, start }) => ({ text: text.replaceAll(' ', ''), chapter: chapterAt(start) }));
        for (const { text, metadata } of documents) {
          let missing = text.replaceAll(' ', '');
          while (missing !== '') {
            const [next, ...later] = rest;
            expect([next?.chapter, missing.startsWith(next?.text ?? '?')]).toEqual([metadata.chapter, true]);
            missing = missing.slice(next?.text.length);
            rest = later;
          }
        }
        expect(rest).toEqual([]);
      }),
    );
  });

  it('link to their second, and have the channel of the response unless the video names its own', async () => {
    const entry = entryOf({ en: [{ text: 'Hello', start: 120.24, duration: 2.1 }] });
    const channel = { id: 'UCtide', name: 'Tidewater' };
    const document = {
      id: 'abcdefghijk:en:120',
      text: 'Hello',
      metadata: {
        ...{ videoId: 'abcdefghijk', title: 'Tides', channelId: 'UCtide', channelName: 'Tidewater' },
        ...{ url: 'https://youtu.be/abcdefghijk?t=120', start: 120.24, end: 122.34, chapter: null, language: 'en' },
        ...{ generated: true, publishedAt: '2026-10-31T19:00:00Z' },
      },
    };
    expect(await documentsOf(entry, { channel })).toEqual([document]);
    const own = { ...entry, metadata: { ...METADATA, channel: { id: 'UCown', name: 'Own' } } };
    expect(await documentsOf(own, { channel })).toMatchObject([{ metadata: { channelId: 'UCown' } }]);
    expect(await documentsOf(entry, {})).toMatchObject([{ metadata: { channelId: null, channelName: null } }]);
  });

  it('keep pieces that are longer than asked, and the chapters that pieces have', async () => {
    const pieces = [
      { text: 'One', start: 0, duration: 100, chapter: 'A' },
      { text: 'Two', start: 100, duration: 5, chapter: 'A' },
      { text: 'Three', start: 105, duration: 5, chapter: 'B' },
      { text: 'Four', start: 110, duration: 5, chapter: 'B' },
    ];
    const documents = (await documentsOf(entryOf({ en: pieces }), {})).filter(isDocument);
    expect(documents.map(({ text, metadata }) => [text, metadata.chapter])).toEqual([
      ['One', 'A'],
      ['Two', 'A'],
      ['Three Four', 'B'],
    ]);
  });

  it('of a video without a transcript are its error; the last line of an entry has its cursor', async () => {
    const error = entryError({ code: 'video_private' });
    const failed = await documentsOf({ videoId: 'abcdefghijk', ok: false, metadata: METADATA, error }, {});
    expect(failed).toEqual([{ id: 'abcdefghijk', error }]);
    expect(documentLines(failed)).toBe(`${JSON.stringify({ id: 'abcdefghijk', error })}\n`);
    expect(documentLines([{ id: 'a' }, { id: 'b' }], '1.x')).toBe('{"id":"a"}\n{"id":"b","cursor":"1.x"}\n');
  });
});
