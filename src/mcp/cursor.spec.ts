import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../test/any-text.js';
import { readCursor, writeCursor, type Position } from './cursor.js';

const POSITION: Position = {
  tool: 'get_video_transcript',
  subject: 'hl-dinghy__',
  resource: 'hl-dinghy__',
  videoIds: ['hl-dinghy__'],
  languages: ['en'],
  range: [0, null],
  offset: 12_000,
  crc32: 4_000_000_000,
};
const CHANNEL_POSITION: Position = {
  ...POSITION,
  tool: 'get_channel_transcripts',
  subject: 'abcdefghijklmno-',
  resource: `UC${'x'.repeat(22)}`,
  videoIds: ['hl-dinghy__', 'hl-walk____'],
  languages: [],
};
const EXPECTED = { tool: POSITION.tool, subject: POSITION.subject };

describe('a cursor', () => {
  it('is read as it was written', () => {
    for (const position of [POSITION, CHANNEL_POSITION]) {
      const { tool, subject } = position;
      expect(readCursor(writeCursor(position), { tool, subject })).toEqual(position);
      expect(readCursor(writeCursor(position), { tool })).toEqual(position);
    }
  });

  it('is invalid for another tool or subject', () => {
    const cursor = writeCursor(POSITION);
    for (const expected of [{ tool: 'get_channel_transcripts' }, { ...EXPECTED, subject: 'hl-walk____' }])
      expect(() => readCursor(cursor, expected)).toThrow('cursor is invalid');
  });

  it.each<[what: string, change: object]>([
    ['no video', { videoIds: [] }],
    ['eleven videos', { videoIds: Array.from({ length: 11 }, (_, index) => `video-${index}`.padEnd(11, '_')) }],
    ['a video twice', { videoIds: ['hl-dinghy__', 'hl-dinghy__'] }],
    ['a URL as its video', { videoIds: ['https://youtu.be/hl-dinghy__'] }],
    ['another video than its subject', { videoIds: ['hl-walk____'] }],
    ['a negative offset', { offset: -1 }],
    ['an offset without a checksum', { crc32: null }],
    ['a range that ends before it starts', { range: [5, 3] }],
    ['a malformed language', { languages: ['e'] }],
    ['an unknown field', { more: 1 }],
  ])('is invalid with %s', (_what, change) => {
    const cursor = writeCursor({ ...POSITION, ...change });
    expect(() => readCursor(cursor, { tool: POSITION.tool })).toThrow('cursor is invalid');
  });

  it('is invalid when it is any other text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyText(),
          fc.json().map((json) => Buffer.from(json).toString('base64url')),
        ),
        (text) => {
          expect(() => readCursor(text, EXPECTED)).toThrow('cursor is invalid');
        },
      ),
    );
  });
});
