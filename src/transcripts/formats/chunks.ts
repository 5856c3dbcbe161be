import { nextTurn } from '../../domain/waiting.js';
import type { Segment, Transcript } from '../../domain/transcript.js';
import { deflate, inflate, jsonOf, readTranscript } from '../cache/transcript-text.js';
import type { TranscriptsEvent } from '../delivery/transcript-events.js';
import type { Chapter } from './chapters.js';
import { SENTENCE_END, spaceBetween } from './line-text.js';

/** From this share of its length on, a chunk ends with the end of a sentence. */
const SENTENCE_SHARE = 0.75;

/**
 * Joins segments to chunks of about `seconds`: each ends with a sentence, or where the next segment would make it longer, and
 * where a chapter begins. A longer segment is a chunk of its own.
 *
 * @param chapters of the video, whose titles the chunks have
 */
export function chunksOf(segments: readonly Segment[], seconds: number, chapters: readonly Chapter[] = []): Segment[] {
  const chunks: Segment[] = [];
  let chunk: Segment | undefined;
  let last = '';
  let place = -1;
  for (const { text, start, duration, chapter: stored } of segments) {
    while ((chapters[place + 1]?.start ?? Infinity) <= start) place += 1;
    const chapter = chapters[place]?.title ?? stored;
    if (
      chunk === undefined ||
      chunk.chapter !== chapter ||
      Math.max(chunk.duration, start + duration - chunk.start) > seconds ||
      (start - chunk.start >= seconds * SENTENCE_SHARE && SENTENCE_END.test(last))
    ) {
      chunk = { text, start, duration, ...(chapter !== undefined && { chapter }) };
      chunks.push(chunk);
    } else {
      chunk.text += spaceBetween(last, text) + text;
      chunk.duration = Math.max(chunk.duration, milliseconds(start + duration - chunk.start));
    }
    last = text;
  }
  return chunks;
}

/** Without the digits that a sum of fractions adds. */
function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

/**
 * The events with their texts in chunks, each entry by itself: one text at a time is not as it is cached.
 *
 * @param batches whose entries have their chapters
 * @param withChapters whether they keep them
 */
export async function* inChunks(
  batches: AsyncIterable<readonly TranscriptsEvent[]>,
  seconds: number,
  withChapters: boolean,
): AsyncGenerator<readonly TranscriptsEvent[], void, undefined> {
  for await (const batch of batches)
    for (const event of batch) {
      if (event.type !== 'result') yield [event];
      else {
        const { chapters, ...others } = event.entry.metadata;
        const metadata = withChapters ? event.entry.metadata : others;
        if (!event.entry.ok) yield [{ ...event, entry: { ...event.entry, metadata } }];
        else {
          const read = await readTranscript(await inflate(event.entry.transcript));
          const transcript = await deflate(await jsonOf(await chunked(read, seconds, chapters ?? [])));
          yield [{ ...event, entry: { ...event.entry, metadata, transcript } }];
        }
      }
    }
}

/** The transcript with the segments of each language in chunks. */
export async function chunked(
  transcript: Transcript,
  seconds: number,
  chapters?: readonly Chapter[],
): Promise<Transcript> {
  const chunks = new Map<string, Segment[]>();
  for (const [language, segments] of transcript) {
    await nextTurn();
    chunks.set(language, chunksOf(segments, seconds, chapters));
  }
  return chunks;
}
