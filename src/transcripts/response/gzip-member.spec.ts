import { crc32, gunzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { storedText } from '../../../test/texts/stored-text.js';
import { GzipMember, joinedCrc32, shiftBy } from './gzip-member.js';

type Part = { literal: string } | { text: string };

function member(parts: readonly Part[]): Buffer {
  const gzip = new GzipMember();
  const chunks = [gzip.begin()];
  for (const part of parts) {
    if ('literal' in part) {
      chunks.push(gzip.literal(part.literal));
      continue;
    }
    chunks.push(gzip.text(storedText(part.text)));
  }
  return Buffer.concat([...chunks, gzip.end()]);
}

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.nat(200_000).map((length) => 'transcript '.repeat(Math.ceil(length / 11)).slice(0, length)),
);

describe('a gzip member joined from parts', () => {
  it('decompresses to its texts in order, for any texts', () => {
    const part: fc.Arbitrary<Part> = fc.oneof(fc.record({ literal: text }), fc.record({ text }));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const expected = parts.map((one) => ('literal' in one ? one.literal : one.text)).join('');
        expect(gunzipSync(member(parts)).toString()).toBe(Buffer.from(expected).toString());
      }),
    );
  });

  it('can contain parts that were joined before', () => {
    const joined = GzipMember.join(['{"a":', storedText('["transcript"]'), '}']);
    expect(joined).toMatchObject({ jsonBytes: 20, crc32: crc32('{"a":["transcript"]}') });
    const gzip = new GzipMember();
    const whole = Buffer.concat([gzip.begin(), gzip.literal('['), gzip.text(joined), gzip.literal(']'), gzip.end()]);
    expect(gunzipSync(whole).toString()).toBe('[{"a":["transcript"]}]');
  });

  it('without parts is a valid empty member', () => {
    expect(gunzipSync(member([]))).toHaveLength(0);
  });
});

describe('the CRC-32 of concatenated texts', () => {
  it('follows from those of its parts', () => {
    const bytes = fc.uint8Array({ maxLength: 5_000 });
    fc.assert(
      fc.property(bytes, bytes, (first, second) => {
        expect(joinedCrc32(crc32(first), crc32(second), shiftBy(second.length))).toBe(
          crc32(Buffer.concat([first, second])),
        );
      }),
    );
  });
});
