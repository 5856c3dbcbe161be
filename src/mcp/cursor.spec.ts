import { createHmac } from 'node:crypto';
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
const CHANNEL_POSITION: Position = {
  ...POSITION,
  tool: 'get_channel_transcripts',
  subject: 'abcdefghijklmno-',
  resource: `UC${'x'.repeat(22)}`,
  videoIds: ['hl-dinghy__', 'hl-walk____'],
  languages: [],
};
const EXPECTED = { tool: POSITION.tool, subject: POSITION.subject };
const ORGANIZATION = 'org_1';
const SECRET = Buffer.alloc(32, 1);
const cursors = new Cursors(SECRET);

afterEach(() => void jest.useRealTimers());

describe('a cursor', () => {
  it('is read as it was written, by every replica with the same secret', () => {
    for (const position of [POSITION, CHANNEL_POSITION]) {
      const { tool, subject } = position;
      const cursor = cursors.write(position, ORGANIZATION);
      const replica = new Cursors(Buffer.from(SECRET));
      expect(replica.read(cursor, ORGANIZATION, { tool, subject })).toEqual(position);
      expect(replica.read(cursor, ORGANIZATION, { tool })).toEqual(position);
    }
  });

  it('is invalid for another organization, tool, subject or secret', () => {
    const cursor = cursors.write(POSITION, ORGANIZATION);
    const read =
      (organization: string, expected: { tool: string; subject?: string }, own = cursors) =>
      () =>
        own.read(cursor, organization, expected);
    expect(read(ORGANIZATION, EXPECTED)).not.toThrow();
    expect(read('org_2', EXPECTED)).toThrow('cursor is invalid');
    expect(read(ORGANIZATION, EXPECTED, new Cursors(Buffer.alloc(32, 2)))).toThrow('cursor is invalid');
    expect(read(ORGANIZATION, { tool: 'get_channel_transcripts' })).toThrow('cursor is invalid');
    expect(read(ORGANIZATION, { ...EXPECTED, subject: 'hl-walk____' })).toThrow('cursor is invalid');
  });

  it('is invalid with a signature by any key that is not derived from the secret', () => {
    const [payload = ''] = cursors.write(POSITION, ORGANIZATION).split('.');
    const signed = `${ORGANIZATION.length}:${ORGANIZATION}:${payload}`;
    for (const key of ['', `mcp cursor ${ORGANIZATION} `, SECRET]) {
      const tag = createHmac('sha256', key).update(signed).digest().subarray(0, 12).toString('base64url');
      expect(() => cursors.read(`${payload}.${tag}`, ORGANIZATION, EXPECTED)).toThrow('cursor is invalid');
    }
  });

  it.each<[string, Record<string, unknown>]>([
    ['a list in one language code', { languages: ['en,de'] }],
    ['too many languages', { languages: Array.from({ length: 21 }, (_, index) => `en-x${index}`) }],
    ['an ID of another form', { videoIds: ['hl-dinghy__:'] }],
    ['no video', { videoIds: [] }],
    ['a video twice', { videoIds: ['hl-dinghy__', 'hl-dinghy__'] }],
    ['too many videos', { videoIds: Array.from({ length: 11 }, (_, index) => `hl-${index}`.padEnd(11, '_')) }],
    ['another resource', { resource: 'any text' }],
    ['a subject of another form', { subject: 'any text' }],
    ['another tool', { tool: 'get_usage' }],
    ['a negative range', { range: [-1, null] }],
    ['a range of text', { range: ['0', null] }],
    ['an empty range', { range: [5, 5] }],
    ['a negative offset', { offset: -1 }],
    ['a fraction as the offset', { offset: 0.5 }],
    ['an offset without a checksum', { crc32: null }],
    ['a checksum of more than 32 bits', { crc32: 2 ** 32 }],
    ['a further property', { more: 1 }],
  ])('is invalid with %s, although it is signed', (_name, change) => {
    const position = { ...CHANNEL_POSITION, ...change };
    const cursor = cursors.write(position, ORGANIZATION);
    expect(() => cursors.read(cursor, ORGANIZATION, { tool: position.tool })).toThrow('cursor is invalid');
  });

  it.each<[string, Partial<Position>]>([
    ['two videos', { videoIds: ['hl-dinghy__', 'hl-walk____'] }],
    ['another video', { videoIds: ['hl-walk____'] }],
    ['another resource', { resource: 'hl-walk____' }],
    ['the subject of a channel', { subject: CHANNEL_POSITION.subject }],
  ])('of one video is invalid with %s, although it is signed', (_name, change) => {
    const cursor = cursors.write({ ...POSITION, ...change }, ORGANIZATION);
    expect(() => cursors.read(cursor, ORGANIZATION, { tool: POSITION.tool })).toThrow('cursor is invalid');
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

  it('expires after an hour, and cannot be valid for longer', () => {
    const hourMs = 60 * 60 * 1000;
    jest.useFakeTimers({ now: hourMs });
    const cursor = cursors.write(POSITION, ORGANIZATION);
    const read = () => cursors.read(cursor, ORGANIZATION, EXPECTED);
    jest.setSystemTime(2 * hourMs);
    expect(read()).toEqual(POSITION);
    jest.setSystemTime(2 * hourMs + 1);
    expect(read).toThrow('cursor has expired');
    // Written by a replica whose clock is ahead.
    jest.setSystemTime(hourMs - 60_000);
    expect(read()).toEqual(POSITION);
    jest.setSystemTime(hourMs - 60_001);
    expect(read).toThrow('cursor is invalid');
  });
});
