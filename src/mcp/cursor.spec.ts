import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../test/any-text.js';
import { Cursors, type Position } from './cursor.js';

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
const EXPECTED = { tool: POSITION.tool, subject: POSITION.subject };
const ORGANIZATION = 'org_1';
const cursors = new Cursors(undefined);

afterEach(() => void jest.useRealTimers());

describe('a cursor', () => {
  it('is read as it was written, by every replica with the same secret', () => {
    for (const secret of [undefined, 'secret']) {
      const cursor = new Cursors(secret).write(POSITION, ORGANIZATION);
      expect(new Cursors(secret).read(cursor, ORGANIZATION, EXPECTED)).toEqual(POSITION);
      expect(new Cursors(secret).read(cursor, ORGANIZATION, { tool: POSITION.tool })).toEqual(POSITION);
    }
  });

  it('is invalid for another organization, tool, subject or secret', () => {
    const cursor = new Cursors('secret').write(POSITION, ORGANIZATION);
    const read = (secret: string, organization: string, expected: { tool: string; subject?: string }) => () =>
      new Cursors(secret).read(cursor, organization, expected);
    expect(read('secret', 'org_2', EXPECTED)).toThrow('cursor is invalid');
    expect(read('other', ORGANIZATION, EXPECTED)).toThrow('cursor is invalid');
    expect(read('secret', ORGANIZATION, { tool: 'get_channel_transcripts' })).toThrow('cursor is invalid');
    expect(read('secret', ORGANIZATION, { ...EXPECTED, subject: 'hl-walk____' })).toThrow('cursor is invalid');
  });

  it('is invalid after any change, and any other text is invalid', () => {
    const cursor = cursors.write(POSITION, ORGANIZATION);
    fc.assert(
      fc.property(fc.nat(cursor.length - 1), fc.constantFrom('A', 'z', '.', '-', ''), (index, character) => {
        const changed = cursor.slice(0, index) + character + cursor.slice(index + 1);
        if (changed === cursor) return;
        expect(() => cursors.read(changed, ORGANIZATION, EXPECTED)).toThrow('cursor is invalid');
      }),
    );
    for (const added of [`${cursor}A`, `${cursor}=`, `${cursor}.`, ` ${cursor}`]) {
      expect(() => cursors.read(added, ORGANIZATION, EXPECTED)).toThrow('cursor is invalid');
    }
    fc.assert(
      fc.property(anyText({ maxLength: 40 }), (text) => {
        expect(() => cursors.read(text, ORGANIZATION, EXPECTED)).toThrow('cursor is invalid');
      }),
    );
  });

  it('expires after an hour', () => {
    jest.useFakeTimers({ now: 0 });
    const cursor = cursors.write(POSITION, ORGANIZATION);
    jest.setSystemTime(60 * 60 * 1000);
    expect(cursors.read(cursor, ORGANIZATION, EXPECTED)).toEqual(POSITION);
    jest.setSystemTime(60 * 60 * 1000 + 1);
    expect(() => cursors.read(cursor, ORGANIZATION, EXPECTED)).toThrow('cursor has expired');
  });
});
