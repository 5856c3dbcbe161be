import { beforeAll, describe, expect, it } from '@jest/globals';
import { longestStretch } from '../../test/cpu/longest-stretch.js';
import { nextTurn } from '../domain/waiting.js';
import type { Segment } from '../domain/transcript.js';
import { deflate, inflate, jsonOf, type TranscriptText } from '../transcripts/cache/transcript-text.js';
import { chunked, inChunks } from '../transcripts/formats/chunks.js';
import { markdownDocument } from '../transcripts/formats/markdown.js';
import { FORMAT_MEDIA_TYPES, formatEntry, type TranscriptFormat } from '../transcripts/formats/transcript-formats.js';
import type { SucceededEntry, TranscriptsEvent } from '../transcripts/delivery/transcript-events.js';
import { TextPage } from './text-page.js';
import { searchTranscript } from './tools/search-tool.js';

/** Of a text: one language of a video. Of the longest that is read (`readCaptions`) none of this work takes 50 ms. */
const CUES = 1_000;
const LINE = 'the tide comes in (and out again)';
/** Lines are read twice in Markdown and in a search, beside titles and headings. JSON has names and times beside a text. */
const MOST = { lines: 2 * CUES + 10, json: CUES * (LINE.length + 50) };

const metadata = {
  title: 'A long evening',
  url: 'https://www.youtube.com/watch?v=abcdefghijk',
  publishedAt: null,
  publishedText: null,
  durationSeconds: null,
  viewCount: null,
  thumbnailUrl: null,
  kind: null,
  captionTracks: null,
};

const transcriptOf = (cues: number, startOf = (index: number) => index * 2) =>
  new Map(
    ['en', 'de'].map((language) => [
      language,
      Array.from({ length: cues }, (_cue, index) => ({ text: LINE, start: startOf(index), duration: 2 })),
    ]),
  );

const entryOf = (transcript: TranscriptText): SucceededEntry => ({
  videoId: 'abcdefghijk',
  ok: true,
  tracks: {},
  metadata,
  transcript,
  cached: true,
});

let long: TranscriptText;
let short: TranscriptText;
beforeAll(async () => {
  long = await deflate(await jsonOf(transcriptOf(CUES)));
  short = await deflate(await jsonOf(transcriptOf(CUES / 20)));
  // As in a warm cache, where nothing waits for another thread.
  await Promise.all([inflate(long), inflate(short)]);
});

/** Checks that the work, by itself and beside the same work of another call, does no more at a stretch than one text takes. */
async function expectTurns(work: () => Promise<unknown>): Promise<void> {
  expect(await longestStretch(MOST, () => Promise.all([work(), work()]))).toBeLessThanOrEqual(1);
}

async function readAll(texts: AsyncIterable<string>): Promise<string> {
  let all = '';
  for await (const text of texts) all += text;
  return all;
}

async function* resultsOf(transcripts: readonly TranscriptText[]): AsyncGenerator<TranscriptsEvent> {
  for (const transcript of transcripts) yield await Promise.resolve({ type: 'result', entry: entryOf(transcript) });
}

async function* batchesOf(transcripts: readonly TranscriptText[]): AsyncGenerator<readonly TranscriptsEvent[]> {
  for await (const event of resultsOf(transcripts)) yield [event];
}

describe('work on cached transcripts gives way to other calls after each text', () => {
  it.each(Object.keys(FORMAT_MEDIA_TYPES) as TranscriptFormat[])('%s of a long video', (format) =>
    expectTurns(() => formatEntry(format, entryOf(long), { languages: ['en', 'de'] })),
  );

  it('Markdown of a long video in chunks', () =>
    expectTurns(() => formatEntry('markdown', entryOf(long), { languages: [], chunkSeconds: 600 })));

  it('the chunks of a long video', () =>
    expectTurns(async () => {
      const batches = inChunks(batchesOf([long]), 600, false);
      for await (const [event] of batches) expect(event).toMatchObject({ type: 'result', entry: { ok: true } });
    }));

  it('the chunks of a long video in several languages', async () => {
    const stretch = await longestStretch({ lines: CUES, json: 1 }, (count) => {
      const segment = {
        get text() {
          count('lines', 1);
          return LINE;
        },
        ...{ start: 0, duration: 2 },
      };
      const transcript = new Map(['en', 'de'].map((language) => [language, new Array<Segment>(CUES).fill(segment)]));
      return chunked(transcript, 600);
    });
    expect(stretch).toBeCloseTo(1);
  });

  it.each(['srt', 'vtt'] as const)('%s of a video whose cues start together', async (format) => {
    const text = await deflate(await jsonOf(transcriptOf(CUES, () => 0)));
    await inflate(text);
    await expectTurns(() => formatEntry(format, entryOf(text), { languages: [] }));
  });

  it('a Markdown document of many videos', () =>
    expectTurns(() =>
      readAll(markdownDocument(resultsOf([long, ...new Array<TranscriptText>(50).fill(short)]), { languages: [] })),
    ));

  it('a page of text far within a video', () =>
    expectTurns(async () => {
      const page = new TextPage({ maxChars: 2_000, headingLevel: 1, languages: ['en', 'de'], range: [0, null] });
      expect(await page.add(entryOf(long), 300)).toBeGreaterThan(300);
    }));

  it.each(['the', 'e', 'not there'])('a search for "%s" in many videos', (phrase) =>
    expectTurns(async () => {
      for (const text of [long, ...new Array<TranscriptText>(50).fill(short)])
        await searchTranscript(await inflate(text), phrase);
    }),
  );

  it('the JSON of a video with many cues and languages', () =>
    expectTurns(() => nextTurn().then(() => jsonOf(transcriptOf(CUES)))));
});
