import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, inflateRaw } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { detached } from '../../domain/detached.js';
import { CHARACTERS_PER_TURN, inTurns, joinInTurns } from '../in-turns.js';
import { Segment, type Transcript } from '../../domain/transcript.js';
import { fromJson } from './keyed-codec.js';

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

/** Few enough for about ten thousand characters, and many enough for a step to cost little beside them. */
const SEGMENTS_PER_STEP = 128;

/** The JSON of a transcript as a response contains it. */
export async function jsonOf(transcript: Transcript, segmentsPerStep = SEGMENTS_PER_STEP): Promise<Buffer> {
  return Buffer.from(await joinInTurns(jsonPieces(transcript, segmentsPerStep)));
}

function* jsonPieces(transcript: Transcript, segmentsPerStep: number): Generator<string, void, undefined> {
  let before = '{';
  for (const [language, segments] of transcript) {
    yield `${before}${JSON.stringify(language)}:[`;
    for (let from = 0; from < segments.length; from += segmentsPerStep) {
      const part = JSON.stringify(segments.slice(from, from + segmentsPerStep)).slice(1, -1);
      yield from === 0 ? part : `,${part}`;
    }
    before = '],';
  }
  yield before === '{' ? '{}' : ']}';
}

/** Deflates JSON. */
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

/** Between two segments. Cannot occur within a string, where quotes are escaped. */
const NEXT_SEGMENT = '},{"text":';

/**
 * Reads the JSON of a transcript, in parts that are JSON of the same form.
 *
 * @throws Error when it is none, which its checksum excludes
 */
export async function readTranscript(json: Buffer): Promise<Transcript> {
  const transcript = new Map<string, Segment[]>();
  // A part after the first continues the segments of a language.
  let begin = '';
  for await (const part of inTurns(jsonParts(json))) {
    const found = fromJson(Buffer.from(begin + part), transcriptSchema);
    if (!found) throw new Error('A stored transcript is not readable.');
    for (const [language, segments] of Object.entries(found)) {
      const known = transcript.get(language);
      if (known) known.push(...segments);
      else transcript.set(language, segments);
      begin = `{${JSON.stringify(language)}:[`;
    }
  }
  return transcript;
}

function* jsonParts(json: Buffer): Generator<string, void, undefined> {
  for (let from = 0; ;) {
    const between = json.indexOf(NEXT_SEGMENT, from + CHARACTERS_PER_TURN);
    if (between === -1) return yield json.toString('utf8', from);
    yield `${json.toString('utf8', from, between + 1)}]}`;
    from = between + 2;
  }
}
