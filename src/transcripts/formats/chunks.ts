import { nextTurn } from '../../domain/waiting.js';
import type { Segment, Transcript } from '../../domain/transcript.js';
import { deflate, inflate, jsonOf, readTranscript } from '../cache/transcript-text.js';
import type { TranscriptsEvent } from '../delivery/transcript-events.js';
import { SENTENCE_END, spaceBetween } from './line-text.js';

/** From this share of its length on, a chunk ends with the end of a sentence. */
const SENTENCE_SHARE = 0.75;

/**
 * Joins segments to chunks of about `seconds`: each ends with a sentence, or where the next segment would make it longer.
 * A longer segment is a chunk of its own.
 */
export function chunksOf(segments: readonly Segment[], seconds: number): Segment[] {
  const chunks: Segment[] = [];
  let chunk: Segment | undefined;
  let last = '';
  for (const { text, start, duration } of segments) {
    if (
      chunk === undefined ||
      Math.max(chunk.duration, start + duration - chunk.start) > seconds ||
      (start - chunk.start >= seconds * SENTENCE_SHARE && SENTENCE_END.test(last))
    ) {
      chunk = { text, start, duration };
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

/** The events with their texts in chunks, each entry by itself: one text at a time is not as it is cached. */
export async function* inChunks(
  batches: AsyncIterable<readonly TranscriptsEvent[]>,
  seconds: number,
): AsyncGenerator<readonly TranscriptsEvent[], void, undefined> {
  for await (const batch of batches)
    for (const event of batch) {
      if (event.type !== 'result' || !event.entry.ok) yield [event];
      else {
        const chunks = await chunked(await readTranscript(await inflate(event.entry.transcript)), seconds);
        const transcript = await deflate(await jsonOf(chunks));
        yield [{ ...event, entry: { ...event.entry, transcript } }];
      }
    }
}

/** The transcript with the segments of each language in chunks. */
export async function chunked(transcript: Transcript, seconds: number): Promise<Transcript> {
  const chunks = new Map<string, Segment[]>();
  for (const [language, segments] of transcript) {
    await nextTurn();
    chunks.set(language, chunksOf(segments, seconds));
  }
  return chunks;
}
