import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText, anyUrl } from '../../../test/texts/any-text.js';
import { parseChannelReference } from './channel-reference.js';
import { REFERENCE_LENGTH_MAX } from './page-url.js';

const ID = 'UCh4rb0urL1ghtW0rksh0p00';

const ACCEPTED: [string, ReturnType<typeof parseChannelReference>][] = [
  [ID, { kind: 'id', id: ID }],
  ['@harbourlight', { kind: 'handle', handle: 'harbourlight' }],
  ['harbourlight', { kind: 'handle', handle: 'harbourlight' }],
  ['@a.b-c_d·e', { kind: 'handle', handle: 'a.b-c_d·e' }],
  ['@港の灯り', { kind: 'handle', handle: '港の灯り' }],
  ['@हिन्दी', { kind: 'handle', handle: 'हिन्दी' }],
  ['@cafe\u0301s', { kind: 'handle', handle: 'cafés' }],
  [`@${ID}`, { kind: 'handle', handle: ID }],
  ['https://www.youtube.com/@harbourlight', { kind: 'handle', handle: 'harbourlight' }],
  ['HTTPS://M.YouTube.com/@harbourlight', { kind: 'handle', handle: 'harbourlight' }],
  ['www.youtube.com/@harbourlight/', { kind: 'handle', handle: 'harbourlight' }],
  ['youtube.com/@harbourlight/videos', { kind: 'handle', handle: 'harbourlight' }],
  ['https:/www.youtube.com/@harbourlight', { kind: 'handle', handle: 'harbourlight' }],
  ['https://www.youtube.com/@harbourlight?si=abc&x=/y#top', { kind: 'handle', handle: 'harbourlight' }],
  ['https://www.youtube.com/%40%E6%B8%AF%E3%81%AE%E7%81%AF', { kind: 'handle', handle: '港の灯' }],
  ['@%E6%B8%AF%E3%81%AE%E7%81%AF', { kind: 'handle', handle: '港の灯' }],
  ['%E6%B8%AF%E3%81%AE%E7%81%AF', { kind: 'handle', handle: '港の灯' }],
  ['%40%E6%B8%AF%E3%81%AE%E7%81%AF', { kind: 'handle', handle: '港の灯' }],
  ['%40%25E6%25B8%25AF%25E3%2581%25AE%25E7%2581%25AF', { kind: 'handle', handle: '港の灯' }],
  ['https://www.youtube.com/@%25E6%25B8%25AF%25E3%2581%25AE%25E7%2581%25AF', { kind: 'handle', handle: '港の灯' }],
  [
    'https%3A%2F%2Fwww.youtube.com%2F%40%25E6%25B8%25AF%25E3%2581%25AE%25E7%2581%25AF/videos',
    { kind: 'handle', handle: '港の灯' },
  ],
  ['https%253A%252F%252Fwww.youtube.com%252F%2540harbourlight', { kind: 'handle', handle: 'harbourlight' }],
  ['https://www.youtube.com/c/caf%25C3%25A9', { kind: 'custom', name: 'café' }],
  ['@cafe%CC%81s', { kind: 'handle', handle: 'cafés' }],
  [`https://www.youtube.com/channel/${ID}`, { kind: 'id', id: ID }],
  [`https://www.youtube.com/channel/${ID}/streams?view=2`, { kind: 'id', id: ID }],
  [`https%3A%2F%2Fwww.youtube.com%2Fchannel%2F${ID}%2Fvideos%3Fview%3D2`, { kind: 'id', id: ID }],
  ['https://www.youtube.com/c/HarbourLight', { kind: 'custom', name: 'HarbourLight' }],
  ['https://www.youtube.com/c/HarbourLight/about', { kind: 'custom', name: 'HarbourLight' }],
  ['https://www.youtube.com/user/h', { kind: 'user', name: 'h' }],
  ['https://www.youtube.com/HarbourLight', { kind: 'vanity', name: 'HarbourLight' }],
];

const REFUSED = [
  '',
  '@',
  'UC',
  '@' + 'a'.repeat(31),
  'a'.repeat(31),
  'two words',
  '@@name',
  '/@name',
  '@name%zz',
  '@%E6%B8',
  '@name%2Fvideos',
  '@name%00',
  'https://www.youtube.com/show',
  '127.0.0.1',
  '@10.0.0.1',
  'youtube.com',
  'https://www.youtube.com',
  'https://www.youtube.com//@name',
  'https://www.youtube.com/@na',
  'https://www.youtube.com/watch?v=hb0000000A1',
  'https://www.youtube.com/shorts/hb0000000A1',
  'https://www.youtube.com/playlist?list=UUh4rb0urL1ghtW0rksh0p00',
  'https://www.youtube.com/WATCH?v=hb0000000A1',
  'https://www.youtube.com/channel/UC',
  'https://www.youtube.com/channel/@name',
  'https://www.youtube.com/c/' + 'n'.repeat(101),
  'https://www.youtube.com/@name/videos/extra',
  'https://www.youtube.com/@name/../../admin',
  'https://www.youtube.com/@name%00',
  'https://www.youtube.com/%zz',
  'https://www.youtube.com:8443/@name',
  'https://user@www.youtube.com/@name',
  'https://www.youtube.com@example.com/@name',
  'https://www.youtube.com.example.com/@name',
  'https://youtu.be/hb0000000A1',
  `https://music.youtube.com/channel/${ID}`,
  'https://www.youtube-nocookie.com/@name',
  'youtu.be',
  'www.youtube.com',
  'https://example.com/@name',
  'http://127.0.0.1:5432/@name',
  'file:///etc/passwd',
  '//www.youtube.com/@name',
];

describe('a channel reference', () => {
  it.each(ACCEPTED)('%j is parsed', (text, expected) => {
    expect(parseChannelReference(text)).toEqual(expected);
  });

  it.each(REFUSED)('%j is refused', (text) => {
    expect(parseChannelReference(text)).toBeUndefined();
  });

  it('longer than 2,048 characters is refused', () => {
    const url = `https://www.youtube.com/@name?x=${'a'.repeat(REFERENCE_LENGTH_MAX)}`;
    expect(parseChannelReference(url)).toBeUndefined();
    expect(parseChannelReference(url.slice(0, REFERENCE_LENGTH_MAX))).toEqual({ kind: 'handle', handle: 'name' });
  });

  it('never throws and always matches the grammar, for any text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyText(),
          anyUrl(),
          fc.string().map((s) => `https://www.youtube.com/${s}`),
        ),
        (text) => {
          const reference = parseChannelReference(text);
          if (!reference) return;
          const name =
            reference.kind === 'id' ? reference.id : reference.kind === 'handle' ? reference.handle : reference.name;
          expect(name).toMatch(/^[\p{L}\p{M}\p{Nd}_.·-]{1,100}$/u);
          expect(name).toBe(name.normalize('NFC'));
        },
      ),
    );
  });

  it('is the same as a handle, as a URL and as an encoded URL', () => {
    const handle = fc
      .string({ unit: fc.constantFrom(...'abzAZ09_-.·éß中あя'), minLength: 3, maxLength: 30 })
      .filter((text) => !/^\d+(\.\d+){3}$/.test(text));
    fc.assert(
      fc.property(handle, (name) => {
        const expected = { kind: 'handle', handle: name };
        expect(parseChannelReference(`@${name}`)).toEqual(expected);
        expect(parseChannelReference(`https://www.youtube.com/@${name}/videos`)).toEqual(expected);
        expect(parseChannelReference(`m.youtube.com/${encodeURIComponent(`@${name}`)}?a=b`)).toEqual(expected);
      }),
    );
  });
});
