import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import type { TranscriptText } from '../../src/transcripts/cache/transcript-text.js';

/** A text as it is cached, without waiting for another thread. */
export function storedText(json: string | Buffer): TranscriptText {
  const bytes = Buffer.from(json);
  const deflated = deflateRawSync(bytes, { finishFlush: constants.Z_FULL_FLUSH });
  return { deflated, jsonBytes: bytes.length, crc32: crc32(bytes) };
}

/** The JSON of a text. */
export function jsonOfText({ deflated }: TranscriptText): string {
  return inflateRawSync(deflated, { finishFlush: constants.Z_SYNC_FLUSH }).toString();
}
