import { z } from 'zod';
import type { Segment } from '../../domain/transcript.js';
import { fromJson } from '../cache/keyed-codec.js';

const transcriptSchema: z.ZodType<Record<string, Segment[]>> = z.record(
  z.string(),
  z.array(z.object({ text: z.string(), start: z.number(), duration: z.number() })),
);

/** The segments of one language. */
interface StoredPart {
  language: string;
  segments: readonly Segment[];
}

/**
 * Reads the JSON of a transcript: the languages in the order of the caller's preference, the segments in order of `start`.
 *
 * @throws Error when the text is not a transcript, which its checksum excludes
 */
export function storedParts(json: Buffer): StoredPart[] {
  const transcript = fromJson(json, transcriptSchema);
  if (!transcript) throw new Error('A stored transcript is not readable.');
  return Object.entries(transcript).map(([language, segments]) => ({ language, segments }));
}

/** The segments of the first language. */
export function firstLanguage(json: Buffer): readonly Segment[] {
  return storedParts(json)[0]?.segments ?? [];
}
