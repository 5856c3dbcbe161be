import type { Segment, Transcript } from '../../domain/transcript.js';
import { deflate, inflate, jsonOf, readTranscript } from '../cache/transcript-text.js';
import { inTurns } from '../in-turns.js';
import type { TranscriptsEvent } from '../transcript-events.js';
import { SENTENCE_END, spaceBetween } from './line-text.js';

/** From this share of its length on, a chunk ends with the end of a sentence. */
const SENTENCE_SHARE = 0.75;

/**
 * Joins segments to chunks of about `seconds`: each ends with a sentence, or where the next segment would make it longer.
 * A longer segment is a chunk of its own. Yields the chunks, and the text of each segment as a step of the work.
 */
export function* chunksOf(segments: readonly Segment[], seconds: number): Generator<Segment | string, void, undefined> {
  let chunk: Segment | undefined;
  let last = '';
  for (const { text, start, duration } of segments) {
    yield text;
    if (chunk === undefined) chunk = { text, start, duration };
    else if (
      Math.max(chunk.duration, start + duration - chunk.start) > seconds ||
      (start - chunk.start >= seconds * SENTENCE_SHARE && SENTENCE_END.test(last))
    ) {
      yield chunk;
      chunk = { text, start, duration };
    } else {
      chunk.text += spaceBetween(last, text) + text;
      chunk.duration = Math.max(chunk.duration, milliseconds(start + duration - chunk.start));
    }
    last = text;
  }
  if (chunk !== undefined) yield chunk;
}

/** Without the digits that a sum of fractions adds. */
function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

/** Chunks are as long as many segments: each is a step by itself. */
const CHUNKS_PER_STEP = 1;

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
        const transcript = await deflate(await jsonOf(chunks, CHUNKS_PER_STEP));
        yield [{ ...event, entry: { ...event.entry, transcript } }];
      }
    }
}

/** The transcript with the segments of each language in chunks. */
export async function chunked(transcript: Transcript, seconds: number): Promise<Transcript> {
  const chunks = new Map<string, Segment[]>();
  for (const [language, segments] of transcript) {
    const own: Segment[] = [];
    for await (const step of inTurns(chunksOf(segments, seconds))) if (typeof step === 'object') own.push(step);
    chunks.set(language, own);
  }
  return chunks;
}
