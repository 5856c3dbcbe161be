import { crc32 } from 'node:zlib';
import type { TranscriptText } from './transcript-text.js';

const HEADER = Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty block that is marked as the last. */
const FINAL_BLOCK = Buffer.from([0x03, 0x00]);
const STORED_HEAD_BYTES = 5;
const STORED_BYTES_MAX = 0xffff;

/** By the deflated text, which stays the same Buffer from call to call in the cache of this process. */
const shifts = new WeakMap<Buffer, number>();

/**
 * One gzip member (RFC 1952) joined from parts: deflated texts are copied, and the short literals between them become
 * stored blocks. So a transcript is compressed once when it is cached, and not once per call.
 */
export class GzipMember {
  private crc = 0;
  private textBytes = 0;

  /** Joins literals and deflated texts to one deflated text. */
  static join(parts: readonly (string | TranscriptText)[]): TranscriptText {
    const member = new GzipMember();
    const deflated = Buffer.concat(
      parts.map((part) => (typeof part === 'string' ? member.literal(part) : member.text(part))),
    );
    return { deflated, jsonBytes: member.textBytes, crc32: member.crc };
  }

  begin(): Buffer {
    return HEADER;
  }

  /** Adds a short text in stored blocks, without compression. */
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

  /** Adds a text that is already deflated. */
  text({ deflated, jsonBytes, crc32: crc }: TranscriptText): Buffer {
    let shift = shifts.get(deflated);
    if (shift === undefined) shifts.set(deflated, (shift = shiftBy(jsonBytes)));
    this.crc = joinedCrc32(this.crc, crc, shift);
    this.textBytes += jsonBytes;
    return deflated;
  }

  end(): Buffer {
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(this.crc, 0);
    trailer.writeUInt32LE(this.textBytes % 2 ** 32, 4);
    return Buffer.concat([FINAL_BLOCK, trailer]);
  }
}

// The CRC-32 of concatenated texts follows from those of its parts, as in zlib's crc32_combine: appending n bytes
// multiplies the polynomial by x^(8n), modulo the polynomial of the CRC.

const POLYNOMIAL = 0xedb88320;

/** a * b modulo the polynomial, in the reflected bit order of CRC-32. */
function multiply(a: number, b: number): number {
  let product = 0;
  let factor = b;
  for (let bit = 0x80000000; bit !== 0; bit >>>= 1) {
    if (a & bit) product ^= factor;
    factor = factor & 1 ? (factor >>> 1) ^ POLYNOMIAL : factor >>> 1;
  }
  return product >>> 0;
}

/** x^(2^n) for n = 0, 1, 2, …; squaring repeats after 32 because x^(2^32 - 1) = 1. */
const POWERS: readonly number[] = Array.from({ length: 32 }).reduce<number[]>((powers) => {
  const last = powers.at(-1);
  powers.push(last === undefined ? 0x40000000 : multiply(last, last));
  return powers;
}, []);

/** The factor by which appending this number of bytes multiplies a checksum. */
export function shiftBy(bytes: number): number {
  let shift = 0x80000000;
  let power = 3;
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = multiply(POWERS[power % 32] ?? 0, shift);
    power++;
  }
  return shift;
}

/** The CRC-32 of two concatenated texts; `shift` is `shiftBy` the length of the second. */
export function joinedCrc32(first: number, second: number, shift: number): number {
  return (multiply(shift, first) ^ second) >>> 0;
}
