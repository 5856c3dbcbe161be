import type { Segment } from '../../domain/transcript.js';
import { deflate, inflate, jsonOf, readTranscript, type TranscriptText } from '../cache/transcript-text.js';
import type { TranscriptsEvent } from '../transcript-events.js';
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
  for (const { text, start, duration } of segments) {
    const spokenSeconds = chunk === undefined ? 0 : start - chunk.start;
    const isSentence = chunk !== undefined && SENTENCE_END.test(chunk.text);
    if (
      chunk === undefined ||
      Math.max(chunk.duration, start + duration - chunk.start) > seconds ||
      (isSentence && spokenSeconds >= seconds * SENTENCE_SHARE)
    )
      chunks.push((chunk = { text, start, duration }));
    else {
      chunk.text += spaceBetween(chunk.text, text) + text;
      chunk.duration = Math.max(chunk.duration, milliseconds(start + duration - chunk.start));
    }
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
      else yield [{ ...event, entry: { ...event.entry, transcript: await chunked(event.entry.transcript, seconds) } }];
    }
}

async function chunked(text: TranscriptText, seconds: number): Promise<TranscriptText> {
  const transcript = await readTranscript(await inflate(text));
  const chunks = [...transcript].map(([language, segments]) => [language, chunksOf(segments, seconds)] as const);
  return deflate(await jsonOf(new Map(chunks)));
}
