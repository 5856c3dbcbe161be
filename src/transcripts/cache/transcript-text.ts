import { constants, crc32, deflateRaw, inflateRaw } from 'node:zlib';
import { promisify } from 'node:util';
import type { Transcript } from '../../domain/transcript.js';

/** The two forms in which the text of a transcript is kept and sent: as it is, or as a part of a gzip member. */
export type TextForm = 'json' | 'deflated';

/** The text of a transcript: what is known of its JSON, and those forms of it that are in this process already. */
export interface TranscriptText {
  readonly jsonBytes: number;
  /** Of the JSON, whatever form is sent. */
  readonly crc32: number;
  readonly json?: Buffer;
  readonly deflated?: Buffer;
}

/** A text in the form in which it goes out. */
export interface SentText {
  readonly bytes: Buffer;
  readonly jsonBytes: number;
  /** Of the JSON. */
  readonly crc32: number;
}

/** Level 4 took 0.6 of the time of level 6 for 1.1 of its bytes, over generated speech. */
const DEFLATE_OPTIONS = { level: 4, finishFlush: constants.Z_FULL_FLUSH };

const deflateOffThread = promisify<Buffer, object, Buffer>(deflateRaw);
const inflateOffThread = promisify<Buffer, object, Buffer>(inflateRaw);

/** Writes a transcript down as the JSON that an answer shows. */
export function textOf(transcript: Transcript): TranscriptText & { json: Buffer } {
  const json = Buffer.from(JSON.stringify(Object.fromEntries(transcript)));
  return { json, jsonBytes: json.length, crc32: crc32(json) };
}

/** Raw blocks without a final one, ended at a byte boundary, so that they can stand anywhere in a gzip member. */
export function deflate(json: Buffer): Promise<Buffer> {
  return deflateOffThread(json, DEFLATE_OPTIONS);
}

/** The JSON of a text that `deflate` made. @throws when it is longer than `jsonBytes`, or no deflated text */
export function inflate(deflated: Buffer, jsonBytes: number): Promise<Buffer> {
  // Its last block is not marked as final: the end of the input is the end of the text.
  return inflateOffThread(deflated, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: Math.max(1, jsonBytes) });
}
