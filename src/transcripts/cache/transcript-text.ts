import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, inflateRaw } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { detached } from '../../cache/cache-budget.js';
import { nextTurn } from '../../domain/waiting.js';
import { Segment, type Transcript } from '../../domain/transcript.js';

/** The JSON of a transcript, deflated once: cached and held in this form, and copied into gzip responses. */
export interface TranscriptText {
  /** Raw deflate blocks without a final one, which end at a byte boundary, so that a gzip member can contain them. */
  readonly deflated: Buffer;
  readonly jsonBytes: number;
  /** Checksum of the JSON. */
  readonly crc32: number;
}

/** Measured with speech and prose: 0.7 of the time of level 4 for 1.08 times its bytes; level 1 takes up to 1.13 times its bytes. */
const DEFLATE_OPTIONS = { level: 2, finishFlush: constants.Z_FULL_FLUSH };

const deflateOffThread = promisify<Buffer, object, Buffer>(deflateRaw);
const inflateOffThread = promisify<Buffer, object, Buffer>(inflateRaw);

/** The JSON of a transcript as a response contains it. The first language is written in the turn in which it was read. */
export async function jsonOf(transcript: Transcript): Promise<Buffer> {
  const languages: string[] = [];
  for (const [language, segments] of transcript) {
    if (languages.length > 0) await nextTurn();
    languages.push(`${JSON.stringify(language)}:${JSON.stringify(segments)}`);
  }
  return Buffer.from(`{${languages.join(',')}}`);
}

export async function deflate(json: Buffer): Promise<TranscriptText> {
  // zlib returns a slice of the 16 KB into which it writes.
  const deflated = detached(await deflateOffThread(json, DEFLATE_OPTIONS));
  return { deflated, jsonBytes: json.length, crc32: crc32(json) };
}

/** Approximate overhead of a text: the map slot and two Buffer objects. */
const OVERHEAD_BYTES = 450;

/** The JSON of the texts that were inflated last, by their deflated form: the same Buffer while it is in the memory cache. */
const inflated = new LRUCache<Buffer, Buffer>({
  maxSize: 64 * 1024 * 1024,
  // A key keeps the whole allocation alive that it is a slice of.
  sizeCalculation: (json, deflated) => json.length + deflated.buffer.byteLength + OVERHEAD_BYTES,
});

/** The JSON of a text. @throws Error when the text is not what `deflate` returned */
export async function inflate({ deflated, jsonBytes, crc32: checksum }: TranscriptText): Promise<Buffer> {
  const known = inflated.get(deflated);
  if (known) return known;
  const json = await inflateOffThread(deflated, {
    // The last block is not marked as final: the text ends where the input ends.
    finishFlush: constants.Z_SYNC_FLUSH,
    maxOutputLength: Math.max(1, jsonBytes),
    // All of it in one step takes half the time of steps of the default size.
    chunkSize: Math.max(constants.Z_MIN_CHUNK, jsonBytes + 1),
  });
  if (json.length !== jsonBytes || crc32(json) !== checksum) throw new Error('A cached transcript is damaged.');
  inflated.set(deflated, detached(json));
  return json;
}

const transcriptSchema = z.record(z.string(), z.array(Segment));

/** Between two languages. Cannot occur within a string, where quotes are escaped. */
const NEXT_LANGUAGE = /\],(?="[^"]+":\[)/;

/** Reads the JSON of a transcript, a language at a time. @throws Error when it is none, which its checksum excludes */
export async function readTranscript(json: Buffer): Promise<Transcript> {
  const transcript = new Map<string, Segment[]>();
  const parts = json.toString('utf8', 1).split(NEXT_LANGUAGE);
  for (const [index, part] of parts.entries()) {
    await nextTurn();
    const end = index < parts.length - 1 ? ']}' : '';
    const found = transcriptSchema.parse(JSON.parse(`{${part}${end}`));
    for (const [language, segments] of Object.entries(found)) transcript.set(language, segments);
  }
  return transcript;
}
