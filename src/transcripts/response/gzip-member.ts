import { crc32 } from 'node:zlib';
import type { SentText } from '../cache/transcript-text.js';
import { joinedCrc32, shiftBy } from './crc32.js';

const HEADER = Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty block that is marked as the last. */
const FINAL_BLOCK = Buffer.from([0x03, 0x00]);
const STORED_HEAD_BYTES = 5;
const STORED_BYTES_MAX = 0xffff;

/** By the deflated text; in the cache of this process it stays the same Buffer from call to call. */
const shifts = new WeakMap<Buffer, number>();

/**
 * One gzip member (RFC 1952) put together from pieces: text that was deflated before goes in as it is, the short text
 * between goes into stored blocks. So the text of a transcript is compressed once in its life and not once a call.
 */
export class GzipMember {
  private crc = 0;
  private textBytes = 0;

  begin(): Buffer {
    return HEADER;
  }

  /** Short text, stored without being compressed. */
  literal(text: string): Buffer {
    const bytes = Buffer.from(text);
    this.crc = crc32(bytes, this.crc);
    this.textBytes += bytes.length;
    const blocks = Math.ceil(bytes.length / STORED_BYTES_MAX);
    const stored = Buffer.allocUnsafe(bytes.length + blocks * STORED_HEAD_BYTES);
    for (let from = 0, to = 0; from < bytes.length; from += STORED_BYTES_MAX) {
      const length = Math.min(STORED_BYTES_MAX, bytes.length - from);
      to = stored.writeUInt8(0, to);
      to = stored.writeUInt16LE(length, to);
      to = stored.writeUInt16LE(~length & 0xffff, to);
      to += bytes.copy(stored, to, from, from + length);
    }
    return stored;
  }

  /** Text that was deflated before. */
  text({ bytes, jsonBytes, crc32: crc }: SentText): Buffer {
    let shift = shifts.get(bytes);
    if (shift === undefined) shifts.set(bytes, (shift = shiftBy(jsonBytes)));
    this.crc = joinedCrc32(this.crc, crc, shift);
    this.textBytes += jsonBytes;
    return bytes;
  }

  end(): Buffer {
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(this.crc, 0);
    trailer.writeUInt32LE(this.textBytes % 2 ** 32, 4);
    return Buffer.concat([FINAL_BLOCK, trailer]);
  }
}
