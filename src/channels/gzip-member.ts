import { crc32 } from 'node:zlib';
import { joinedCrc32 } from './crc32.js';

/** Text that was deflated by itself: raw blocks without a final one, ended at a byte boundary (`Z_FULL_FLUSH`). */
export interface DeflatedText {
  deflated: Buffer;
  /** Of the text before it was deflated. */
  crc32: number;
  textBytes: number;
}

const HEADER = Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty block that is marked as the last. */
const FINAL_BLOCK = Buffer.from([0x03, 0x00]);
const STORED_BYTES_MAX = 0xffff;

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
  literal(text: string): Buffer[] {
    const bytes = Buffer.from(text);
    this.count(crc32(bytes), bytes.length);
    const blocks: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += STORED_BYTES_MAX) {
      const block = bytes.subarray(at, at + STORED_BYTES_MAX);
      const head = Buffer.alloc(5);
      head.writeUInt16LE(block.length, 1);
      head.writeUInt16LE(~block.length & 0xffff, 3);
      blocks.push(head, block);
    }
    return blocks;
  }

  piece(text: DeflatedText): Buffer {
    this.count(text.crc32, text.textBytes);
    return text.deflated;
  }

  end(): Buffer {
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(this.crc, 0);
    trailer.writeUInt32LE(this.textBytes % 2 ** 32, 4);
    return Buffer.concat([FINAL_BLOCK, trailer]);
  }

  private count(crc: number, bytes: number): void {
    this.crc = joinedCrc32(this.crc, crc, bytes);
    this.textBytes += bytes;
  }
}
