import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../test/any-text.js';
import { FrameError, FrameReader } from './frame-reader.js';

const BYTES_MAX = 64 * 1024;

const frame = (text: string): Buffer => Buffer.from(`${text.length}#${text}`);

function readAll(chunks: readonly Buffer[], bytesMax = BYTES_MAX): { texts: string[]; reader: FrameReader } {
  const reader = new FrameReader(bytesMax);
  const texts: string[] = [];
  for (const chunk of chunks) {
    reader.push(chunk);
    for (let text = reader.next(); text !== undefined; text = reader.next()) texts.push(text);
    reader.detach();
  }
  return { texts, reader };
}

const faultOf = (bytes: Buffer, bytesMax?: number): unknown => {
  try {
    readAll([bytes], bytesMax);
    return undefined;
  } catch (error) {
    return error instanceof FrameError ? error.fault : error;
  }
};

describe('FrameReader', () => {
  it('reads any texts, however their bytes are split into chunks', () => {
    fc.assert(
      fc.property(fc.array(anyText()), fc.array(fc.nat(50)), (texts, cuts) => {
        const bytes = Buffer.concat(texts.map(frame));
        const chunks: Buffer[] = [];
        for (let at = 0, index = 0; at < bytes.length; index += 1) {
          const size = 1 + (cuts[index % (cuts.length || 1)] ?? 0);
          chunks.push(bytes.subarray(at, at + size));
          at += size;
        }
        const read = readAll(chunks);
        expect(read.texts).toEqual(texts);
        expect(read.reader.isUnfinished).toBe(false);
        expect(read.reader.bufferedBytes).toBe(0);
      }),
    );
  });

  it('buffers exactly the received bytes of an unfinished frame, whatever its length', () => {
    const chunk = Buffer.alloc(BYTES_MAX, 'x');
    chunk.write('60000#abc');
    const { reader } = readAll([chunk.subarray(0, 9)]);
    expect(reader.bufferedBytes).toBe(3);
    expect(reader.isUnfinished).toBe(true);
    const [only] = [reader].map((one) => Reflect.get(one, 'bytes') as Buffer);
    expect(only?.buffer.byteLength).toBe(3);
  });

  it.each([
    ['no length', 'GET / HTTP/1.1\r\n'],
    ['an empty length', '#{}'],
    ['a length with a sign', '-1#{}'],
    ['a length with a space', ' 2#{}'],
    ['a length that splits a surrogate pair', '1#😀'],
  ])('refuses %s', (_name, text) => {
    expect(faultOf(Buffer.from(text))).toBe('malformed_frame');
  });

  it.each([
    ['a stray continuation byte', [0x80]],
    ['a lead byte without its continuation', [0xc3, 0x28]],
    ['half of a surrogate pair', [0xed, 0xa0, 0x80]],
    ['an overlong form', [0xe0, 0x80, 0xaf]],
  ])('refuses %s', (_name, bytes) => {
    expect(faultOf(Buffer.concat([Buffer.from('1#'), Buffer.from(bytes), Buffer.from('1#')]))).toBe('malformed_frame');
  });

  it('refuses a frame whose length is too large, and one whose characters have too many bytes', () => {
    expect(faultOf(Buffer.from(`${BYTES_MAX + 1}#`))).toBe('frame_too_large');
    expect(faultOf(Buffer.from('9'.repeat(6)))).toBe('frame_too_large');
    expect(faultOf(frame('€'.repeat(40)), 100)).toBe('frame_too_large');
    expect(faultOf(frame('x'.repeat(100)), 100)).toBeUndefined();
  });

  it('throws only its own error, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const fault = faultOf(Buffer.from(bytes));
        expect([undefined, 'malformed_frame', 'frame_too_large']).toContain(fault);
      }),
    );
  });
});
